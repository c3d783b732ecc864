"""Storage of document states in a table. Each document has one entity, whose etag is the revision of its
state.

A state is stored as JSON, split into several properties, because an access list alone can exceed the size
limit of one. Additional columns are for queries and operators.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from shared.documents.open_work_store import OpenWorkStore
from shared.documents.rights import readers_row
from shared.documents.state import DocumentState
from shared.documents.state_index import CHANGES_KEPT, FIRST_PARTITION, StateIndex
from shared.platform.concurrency import run_together
from shared.platform.errors import ConflictError
from shared.platform.tables import Entity, Table, joined_text, revision_of, split_text
from shared.retrieval.document_rows import DocumentRow, DocumentRows

ROW_KEY = "document"


# Number of states read concurrently.
_AT_ONCE = 16
# Number of index rows whose states are read as one batch.
_PAGE = 256


class DocumentStore(DocumentRows):
    """Store for the ingestion states of all documents, including documents that are not in the search index
    yet.

    Each document has its own partition, so that the load is spread over servers. `StateIndex` keeps the keys
    that lists and feeds need.

    Attributes:
        open_work: store for the ingestion backlog.
    """

    def __init__(self, table: Table) -> None:
        self.open_work = OpenWorkStore(table)
        self._table = table
        self._index = StateIndex(table)

    async def get(self, doc_id: str) -> DocumentState | None:
        """Return the state of a document with its revision, or None if there is none."""
        state = await self._read(doc_id)
        if state is not None:
            self._index.note_read(state)
        return state

    async def row(self, doc_id: str) -> DocumentRow | None:
        state = await self._read(doc_id)
        return None if state is None else readers_row(state)

    async def create(self, state: DocumentState) -> DocumentState:
        """Store the state of a new document, and return it with its revision. Raises `ConflictError` if the
        document already has one.
        """
        await self._index.before_write(state)
        revision = await self._table.insert(entity_of(state))
        return state.model_copy(update={"revision": revision})

    async def replace(self, state: DocumentState) -> DocumentState:
        """Replace the stored state of a document, and return the new state with its revision.

        Raises:
            ConflictError: the stored state was changed or deleted after `state.revision`.
        """
        await self._index.before_write(state)
        revision = await self._table.swap(entity_of(state), _revision(state))
        await self._index.after_write(state)
        return state.model_copy(update={"revision": revision})

    async def delete(self, state: DocumentState) -> None:
        """Delete the state of a document. A missing state is ignored. Raises `ConflictError` if it has
        changed since it was read.
        """
        await self._table.delete(state.doc_id, ROW_KEY, _revision(state))
        await self._index.after_delete(state)

    async def all(self, low: str = "", high: str | None = None) -> AsyncIterator[DocumentState]:
        """Yield the states of documents in arbitrary order. The ids can be limited to the range from `low`
        (inclusive) to `high` (exclusive).
        """
        condition = f"PartitionKey ge '{low}' and PartitionKey lt '{high or FIRST_PARTITION}'"
        async for entity in self._table.query(condition):
            yield state_of(entity)

    async def unfinished(self) -> AsyncIterator[DocumentState]:
        """Yield the states of all documents whose ingestion is in progress or has failed."""
        async for state in self._indexed(self._index.unfinished(), lambda one: one.status != "ready"):
            yield state

    async def of_owner(self, user_id: str) -> AsyncIterator[DocumentState]:
        """Yield the states of the documents that the user owns, or will own after a pending change."""
        async for state in self._indexed(self._index.of_owner(user_id), lambda one: user_id in one.owners):
            yield state

    async def _indexed(
        self, index_rows: AsyncIterator[Mapping[str, Any]], is_wanted: Callable[[DocumentState], bool]
    ) -> AsyncIterator[DocumentState]:
        """Yield the states that index rows refer to and that satisfy `is_wanted`. All other index rows are
        superfluous and are deleted.
        """
        rows = [row async for row in index_rows]
        for start in range(0, len(rows), _PAGE):
            page = rows[start : start + _PAGE]
            states = await self._read_all(str(row["RowKey"]) for row in page)
            for row, state in zip(page, states, strict=True):
                if state is not None and is_wanted(state):
                    yield state
                else:
                    await self._index.remove_superfluous(row)

    async def changed_since(self, moment: datetime) -> AsyncIterator[DocumentState]:
        """Yield the states written at `moment` or later, according to their `updated_at`."""
        if datetime.now(UTC) - moment > CHANGES_KEPT:
            async for state in self.all():
                if state.updated_at >= moment:
                    yield state
            return
        doc_ids = await self._index.changed_since(moment)
        for start in range(0, len(doc_ids), _PAGE):
            for changed in await self._read_all(doc_ids[start : start + _PAGE]):
                if changed is not None and changed.updated_at >= moment:
                    yield changed

    async def purge_changes(self, now: datetime, most: int) -> int:
        """Delete at most `most` index rows of changes that are no longer needed, and return the number
        deleted.
        """
        return await self._index.purge(now - 2 * CHANGES_KEPT, most)

    async def _read(self, doc_id: str) -> DocumentState | None:
        entity = await self._table.get(doc_id, ROW_KEY)
        return None if entity is None else state_of(entity)

    async def _read_all(self, doc_ids: Iterable[str]) -> tuple[DocumentState | None, ...]:
        return await run_together(*map(self._read, doc_ids), at_once=_AT_ONCE)

    async def ensure_table(self) -> None:
        """Create the table if it doesn't exist."""
        await self._table.ensure()


def _revision(state: DocumentState) -> str:
    if state.revision is None:
        raise ConflictError("The document's state must be read before it can be replaced.")
    return state.revision


def entity_of(state: DocumentState) -> Entity:
    """Convert a document state to a table entity."""
    return {
        "PartitionKey": state.doc_id,
        "RowKey": ROW_KEY,
        "blob_name": state.blob_name,
        "status": state.status,
        "updated_at": state.updated_at,
        **split_text(state.model_dump_json(exclude={"revision"})),
    }


def state_of(entity: Mapping[str, Any]) -> DocumentState:
    """Convert a table entity to a document state. Its revision is the etag of the entity."""
    state = DocumentState.from_stored(joined_text(entity))
    return state.model_copy(update={"revision": revision_of(entity)})
