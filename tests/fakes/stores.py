"""Records of runs, states of documents and poison messages in memory."""

import itertools
from collections.abc import AsyncIterator
from datetime import datetime

from shared.errors import ConflictError, NotFoundError
from shared.models.ingestion import DocumentState
from shared.models.poison import PoisonMessage
from shared.models.runs import RunRecord
from shared.ports import DocumentStore, PoisonQueues, RunStore


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

    async def all(self) -> AsyncIterator[DocumentState]:
        for state in list(self.states.values()):
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

    async def peek(self) -> list[PoisonMessage]:
        return list(self.messages)
