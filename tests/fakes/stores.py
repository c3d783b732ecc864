"""Records of runs, threads, states of documents and messages in memory."""

import itertools
from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from shared.conversations.models import Thread, ThreadPage, ThreadTurn
from shared.conversations.thread_store import ThreadStore
from shared.documents.state import DocumentState, DocumentStore
from shared.platform.errors import CallerError, ConflictError, NotFoundError
from shared.platform.queues import PoisonMessage, PoisonQueues, TaskQueues
from shared.runs.models import Feedback, RunRecord
from shared.runs.run_store import RunStore


class InMemoryRunStore(RunStore):
    """Records by run id."""

    def __init__(self) -> None:
        self.records: dict[str, RunRecord] = {}

    async def create(self, record: RunRecord) -> None:
        if record.run_id in self.records:
            raise ConflictError("A run with this id exists already.")
        self.records[record.run_id] = record

    async def get(self, run_id: str) -> RunRecord | None:
        return self.records.get(run_id)

    async def replace(self, record: RunRecord) -> None:
        if record.run_id not in self.records:
            raise NotFoundError("There is no record of this run.")
        self.records[record.run_id] = record

    async def set_feedback(self, run_id: str, feedback: Feedback | None) -> None:
        if run_id not in self.records:
            raise NotFoundError("There is no record of this run.")
        self.records[run_id] = self.records[run_id].model_copy(update={"feedback": feedback})

    async def delete(self, run_id: str) -> None:
        self.records.pop(run_id, None)

    async def ended_before(self, moment: datetime) -> AsyncIterator[RunRecord]:
        for record in list(self.records.values()):
            if record.has_log and record.finished_at is not None and record.finished_at < moment:
                yield record

    async def of_owner(self, owner_id: str) -> AsyncIterator[RunRecord]:
        for record in list(self.records.values()):
            if record.owner_id == owner_id:
                yield record


class InMemoryThreadStore(ThreadStore):
    """Threads by owner and id, turns by thread and number, each with a revision that changes."""

    def __init__(self) -> None:
        self.threads: dict[tuple[str, str], Thread] = {}
        self.stored_turns: dict[tuple[str, str, int], ThreadTurn] = {}
        self._forgotten: dict[str, datetime] = {}
        self._revisions = itertools.count(1)

    async def create(self, thread: Thread, turn: ThreadTurn | None = None) -> Thread:
        if (thread.owner_id, thread.thread_id) in self.threads:
            raise ConflictError("A thread with this id exists already.")
        return self._store(thread, turn)

    async def get(self, owner_id: str, thread_id: str) -> Thread | None:
        return self.threads.get((owner_id, thread_id))

    async def replace(self, old: Thread, new: Thread, turn: ThreadTurn | None = None) -> Thread:
        stored = self.threads.get((old.owner_id, old.thread_id))
        if stored is None:
            raise NotFoundError("There is no such thread.")
        if stored.revision != old.revision:
            raise ConflictError("The thread changed.")
        return self._store(new, turn)

    async def remove(self, thread: Thread) -> None:
        self.threads.pop((thread.owner_id, thread.thread_id), None)

    async def page(self, owner_id: str, limit: int, cursor: str | None = None) -> ThreadPage:
        if cursor is not None and not cursor.isdecimal():
            raise CallerError("Invalid cursor.", "Send the cursor of the page before, unchanged.")
        mine = [thread for (owner, _), thread in self.threads.items() if owner == owner_id]
        shown = sorted((one for one in mine if not one.is_deleted), key=lambda one: one.updated_at)
        start = int(cursor or 0)
        chosen = tuple(reversed(shown))[start : start + limit]
        more = len(shown) > start + limit
        return ThreadPage(threads=chosen, cursor=str(start + limit) if more else None)

    async def turn(self, owner_id: str, thread_id: str, number: int) -> ThreadTurn | None:
        return self.stored_turns.get((owner_id, thread_id, number))

    async def turns(
        self, owner_id: str, thread_id: str, limit: int, before: int | None = None
    ) -> list[ThreadTurn]:
        found = [
            turn
            for (owner, thread, number), turn in self.stored_turns.items()
            if (owner, thread) == (owner_id, thread_id) and (before is None or number < before)
        ]
        return sorted(found, key=lambda turn: -turn.number)[:limit]

    async def replace_turn(self, owner_id: str, turn: ThreadTurn) -> ThreadTurn:
        stored = self.stored_turns.get((owner_id, turn.thread_id, turn.number))
        if stored is None:
            raise NotFoundError("There is no such turn.")
        if stored.revision != turn.revision:
            raise ConflictError("The turn changed.")
        return self._store_turn(owner_id, turn)

    async def remove_turn(self, owner_id: str, turn: ThreadTurn) -> None:
        self.stored_turns.pop((owner_id, turn.thread_id, turn.number), None)

    async def unerased(self) -> AsyncIterator[Thread]:
        for thread in list(self.threads.values()):
            if thread.is_deleted or thread.erased_count < thread.cleared_count:
                yield thread

    async def forget_before(self, owner_id: str, moment: datetime) -> None:
        self._forgotten[owner_id] = moment

    async def forgotten_until(self, owner_id: str) -> datetime | None:
        return self._forgotten.get(owner_id)

    async def of_owner(self, owner_id: str) -> AsyncIterator[Thread]:
        for (owner, _), thread in list(self.threads.items()):
            if owner == owner_id:
                yield thread

    async def remove_owner(self, owner_id: str) -> None:
        self.threads = {key: one for key, one in self.threads.items() if key[0] != owner_id}
        self.stored_turns = {key: one for key, one in self.stored_turns.items() if key[0] != owner_id}
        self._forgotten.pop(owner_id, None)

    async def ensure_table(self) -> None:
        """Nothing to do: there is always room."""

    def _store(self, thread: Thread, turn: ThreadTurn | None) -> Thread:
        if turn is not None:
            if (thread.owner_id, turn.thread_id, turn.number) in self.stored_turns:
                raise ConflictError("A turn with this number exists already.")
            self._store_turn(thread.owner_id, turn)
        stored = thread.model_copy(update={"revision": self._revision()})
        self.threads[thread.owner_id, thread.thread_id] = stored
        return stored

    def _store_turn(self, owner_id: str, turn: ThreadTurn) -> ThreadTurn:
        stored = turn.model_copy(update={"revision": self._revision()})
        self.stored_turns[owner_id, turn.thread_id, turn.number] = stored
        return stored

    def _revision(self) -> str:
        return f"revision-{next(self._revisions)}"


class InMemoryTaskQueues(TaskQueues):
    """Messages by queue, with their delays; a test takes them out."""

    def __init__(self) -> None:
        self.messages: dict[str, list[tuple[str, float]]] = {}

    async def send(self, queue: str, message: str, delay_s: float = 0.0) -> None:
        self.messages.setdefault(queue, []).append((message, delay_s))

    async def ensure_queues(self, queues: Sequence[str]) -> None:
        for queue in queues:
            self.messages.setdefault(queue, [])

    def take(self, queue: str) -> list[str]:
        """The messages so far, in order; they are gone then."""
        return [message for message, _ in self.messages.pop(queue, [])]


class InMemoryDocumentStore(DocumentStore):
    """States by document id, each with a revision that changes with every write."""

    def __init__(self) -> None:
        self.states: dict[str, DocumentState] = {}
        self._revisions = itertools.count(1)

    async def get(self, doc_id: str) -> DocumentState | None:
        return self.states.get(doc_id)

    async def create(self, state: DocumentState) -> DocumentState:
        if state.doc_id in self.states:
            raise ConflictError("The document has a state already.")
        return self._store(state)

    async def replace(self, state: DocumentState) -> DocumentState:
        self._check(state)
        return self._store(state)

    async def delete(self, state: DocumentState) -> None:
        if state.doc_id in self.states:
            self._check(state)
            del self.states[state.doc_id]

    async def all(self, low: str = "", high: str | None = None) -> AsyncIterator[DocumentState]:
        for doc_id, state in list(self.states.items()):
            if low <= doc_id and (high is None or doc_id < high):
                yield state

    async def unfinished(self) -> AsyncIterator[DocumentState]:
        for state in list(self.states.values()):
            if state.status != "ready":
                yield state

    async def changed_since(self, moment: datetime) -> AsyncIterator[DocumentState]:
        for state in list(self.states.values()):
            if state.updated_at >= moment:
                yield state

    async def ensure_table(self) -> None:
        """Nothing to do: there is always room."""

    def _check(self, state: DocumentState) -> None:
        stored = self.states.get(state.doc_id)
        if stored is None or stored.revision != state.revision:
            raise ConflictError("The document's record changed, or went.")

    def _store(self, state: DocumentState) -> DocumentState:
        stored = state.model_copy(update={"revision": f"revision-{next(self._revisions)}"})
        self.states[state.doc_id] = stored
        return stored


class InMemoryPoisonQueues(PoisonQueues):
    """Messages that a test puts there."""

    def __init__(self) -> None:
        self.messages: list[PoisonMessage] = []
        self.owners: list[str] = []  # of messages about threads and turns

    async def peek(self) -> list[PoisonMessage]:
        return list(self.messages)

    async def remove_of(self, owner_id: str) -> int:
        before = len(self.owners)
        self.owners = [owner for owner in self.owners if owner != owner_id]
        return before - len(self.owners)
