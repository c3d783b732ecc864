"""`DocumentStore` over the aio client of azure-data-tables: one entity per document, changed by its etag only."""

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from shared.clients.connection import Connection
from shared.clients.dependency import TABLES
from shared.clients.translate import azure_errors
from shared.errors import ConflictError, GroundworkError
from shared.models.ingestion import DocumentState
from shared.models.names import DOCUMENTS_TABLE
from shared.ports import DocumentStore

if TYPE_CHECKING:
    from azure.data.tables.aio import TableClient, TableServiceClient

ROW_KEY = "document"
Entity = dict[str, Any]


class TableDocumentStore(DocumentStore):
    """The table `documents`. PartitionKey is the document's id, so that documents spread over its servers."""

    def __init__(self, connection: "Connection[TableServiceClient]", table: str = DOCUMENTS_TABLE) -> None:
        self._connection = connection
        self._table = table

    async def get(self, doc_id: str) -> DocumentState | None:
        """The state with its revision, None when there is none."""
        from azure.core.exceptions import ResourceNotFoundError

        with azure_errors(TABLES):
            try:
                return _from_entity(await self._client().get_entity(doc_id, ROW_KEY))
            except ResourceNotFoundError:
                return None

    async def create(self, state: DocumentState) -> DocumentState:
        """Insert. ConflictError when there is one."""
        with azure_errors(TABLES, _conflict_status):
            written = await self._client().create_entity(_to_entity(state))
        return state.model_copy(update={"revision": written["etag"]})

    async def replace(self, state: DocumentState) -> DocumentState:
        """Overwrite the very row that was read. ConflictError when it is another by now, or gone."""
        from azure.core import MatchConditions
        from azure.data.tables import UpdateMode

        with azure_errors(TABLES, _conflict_status):
            written = await self._client().update_entity(
                _to_entity(state),
                mode=UpdateMode.REPLACE,
                etag=state.revision,
                match_condition=MatchConditions.IfNotModified,
            )
        return state.model_copy(update={"revision": written["etag"]})

    async def delete(self, state: DocumentState) -> None:
        """Remove the very row that was read; gone is no error."""
        from azure.core import MatchConditions

        with azure_errors(TABLES, _conflict_status):
            await self._client().delete_entity(
                state.doc_id, ROW_KEY, etag=state.revision, match_condition=MatchConditions.IfNotModified
            )

    async def all(self) -> AsyncIterator[DocumentState]:
        """Every row, read page by page."""
        with azure_errors(TABLES):
            async for entity in self._client().list_entities():
                yield _from_entity(entity)

    async def ensure_table(self) -> None:
        """Create the table if it is missing."""
        with azure_errors(TABLES):
            await self._connection.client().create_table_if_not_exists(self._table)

    async def close(self) -> None:
        """End the connection."""
        await self._connection.close()

    def _client(self) -> "TableClient":
        return self._connection.client().get_table_client(self._table)


def _to_entity(state: DocumentState) -> Entity:
    """The state as JSON in one column; the columns beside it are for whoever looks at the table."""
    return {
        "PartitionKey": state.doc_id,
        "RowKey": ROW_KEY,
        "blob_name": state.blob_name,
        "status": state.status,
        "updated_at": state.updated_at,
        "state": state.model_dump_json(exclude={"revision"}),
    }


def _from_entity(entity: Mapping[str, Any]) -> DocumentState:
    state = DocumentState.model_validate_json(entity["state"])
    # A TableEntity's own etag, not a column: the SDK keeps it beside the row.
    metadata: Mapping[str, Any] = getattr(entity, "metadata", {})
    return state.model_copy(update={"revision": metadata.get("etag")})


def _conflict_status(status: int, message: str) -> GroundworkError | None:
    del message
    if status in (404, 409, 412):
        return ConflictError("The document's state changed, or went, meanwhile.")
    return None
