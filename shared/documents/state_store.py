"""`DocumentStore` in a table: one entity per document, whose etag is the revision of the state.

The state is kept as JSON, in as many properties as its length asks for: an access list alone can outgrow one.
Beside it stand the columns that a query or an operator looks at.
"""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

from shared.documents.state import DocumentState, DocumentStore
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.tables import MAX_TEXT_CHARS, Entity, Table

ROW_KEY = "document"


class TableDocumentStore(DocumentStore):
    """Ingestion states. The partition is the document, so that they spread over the servers."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def get(self, doc_id: str) -> DocumentState | None:
        """The state with its revision, or None."""
        entity = await self._table.get(doc_id, ROW_KEY)
        return None if entity is None else _from_entity(entity)

    async def create(self, state: DocumentState) -> DocumentState:
        """The state as stored. ConflictError when the document has one."""
        revision = await self._table.insert(_to_entity(state))
        return state.model_copy(update={"revision": revision})

    async def replace(self, state: DocumentState) -> DocumentState:
        """The state as stored. ConflictError when it changed, or went, since it was read."""
        try:
            revision = await self._table.replace(_to_entity(state), _revision(state))
        except NotFoundError:
            raise ConflictError("The document's record is gone.") from None
        return state.model_copy(update={"revision": revision})

    async def delete(self, state: DocumentState) -> None:
        """Remove it; one that is gone is no error. ConflictError when it changed since it was read."""
        await self._table.delete(state.doc_id, ROW_KEY, _revision(state))

    async def all(self, low: str = "", high: str | None = None) -> AsyncIterator[DocumentState]:
        """States of documents with ids from `low` to before `high`: a range of partitions."""
        below = "" if high is None else f" and PartitionKey lt '{high}'"
        async for entity in self._table.query(f"PartitionKey ge '{low}'{below}"):
            yield _from_entity(entity)

    async def unfinished(self) -> AsyncIterator[DocumentState]:
        """States of documents that are in work or failed."""
        async for entity in self._table.query("status ne 'ready'"):
            yield _from_entity(entity)

    async def changed_since(self, moment: datetime) -> AsyncIterator[DocumentState]:
        """States that were written at `moment` or later."""
        instant = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        async for entity in self._table.query(f"updated_at ge datetime'{instant}'"):
            state = _from_entity(entity)
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
    text = state.model_dump_json(exclude={"revision"})
    pieces = [text[start : start + MAX_TEXT_CHARS] for start in range(0, len(text), MAX_TEXT_CHARS)]
    return {
        "PartitionKey": state.doc_id,
        "RowKey": ROW_KEY,
        "blob_name": state.blob_name,
        "status": state.status,
        "updated_at": state.updated_at,
        **{f"state_{number:03d}": piece for number, piece in enumerate(pieces)},
    }


def _from_entity(entity: Mapping[str, Any]) -> DocumentState:
    names = sorted(name for name in entity if name.startswith("state_"))
    state = DocumentState.from_stored("".join(entity[name] for name in names))
    # The etag is no property of the row: the SDK keeps it beside.
    metadata: Mapping[str, Any] = getattr(entity, "metadata", {})
    return state.model_copy(update={"revision": metadata["etag"]})
