"""One table of the storage account: entities in and out, with the service's errors translated.

The table is made when the first insert finds none: asking each time would cost a call.
"""

import re
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from shared.clients.connection import Connection
from shared.clients.dependency import TABLES
from shared.clients.translate import azure_errors
from shared.errors import ConflictError, GroundworkError, NotFoundError

if TYPE_CHECKING:
    from azure.data.tables.aio import TableClient, TableServiceClient

MAX_TEXT_CHARS = 30_000  # of one property; the service's limit is 64 KiB in UTF-16

Entity = dict[str, Any]
_NO_KEY = re.compile(r"[/\\#?%\x00-\x1f\x7f-\x9f]")  # characters that no key can hold


class Table:
    """Reads and writes entities. A revision is the service's etag."""

    def __init__(self, connection: "Connection[TableServiceClient]", name: str) -> None:
        self._connection = connection
        self._name = name

    async def ensure(self) -> None:
        """Create the table, unless it exists."""
        with azure_errors(TABLES):
            await self._connection.client().create_table_if_not_exists(self._name)

    async def get(self, partition_key: str, row_key: str) -> Mapping[str, Any] | None:
        """The entity, or None. No table means no entity."""
        from azure.core.exceptions import ResourceNotFoundError

        if _NO_KEY.search(partition_key + row_key):
            return None  # the service answers 5xx to such a key; callers' ids come this far
        with azure_errors(TABLES):
            try:
                return await self._client().get_entity(partition_key, row_key)
            except ResourceNotFoundError:
                return None

    async def insert(self, entity: Entity) -> str:
        """Add it; its revision. ConflictError when its keys are taken."""
        from azure.core.exceptions import ResourceNotFoundError

        with azure_errors(TABLES, _read_status):
            try:
                done = await self._client().create_entity(entity)
            except ResourceNotFoundError:
                await self.ensure()
                done = await self._client().create_entity(entity)
            return str(done["etag"])

    async def replace(self, entity: Entity, revision: str | None = None) -> str:
        """Overwrite it, if it still has `revision` (None = whatever it has); its new revision.

        Raises:
            NotFoundError: there is no such entity.
            ConflictError: it changed.
        """
        from azure.data.tables import UpdateMode

        with azure_errors(TABLES, _read_status):
            done = await self._client().update_entity(
                entity, mode=UpdateMode.REPLACE, **_if_unchanged(revision)
            )
            return str(done["etag"])

    async def delete(self, partition_key: str, row_key: str, revision: str | None = None) -> None:
        """Remove it, if it still has `revision`, else ConflictError; one that is gone is no error."""
        with azure_errors(TABLES, _read_status):
            await self._client().delete_entity(partition_key, row_key, **_if_unchanged(revision))

    async def query(self, condition: str = "") -> AsyncIterator[Mapping[str, Any]]:
        """Entities that meet an OData condition; all when it is empty."""
        from azure.core.exceptions import ResourceNotFoundError

        with azure_errors(TABLES):
            try:
                async for entity in self._client().query_entities(condition):
                    yield entity
            except ResourceNotFoundError:
                return

    def _client(self) -> "TableClient":
        return self._connection.client().get_table_client(self._name)


def _if_unchanged(revision: str | None) -> dict[str, Any]:
    if revision is None:
        return {}
    from azure.core import MatchConditions

    return {"etag": revision, "match_condition": MatchConditions.IfNotModified}


def _read_status(status: int, message: str) -> GroundworkError | None:
    if status == 404:
        return NotFoundError("There is no such record.")
    return ConflictError("The record changed, or exists already.") if status in (409, 412) else None
