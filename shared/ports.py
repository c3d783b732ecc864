"""The world as the inner rooms see it: adapters in `shared/clients`, fakes in `tests/fakes`.

Every method raises only errors of `shared/errors.py`, and holds to the limits it is given.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from pydantic import BaseModel

from shared.log_tail import LogTail as LogTail
from shared.ports_bot import BotFiles as BotFiles
from shared.ports_bot import BotInbox as BotInbox
from shared.ports_bot import BotOutbox as BotOutbox
from shared.ports_bot import BotStream as BotStream
from shared.ports_bot import BotTurnStore as BotTurnStore
from shared.ports_bot import OrchestrationStarter as OrchestrationStarter
from shared.ports_documents import DocumentStore as DocumentStore
from shared.ports_documents import LayoutReader as LayoutReader
from shared.ports_documents import PageReader as PageReader
from shared.ports_identity import GroupDirectory as GroupDirectory
from shared.ports_quality import QualityStore as QualityStore
from shared.ports_requests import IdempotencyStore as IdempotencyStore
from shared.ports_requests import UserLimitStore as UserLimitStore
from shared.ports_subagents import ControlStore as ControlStore
from shared.ports_subagents import MetricStore as MetricStore
from shared.ports_subagents import WebSearch as WebSearch

# For annotations alone: the start of the app need not build every model.
if TYPE_CHECKING:
    from shared.models.blobs import BlobProperties, SignedUrl
    from shared.models.conversing import Message, ModelTurn, ModelUsage, ToolDefinition
    from shared.models.events import LogSlice, RunEvent
    from shared.models.feedback import Feedback
    from shared.models.poison import PoisonMessage
    from shared.models.prompts import CallLimits, Prompt
    from shared.models.runs import RunRecord
    from shared.models.search import IndexRow, SearchPage, SearchRequest
    from shared.models.threads import Thread, ThreadPage, ThreadTurn

StructuredOutput = TypeVar("StructuredOutput", bound=BaseModel)


class SearchIndex(Protocol):
    """One index of the search service. It trims nothing: readers go through `retrieval.secured_index`."""

    async def search(self, request: SearchRequest) -> SearchPage: ...

    async def upload(self, rows: Sequence[IndexRow]) -> None:
        """Insert or replace rows by key; any number of them, sent in batches within the service's limits."""

    async def merge(self, rows: Sequence[IndexRow]) -> None:
        """Change the named fields of existing rows; DependencyError when a key does not exist."""

    async def delete(self, keys: Sequence[str]) -> None:
        """Remove rows by key; absent keys are no error."""


class SearchAdmin(Protocol):
    """Creates what ingestion writes to."""

    async def ensure_index(self, definition: IndexRow) -> bool:
        """Create the index, or add missing fields to it; True if anything changed."""


class ChatModel(Protocol):
    """A chat deployment."""

    async def parse(
        self, prompt: Prompt, output: type[StructuredOutput], limits: CallLimits
    ) -> StructuredOutput:
        """Structured output, validated. ModelFixableError when what came back does not validate."""

    def stream(self, prompt: Prompt, limits: CallLimits) -> AsyncGenerator[str, None]:
        """Text as it is written, in pieces of any size. OutputCutError after the last piece of a cut one."""

    def stream_output(
        self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
    ) -> AsyncGenerator[str | ModelUsage, None]:
        """Structured output as it is written: pieces of its JSON, which is the reader's to validate.

        Last comes its usage, if the endpoint tells, also of a cut one; OutputCutError comes after that.
        """

    async def converse(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        limits: CallLimits,
        *,
        may_call: bool = True,
    ) -> ModelTurn:
        """The model's next turn: text or tool calls. Not `may_call`: it is told to answer in words.

        ModelFixableError when it says nothing, or the content filter ended it.
        """


class Embedder(Protocol):
    """An embedding deployment."""

    @property
    def dimensions(self) -> int: ...

    async def embed(self, texts: Sequence[str], limits: CallLimits) -> list[tuple[float, ...]]:
        """One vector per text, in order; any number of texts, sent in batches."""


class BlobStore(Protocol):
    """The blob containers of the application."""

    async def properties(self, container: str, name: str) -> BlobProperties | None: ...

    async def read(self, container: str, name: str) -> bytes:
        """Whole content. NotFoundError when it is gone."""

    async def download(self, container: str, name: str, target: Path) -> BlobProperties:
        """Stream the content into a file; memory stays bounded. NotFoundError when it is gone."""

    def chunks(
        self, container: str, name: str, *, etag: str, first: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        """One version, piece by piece, from byte `first` on. NotFoundError, ConflictError: it is no more."""

    async def write(
        self, container: str, name: str, content: bytes, *, metadata: dict[str, str] | None = None
    ) -> None:
        """Create or replace."""

    async def create(self, container: str, name: str, content: bytes) -> bool:
        """Create; False, and nothing changed, when there is such a blob already: the first writer wins."""

    async def read_version(self, container: str, name: str) -> tuple[bytes, str]:
        """Whole content, with the etag of that very version. NotFoundError when it is gone."""

    async def write_version(self, container: str, name: str, content: bytes, *, etag: str | None) -> str:
        """Replace the version of this etag, or with None create what is not there yet; gives the new etag.

        Raises:
            ConflictError: it is another version by now, be it our own of a try whose answer was lost.
        """

    async def write_stream(self, container: str, name: str, parts: AsyncIterator[bytes]) -> BlobProperties:
        """Create or replace from pieces as they come; memory stays bounded.

        The blob appears, or changes, when all of them are there; if `parts` raises, nothing has happened.
        """

    def list_blobs(self, container: str, prefix: str = "") -> AsyncIterator[BlobProperties]:
        """Every blob whose name begins so, in the order of names; none when there is no container."""

    async def read_url(self, container: str, name: str, lifetime_s: float) -> SignedUrl:
        """An address by which anybody may read this one blob, until it expires."""

    async def upload_url(self, container: str, name: str, lifetime_s: float) -> SignedUrl:
        """An address by which anybody may create or replace this one blob, until it expires."""

    async def delete(self, container: str, name: str) -> None:
        """Remove; an absent blob is no error."""

    async def delete_prefix(self, container: str, prefix: str) -> None: ...

    async def ensure_containers(self, containers: Sequence[str]) -> None: ...


class PoisonQueues(Protocol):
    """Where events end that were tried in vain."""

    async def peek(self) -> list[PoisonMessage]:
        """The oldest messages of each queue; they stay there."""

    async def remove_of(self, owner_id: str) -> int:
        """Remove messages about a person's threads and turns; how many. The others hide for half a minute."""


class RunLog(Protocol):
    """The append-only event log of each run; an event's number is its line, counted from 1.

    A line is the JSON of one RunEvent. Offsets are bytes.
    """

    async def create(self, run_id: str) -> None:
        """Start the log; one that exists is left as it is."""

    async def append(self, run_id: str, events: Sequence[RunEvent], *, at_offset: int | None = None) -> int:
        """Append atomically: readers see all of these events or none, in order. Returns the new end.

        Raises:
            ConflictError: `at_offset` was given and the log does not end there: somebody else wrote.
        """

    async def read(self, run_id: str, offset: int = 0) -> LogSlice:
        """Everything from a byte offset on (0 = from the start). NotFoundError when there is no log."""

    async def delete(self, run_id: str) -> None:
        """Remove the log; an absent one is no error."""

    async def read_piece(self, run_id: str, offset: int) -> LogSlice:
        """As `read`, but of a long log perhaps only the next lines; none only when there are none."""
        return await self.read(run_id, offset)

    @contextmanager
    def watch(self, run_id: str) -> Iterator[LogTail]:
        """What this process learns of the end of a log, while it is watched.

        No more than a help: what other processes add may be missing, and a log may never tell it anything.
        """
        yield LogTail()


class RunStore(Protocol):
    """Records of runs."""

    async def create(self, record: RunRecord) -> None:
        """ConflictError when the id exists."""

    async def get(self, run_id: str) -> RunRecord | None: ...

    async def replace(self, record: RunRecord) -> None: ...

    async def set_feedback(self, run_id: str, feedback: Feedback | None) -> None:
        """Change this alone, whoever writes the rest. NotFoundError when there is no such run."""

    async def delete(self, run_id: str) -> None:
        """Remove the record; an absent one is no error. `replace` fails from then on."""

    def ended_before(self, moment: datetime) -> AsyncIterator[RunRecord]:
        """Runs that ended before `moment` and still have their log."""

    def of_owner(self, owner_id: str) -> AsyncIterator[RunRecord]:
        """All of a person's. Reads the whole table: for erasing a person, who may have no thread any more."""


class ThreadStore(Protocol):
    """Threads and their turns. Each call is about one owner, and can reach nobody else's."""

    async def create(self, thread: Thread, turn: ThreadTurn | None = None) -> Thread:
        """Store a new thread, with its first turn if there is one. ConflictError when the id exists."""

    async def get(self, owner_id: str, thread_id: str) -> Thread | None:
        """The thread, also one that is being deleted; None if the owner has none of this id."""

    async def replace(self, old: Thread, new: Thread, turn: ThreadTurn | None = None) -> Thread:
        """Overwrite, if it is still as `old` was read; add a turn in the same step.

        ConflictError when it changed, NotFoundError when it is gone.
        """

    async def remove(self, thread: Thread) -> None:
        """Take away the row of a deleted thread; an absent one is no error."""

    async def page(self, owner_id: str, limit: int, cursor: str | None = None) -> ThreadPage:
        """The owner's threads, the one that was last asked in first. CallerError for a strange cursor."""

    async def turn(self, owner_id: str, thread_id: str, number: int) -> ThreadTurn | None: ...

    async def turns(
        self, owner_id: str, thread_id: str, limit: int, before: int | None = None
    ) -> list[ThreadTurn]:
        """The newest turns, or the newest before a number; newest first."""

    async def replace_turn(self, owner_id: str, turn: ThreadTurn) -> ThreadTurn:
        """Overwrite, if it is still as it was read; errors as `replace`."""

    async def remove_turn(self, owner_id: str, turn: ThreadTurn) -> None:
        """Take a turn's row away; an absent one is no error."""

    def unerased(self) -> AsyncIterator[Thread]:
        """Threads of everybody of which something is still to be erased. For maintenance alone."""

    async def forget_before(self, owner_id: str, moment: datetime) -> None:
        """Note that turns asked until `moment` are not to be remembered."""

    async def forgotten_until(self, owner_id: str) -> datetime | None: ...

    def of_owner(self, owner_id: str) -> AsyncIterator[Thread]:
        """Every thread of the owner, also those that are being deleted."""

    async def remove_owner(self, owner_id: str) -> None:
        """Take away every row of the owner that is left."""

    async def ensure_table(self) -> None: ...


class TaskQueues(Protocol):
    """Queues whose messages call functions of the app."""

    async def send(self, queue: str, message: str, delay_s: float = 0.0) -> None:
        """Put a message on a queue; it is seen after `delay_s`. NotFoundError when there is no queue."""

    async def ensure_queues(self, queues: Sequence[str]) -> None:
        """Create those that are missing."""
