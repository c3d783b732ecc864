"""Working memory of one run in the `work` container: one JSON blob per step and kind of result."""

from collections import OrderedDict
from datetime import datetime
from typing import TypeVar
from weakref import WeakKeyDictionary

from shared.access.models import UserContext
from shared.platform.blobs import BlobStore
from shared.platform.errors import NotFoundError
from shared.platform.models import Model
from shared.platform.names import WORK
from shared.platform.telemetry import note_fields
from shared.retrieval.models import DocumentRecord, Hit
from shared.runs.models import Choice, Clarification, ClarificationOption, RunRequest, WritingFacts
from shared.runs.plan import QuestionPlan


class StoredPlan(Model):
    """The plan whole; the loop's state carries only its type, intent and todo list.

    Attributes:
        doc_ids: of the documents that the plan's references mean; empty when they mean none.
        is_choice: a person chose the documents: no search may leave them.
        reference, options: a reference that may mean each of several documents, and these.
        resumed_at: when the run went on after a wait for a person; None = it did not wait.
        asker: whose rights count since then; None = those that the question came with.
        warnings: what did not go as it should, in words.
    """

    plan: QuestionPlan
    doc_ids: tuple[str, ...] = ()
    is_choice: bool = False
    reference: str = ""
    options: tuple[ClarificationOption, ...] = ()
    resumed_at: datetime | None = None
    asker: UserContext | None = None
    warnings: tuple[str, ...] = ()


class Evidence(Model):
    """What an answer may be written from.

    Attributes:
        hits: blocks, best first; empty for listing and metadata questions.
        records: metadata of every document that occurs; for listings in the order to show.
        total: how many documents there are in all, where `records` are the first of them; else None.
        warnings: what did not go as it should, in words.
        unfinished: the search was not waited for to its end, so that nothing here says nothing.
    """

    hits: tuple[Hit, ...] = ()
    records: tuple[DocumentRecord, ...] = ()
    narrowed: bool = False
    total: int | None = None
    warnings: tuple[str, ...] = ()
    unfinished: bool = False


Stored = TypeVar("Stored", bound=Model)
_KEPT = 64  # values in one process: the request, plan and evidence of some twenty runs at once
_recent: WeakKeyDictionary[BlobStore, OrderedDict[str, Model]] = WeakKeyDictionary()


class WorkingMemory:
    """Reads and writes what steps hand on. A step's result is written once, whole: the first one stays."""

    def __init__(self, blobs: BlobStore, run_id: str) -> None:
        self._blobs = blobs
        self._recent = _recent.setdefault(blobs, OrderedDict())
        self.run_id = run_id

    @property
    def folder(self) -> str:
        """How the names of all its blobs begin."""
        return f"runs/{self.run_id}/"

    async def erase(self) -> None:
        """Remove all of it, also what this process remembers."""
        for path in [path for path in self._recent if path.startswith(self.folder)]:
            del self._recent[path]
        await self._blobs.delete_prefix(WORK, self.folder)

    async def put_request(self, request: RunRequest) -> None:
        """Keep the question; done before the orchestration starts."""
        await self._write("request", request)

    async def keep_request(self, request: RunRequest) -> RunRequest:
        """The same for a question that may have come before; gives what is kept, which is the first one."""
        return await self._keep("request", request)

    async def request(self) -> RunRequest:
        """The question. NotFoundError when the run was purged."""
        request = await self._read("request", RunRequest)
        note_fields(thread_id=request.thread_id, user_id=request.user.user_id)
        return request

    async def request_for(self, plan: StoredPlan) -> RunRequest:
        """The question with the rights that count for this plan: of a run that waited, those since then."""
        return (await self.request()).with_rights_of(plan.asker)

    async def put(self, step: int, result: Stored) -> Stored:
        """Keep the result of a step; gives the one that is kept, which may be that of another attempt."""
        return await self._keep(f"{step:03d}", result)

    async def get(self, step: int, kind: type[Stored]) -> Stored:
        """The result of a step. NotFoundError when it has none."""
        return await self._read(f"{step:03d}", kind)

    async def find(self, step: int, kind: type[Stored]) -> Stored | None:
        """The result of a step if an earlier attempt of it got that far."""
        try:
            return await self.get(step, kind)
        except NotFoundError:
            return None

    async def put_facts(self, step: int, facts: WritingFacts) -> None:
        """Keep what is known of the writing of a step's answer; the last attempt counts."""
        await self._write(f"{step:03d}-facts", facts)

    async def find_facts(self, step: int) -> WritingFacts | None:
        """What is known of the writing of a step's answer."""
        try:
            return await self._read(f"{step:03d}-facts", WritingFacts)
        except NotFoundError:
            return None

    async def put_clarification(self, ask_step: int, asked: Clarification) -> Clarification:
        """Keep what a step asked; gives what is kept."""
        return await self._keep(f"{ask_step:03d}-asked", asked)

    async def clarification(self, ask_step: int) -> Clarification:
        """What a step asked. NotFoundError when the run was purged."""
        return await self._read(f"{ask_step:03d}-asked", Clarification)

    async def put_choice(self, ask_step: int, choice: Choice) -> Choice:
        """Keep the answer to what a step asked; gives the first one."""
        return await self._keep(f"{ask_step:03d}-answered", choice)

    async def find_choice(self, ask_step: int) -> Choice | None:
        """The answer to what a step asked, if there is one."""
        try:
            return await self._read(f"{ask_step:03d}-answered", Choice)
        except NotFoundError:
            return None

    async def _keep(self, name: str, value: Stored) -> Stored:
        created = await self._blobs.create(WORK, self._path(name), value.model_dump_json().encode())
        if not created:
            return await self._read(name, type(value))
        self._note(name, value)
        return value

    async def _write(self, name: str, value: Model) -> None:
        await self._blobs.write(WORK, self._path(name), value.model_dump_json().encode())
        self._note(name, value)

    async def _read(self, name: str, kind: type[Stored]) -> Stored:
        known = self._recent.get(self._path(name))
        if isinstance(known, kind):
            return known
        value = kind.from_stored(await self._blobs.read(WORK, self._path(name)))
        self._note(name, value)
        return value

    def _note(self, name: str, value: Model) -> None:
        self._recent[self._path(name)] = value
        self._recent.move_to_end(self._path(name))
        while len(self._recent) > _KEPT:
            self._recent.popitem(last=False)

    def _path(self, name: str) -> str:
        return f"{self.folder}{name}.json"


def answer_path(run_id: str) -> str:
    """Where a run's committed answer lies in the run-log container."""
    return f"{run_id}/answer.json"
