"""`DocumentStore` in a table: one entity per document, changed only by who read its last revision."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from shared.clients.tables import MAX_TEXT_CHARS, Entity, Table
from shared.errors import ConflictError, NotFoundError
from shared.models.ingestion import DocumentState
from shared.ports import DocumentStore

ROW_KEY = "document"


class TableDocumentStore(DocumentStore):
    """States of documents. The partition is the document: documents spread over the servers."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def get(self, doc_id: str) -> DocumentState | None:
        """The state with its revision, or None."""
        entity = await self._table.get(doc_id, ROW_KEY)
        return None if entity is None else _from_entity(entity)

    async def create(self, state: DocumentState) -> DocumentState:
        """ConflictError when the document has one."""
        return state.model_copy(update={"revision": await self._table.insert(_to_entity(state))})

    async def replace(self, state: DocumentState) -> DocumentState:
        """Overwrite the very row that was read. ConflictError when it is another by now, or gone."""
        try:
            revision = await self._table.replace(_to_entity(state), state.revision)
        except NotFoundError:
            raise ConflictError("The document's state was removed meanwhile.") from None
        return state.model_copy(update={"revision": revision})

    async def delete(self, state: DocumentState) -> None:
        """Remove the very row that was read; one that is gone is no error."""
        try:
            await self._table.delete(state.doc_id, ROW_KEY, state.revision)
        except NotFoundError:
            return

    async def all(self) -> AsyncIterator[DocumentState]:
        """Every state, read page by page."""
        async for entity in self._table.query():
            yield _from_entity(entity)

    async def unfinished(self) -> AsyncIterator[DocumentState]:
        """Those in work or failed."""
        async for entity in self._table.query("status ne 'ready'"):
            yield _from_entity(entity)

    async def ensure_table(self) -> None:
        """Create the table, unless it exists."""
        await self._table.ensure()


def _to_entity(state: DocumentState) -> Entity:
    """The state as JSON, cut into as many columns as it takes; those beside it are for queries and people."""
    text = state.model_dump_json(exclude={"revision"})
    parts = [text[start : start + MAX_TEXT_CHARS] for start in range(0, len(text), MAX_TEXT_CHARS)]
    return {
        "PartitionKey": state.doc_id,
        "RowKey": ROW_KEY,
        "blob_name": state.blob_name,
        "status": state.status,
        "updated_at": state.updated_at,
        **{_column(number): part for number, part in enumerate(parts)},
    }


def _from_entity(entity: Mapping[str, Any]) -> DocumentState:
    parts = []
    while (column := _column(len(parts))) in entity:
        parts.append(entity[column])
    # The SDK keeps the etag beside the columns, as metadata of its own entity type.
    metadata: Mapping[str, Any] = getattr(entity, "metadata", {})
    state = DocumentState.model_validate_json("".join(parts))
    return state.model_copy(update={"revision": metadata.get("etag")})


def _column(number: int) -> str:
    return f"state_{number}"
