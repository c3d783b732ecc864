"""States of documents in a table: one entity per document, whose etag is the revision of the state.

The state is kept as JSON, in as many properties as its length asks for: an access list alone can outgrow one.
Next to it are the columns that a query or an operator looks at.
"""

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any

from shared.documents.state import DocumentState
from shared.platform.errors import ConflictError
from shared.platform.odata import instant
from shared.platform.tables import Entity, Table, joined_text, revision_of, split_text

ROW_KEY = "document"


class DocumentStore:
    """The ingestion state of each document; the indexes know a document only once it can be searched.

    The partition is the document, so that they spread over the servers.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    async def get(self, doc_id: str) -> DocumentState | None:
        """The state with its revision, or None."""
        entity = await self._table.get(doc_id, ROW_KEY)
        return None if entity is None else state_of(entity)

    async def create(self, state: DocumentState) -> DocumentState:
        """The state as stored, with its revision. ConflictError when the document has one."""
        revision = await self._table.insert(_to_entity(state))
        return state.model_copy(update={"revision": revision})

    async def replace(self, state: DocumentState) -> DocumentState:
        """The state as stored. ConflictError when it changed, or went, since `state.revision` was read."""
        revision = await self._table.swap(_to_entity(state), _revision(state))
        return state.model_copy(update={"revision": revision})

    async def delete(self, state: DocumentState) -> None:
        """Remove it; one that is gone is no error. ConflictError when it changed since it was read."""
        await self._table.delete(state.doc_id, ROW_KEY, _revision(state))

    async def all(self, low: str = "", high: str | None = None) -> AsyncIterator[DocumentState]:
        """States of documents with ids from `low` to before `high` (None = to the last), in no order."""
        below = "" if high is None else f" and PartitionKey lt '{high}'"
        async for entity in self._table.query(f"PartitionKey ge '{low}'{below}"):
            yield state_of(entity)

    async def unfinished(self) -> AsyncIterator[DocumentState]:
        """States of documents that are in work or failed: those that the index does not know."""
        async for entity in self._table.query("status ne 'ready'"):
            yield state_of(entity)

    async def changed_since(self, moment: datetime) -> AsyncIterator[DocumentState]:
        """States that were written at `moment` or later, by their own clock (`updated_at`)."""
        async for entity in self._table.query(f"updated_at ge {instant(moment)}"):
            state = state_of(entity)
            if state.updated_at >= moment:  # the emulator compares milliseconds only
                yield state

    async def ensure_table(self) -> None:
        """Create the table, unless it exists."""
        await self._table.ensure()


def _revision(state: DocumentState) -> str:
    if state.revision is None:
        raise ConflictError("The document's record was never read.")
    return state.revision


def _to_entity(state: DocumentState) -> Entity:
    return {
        "PartitionKey": state.doc_id,
        "RowKey": ROW_KEY,
        "blob_name": state.blob_name,
        "status": state.status,
        "updated_at": state.updated_at,
        **split_text(state.model_dump_json(exclude={"revision"})),
    }


def state_of(entity: Mapping[str, Any]) -> DocumentState:
    """The state that a row holds, with its revision."""
    state = DocumentState.from_stored(joined_text(entity))
    return state.model_copy(update={"revision": revision_of(entity)})
