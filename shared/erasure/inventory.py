"""Finds what is stored of a person, in every store by their id and never by way of another record.

So it also finds what a crash, a bug or an earlier deletion left without its thread or record. Only reads.
"""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError

from shared.access.models import UserContext
from shared.answering.session import WaitingRun
from shared.conversations.memory import Memories
from shared.conversations.models import Thread
from shared.documents.ids import document_of_blob, is_sidecar
from shared.documents.state import DocumentState
from shared.erasure.models import ErasedCounts, ErasureRecord, OwnDocuments, RunPlace
from shared.erasure.policy import concerns, is_theirs_alone, own_documents
from shared.erasure.services import ErasureServices
from shared.ingestion.uploads import uploads_of
from shared.platform.blobs import BlobStore
from shared.platform.concurrency import run_together
from shared.platform.errors import NotFoundError
from shared.platform.models import Model
from shared.platform.names import DOCUMENTS, WORK
from shared.platform.search import SearchIndex, SearchRequest
from shared.platform.telemetry import get_logger
from shared.runs.models import RunRequest
from shared.summaries.models import SummaryRequest
from shared.summaries.store import FOLDER as SUMMARIES
from shared.teams.models import TakenActivity
from shared.teams.parsing import owner_of
from shared.teams.store import TAKEN_FOLDER, reply_of

Stored = TypeVar("Stored", bound=Model)

_RUNS = "runs/"  # as WorkingMemory and SummaryStore name their blobs
_REQUEST = "/request.json"
_SESSIONS = "sessions/"  # as rag_session.py does
_AT_ONCE = 16  # blobs that are read at the same time (unmeasured; each is a call of some milliseconds)
_PAGE = 1000  # the search service's most
_MAX_SKIP = 100_000  # the service skips no farther; later passes find the rest


@dataclass(frozen=True)
class ErasureFindings:
    """What is to be erased.

    Attributes:
        threads: those that no earlier pass took out of sight.
        runs: by their records, and by working memory without one.
        at_work: how many of the runs.
        messages: blobs of chat messages that wait for their answer.
        sessions: blobs of questions that wait in a program.
        documents: that are to be deleted; empty unless it was asked for.
        sidecars: blobs with access lists of uploads that never came.
        kept: what stays of documents.
    """

    threads: tuple[Thread, ...]
    runs: tuple[RunPlace, ...]
    at_work: int
    summaries: tuple[SummaryRequest, ...]
    memory_count: int
    messages: tuple[str, ...]
    sessions: tuple[str, ...]
    documents: tuple[DocumentState, ...]
    sidecars: tuple[str, ...]
    kept: OwnDocuments

    @property
    def is_empty(self) -> bool:
        """Whether nothing has to go that somebody could have made since the pass before."""
        return not (
            self.threads
            or self.runs
            or self.summaries
            or self.memory_count
            or self.messages
            or self.sessions
            or self.documents
            or self.sidecars
        )

    @property
    def deleting(self) -> tuple[str, ...]:
        """What goes by and by, so that the next pass may find it again."""
        return (*(one.doc_id for one in self.documents), *self.sidecars)

    def counts(self, counted: Collection[str]) -> ErasedCounts:
        """The same in numbers, without those of `deleting` that were counted. 0: counted as it goes."""
        return ErasedCounts(
            threads=len(self.threads),
            runs=len(self.runs),
            runs_at_work=self.at_work,
            summaries=len(self.summaries),
            memories=self.memory_count,
            chat_messages=len(self.messages),
            sessions=len(self.sessions),
            documents=sum(one.doc_id not in counted for one in self.documents),
            unused_uploads=sum(name not in counted for name in self.sidecars),
        )

    @property
    def instances(self) -> tuple[str, ...]:
        """The orchestrations of summaries, and of replies to chat messages; those of runs go with the run."""
        children = (
            f"{one.summary_id}:d{index}" for one in self.summaries for index in range(len(one.order.doc_ids))
        )
        replies = (reply_of(name) for name in self.messages)
        return (*(one.summary_id for one in self.summaries), *children, *replies)


async def look_on(record: ErasureRecord, blobs: BlobStore) -> AsyncIterator[ErasureRecord]:
    """Go on through everybody's working memory, which may be more than one message has time for.

    Yields the record after every handful, with how far it came. Questions without a row are found here alone.
    """
    user_id = record.user_id
    listed = [one.name async for one in blobs.list_blobs(WORK, _RUNS) if one.name.endswith(_REQUEST)]
    names = sorted(name for name in listed if name > record.looked_to)
    for start in range(0, len(names), _AT_ONCE):
        part = names[start : start + _AT_ONCE]
        theirs = await _theirs_of(blobs, part, RunRequest, lambda one: one.user.user_id == user_id)
        working = (*record.working, *(name for name, _ in theirs))
        record = record.model_copy(update={"looked_to": part[-1], "working": working})
        yield record


async def find(record: ErasureRecord, services: ErasureServices) -> ErasureFindings:
    """Look through every store but working memory, which `look_on` has gone through."""
    user_id, blobs = record.user_id, services.blobs
    is_repeated = record.counted > record.passes  # it may have broken off before it came to them
    done = frozenset(() if is_repeated else record.threads)
    threads = [one async for one in services.threads.of_owner(user_id) if one.thread_id not in done]
    records = [one async for one in services.runs.of_owner(user_id)]
    # Read once more: an earlier try of this pass may have erased them.
    requests = await _theirs_of(blobs, record.working, RunRequest, lambda one: one.user.user_id == user_id)
    runs = {one.run_id: one.created_at for one in records}
    runs.update((one.run_id, one.created_at) for _, one in requests)
    summaries = await _theirs(
        blobs, SUMMARIES, SummaryRequest, lambda one: one.user.user_id == user_id, ending=_REQUEST
    )
    messages = await _theirs(blobs, TAKEN_FOLDER, TakenActivity, lambda one: _wrote(one, user_id))
    # By the run alone, which an earlier try of this pass may have erased already.
    theirs = {*runs, *(one.run_id for one in record.runs)}
    sessions = await _theirs(blobs, _SESSIONS, WaitingRun, lambda one: one.run_id in theirs)
    # Of all documents only those that have to do with the person are held: there may be a million others.
    states = [one async for one in services.documents.all() if concerns(one, user_id)]
    alone = tuple(one for one in states if is_theirs_alone(one, user_id))
    return ErasureFindings(
        threads=tuple(threads),
        runs=tuple(RunPlace(run_id=run_id, at=at) for run_id, at in runs.items()),
        at_work=sum(one.finished_at is None for one in records),
        summaries=tuple(one for _, one in summaries),
        memory_count=await _count_memories(user_id, services.memory_index),
        messages=tuple(name for name, _ in messages),
        sessions=tuple(name for name, _ in sessions),
        documents=alone if record.documents == "delete" else (),
        sidecars=tuple([name async for name in _unused_sidecars(user_id, blobs)]),
        kept=own_documents(states, user_id),
    )


def _wrote(taken: TakenActivity, user_id: str) -> bool:
    """Whether the person wrote it, also where several read along; or the owner is such a conversation."""
    said = taken.said
    if said is None:
        return False
    return user_id in (said.sender.object_id, owner_of(said.conversation, said.sender))


async def _theirs(
    blobs: BlobStore, folder: str, kind: type[Stored], is_theirs: Callable[[Stored], bool], ending: str = ""
) -> list[tuple[str, Stored]]:
    """Blobs of the work container, with what they hold, that are the person's. All of the folder are read."""
    names = [one.name async for one in blobs.list_blobs(WORK, folder) if one.name.endswith(ending)]
    return await _theirs_of(blobs, names, kind, is_theirs)


async def _theirs_of(
    blobs: BlobStore, names: Sequence[str], kind: type[Stored], is_theirs: Callable[[Stored], bool]
) -> list[tuple[str, Stored]]:
    found: list[tuple[str, Stored]] = []
    for start in range(0, len(names), _AT_ONCE):
        part = names[start : start + _AT_ONCE]
        read = await run_together(*(_read(blobs, name, kind) for name in part))
        found += [
            (name, one) for name, one in zip(part, read, strict=True) if one is not None and is_theirs(one)
        ]
    return found


async def _read(blobs: BlobStore, name: str, kind: type[Stored]) -> Stored | None:
    try:
        return kind.from_stored(await blobs.read(WORK, name))
    except NotFoundError:
        return None  # it went since it was listed
    except ValidationError:
        get_logger().error("user_erasure.unreadable", kind=kind.__name__)
        return None  # of another version, or broken: whose it is nobody can tell; its retention ends it


async def _count_memories(user_id: str, memory_index: SearchIndex) -> int:
    memories = Memories(memory_index, UserContext(user_id=user_id))
    ids: set[object] = set()
    for skip in range(0, _MAX_SKIP, _PAGE):
        request = SearchRequest(
            select=("memory_id",), order_by=("created_at desc", "memory_id asc"), top=_PAGE, skip=skip
        )
        rows: Sequence[dict[str, object]] = (await memories.search(request)).rows
        ids.update(row["memory_id"] for row in rows)
        if len(rows) < _PAGE:
            break
    return len(ids)


async def _unused_sidecars(user_id: str, blobs: BlobStore) -> AsyncIterator[str]:
    names = {one.name async for one in blobs.list_blobs(DOCUMENTS, uploads_of(user_id))}
    for name in sorted(names):
        if is_sidecar(name) and document_of_blob(name) not in names:
            yield name
