"""Fake stores in memory for run records, threads, document states and messages."""

import json
from collections.abc import Iterable, Sequence

from shared.conversations.thread_store import ThreadStore
from shared.documents.state import DocumentState
from shared.documents.state_store import ROW_KEY as DOCUMENT
from shared.documents.state_store import DocumentStore, entity_of, state_of
from shared.platform.queues import PoisonMessage, PoisonQueues, TaskQueues
from shared.runs.models import RunRecord
from shared.runs.revivals import RevivalCount
from shared.runs.run_store import REVIVALS_KEY, ROW_KEY, RunStore, record_of
from tests.fakes.table import InMemoryTable


class InMemoryRunStore(RunStore):
    """The real store over a table in memory."""

    def __init__(self) -> None:
        self.table = InMemoryTable()
        super().__init__(self.table)

    @property
    def records(self) -> dict[str, RunRecord]:
        """The records by run id."""
        rows = [row for (_, key), row in self.table.rows.items() if key == ROW_KEY]
        return {row["PartitionKey"]: record_of(row) for row in rows}

    @property
    def revivals(self) -> dict[str, RevivalCount]:
        """The revival counts by instance id."""
        rows = [row for (_, key), row in self.table.rows.items() if key == REVIVALS_KEY]
        return {row["PartitionKey"]: RevivalCount.from_stored(row["revivals"]) for row in rows}


class InMemoryThreadStore(ThreadStore):
    """The real store over a table in memory."""

    def __init__(self) -> None:
        self.table = InMemoryTable()
        super().__init__(self.table)

    @property
    def thread_ids(self) -> set[str]:
        """The ids of all threads of any owner that have a row or a turn."""
        contents = [json.loads(row["content"]) for row in self.table.rows.values() if "content" in row]
        return {content["thread_id"] for content in contents}


class InMemoryTaskQueues(TaskQueues):
    """Queues of messages in memory, with their delays. Tests take messages out."""

    def __init__(self) -> None:
        self.messages: dict[str, list[tuple[str, float]]] = {}

    async def send(self, queue: str, message: str, delay_s: float = 0.0) -> None:
        self.messages.setdefault(queue, []).append((message, delay_s))

    async def ensure_queues(self, queues: Sequence[str]) -> None:
        for queue in queues:
            self.messages.setdefault(queue, [])

    def take(self, queue: str) -> list[str]:
        """Remove all messages from a queue and return them in order."""
        return [message for message, _ in self.messages.pop(queue, [])]


class InMemoryDocumentStore(DocumentStore):
    """The real store over a table in memory."""

    def __init__(self, states: Iterable[DocumentState] = ()) -> None:
        self.table = InMemoryTable()
        super().__init__(self.table)
        for state in states:
            self.table.store(entity_of(state))

    @property
    def states(self) -> dict[str, DocumentState]:
        """The states by document id."""
        return {doc_id: state_of(row) for (doc_id, key), row in self.table.rows.items() if key == DOCUMENT}


class InMemoryPoisonQueues(PoisonQueues):
    """Poison queues that contain the messages that a test adds."""

    def __init__(self) -> None:
        self.messages: list[PoisonMessage] = []
        self.owners: list[str] = []  # owners of the messages about threads and turns

    async def peek(self) -> list[PoisonMessage]:
        return list(self.messages)

    async def remove_of(self, owner_id: str) -> int:
        before = len(self.owners)
        self.owners = [owner for owner in self.owners if owner != owner_id]
        return before - len(self.owners)
