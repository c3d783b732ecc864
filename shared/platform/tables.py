"""Access to table storage: single entities, long texts split across several properties, and records
partitioned by hour.
"""

import heapq
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, Literal, TypeVar

from azure.core import MatchConditions
from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import UpdateMode
from azure.data.tables.aio import TableClient, TableServiceClient
from pydantic import ValidationError

from shared.platform.calls import STORAGE_LIMITS, TABLES, calling, each_within, listed
from shared.platform.connections import Connection
from shared.platform.errors import ConflictError, GroundworkError, NotFoundError
from shared.platform.models import HourRecord
from shared.platform.odata import instant

_MAX_PAGE = 1000  # largest page size that the service allows
_MOST_CHANGES = 100  # the service allows at most this number of operations per transaction
MAX_TEXT_CHARS = 30_000  # maximum length of a property; the service allows 64 KiB in UTF-16
Entity = dict[str, Any]
# Matches characters that the service doesn't allow in keys.
_NO_KEY = re.compile(r"[/\\#?%\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Change:
    """One operation of a transaction. `revision` has the same meaning as in `Table.replace`."""

    kind: Literal["insert", "replace", "delete"]
    entity: Entity
    revision: str | None = None


class Table:
    """Table of the storage account. An entity's revision is its etag."""

    def __init__(
        self,
        connection: Connection[TableServiceClient],
        name: str,
        *,
        timeout_s: float = STORAGE_LIMITS.call_s,
        is_sorted: bool = True,
    ) -> None:
        """Store the connection; no request is sent.

        `timeout_s` limits one call including its retries, or one page of a query. `is_sorted` states whether
        queries return rows in key order, which is true for Table Storage but not for Cosmos DB.
        """
        self._connection = connection
        self._name = name
        self._timeout_s = timeout_s
        self._is_sorted = is_sorted
        self._opened: tuple[TableServiceClient, TableClient] | None = None

    async def ensure(self) -> None:
        """Create the table if it doesn't exist."""
        async with calling(self._connection, TABLES, timeout_s=self._timeout_s) as service:
            await service.create_table_if_not_exists(self._name)

    async def get(self, partition_key: str, row_key: str) -> Mapping[str, Any] | None:
        """Return an entity, or None if the entity or the table doesn't exist."""
        if _NO_KEY.search(partition_key + row_key):
            return None  # The service responds with 5xx to such keys, which may come from ids in requests.
        try:
            async with self._call("get") as table:
                return await table.get_entity(partition_key, row_key)
        except NotFoundError:
            return None

    async def insert(self, entity: Entity) -> str:
        """Insert an entity and return its revision. Raise `ConflictError` if an entity with these keys
        exists.
        """
        async with self._call("insert") as table:
            try:
                done = await table.create_entity(entity)
            except ResourceNotFoundError:
                await self.ensure()
                done = await table.create_entity(entity)
            return str(done["etag"])

    async def replace(self, entity: Entity, revision: str | None = None) -> str:
        """Replace an entity and return its new revision. If `revision` is given, the entity must still have
        it.

        Raises:
            NotFoundError: the entity doesn't exist.
            ConflictError: the entity no longer has this revision.
        """
        async with self._call("replace") as table:
            done = await table.update_entity(entity, mode=UpdateMode.REPLACE, **_match_revision(revision))
            return str(done["etag"])

    async def swap(self, entity: Entity, revision: str | None) -> str:
        """Replace an entity that still has `revision`, or insert it if `revision` is None. Return the new
        revision.

        Raises:
            ConflictError: the entity has been changed, deleted or created in the meantime.
        """
        if revision is None:
            return await self.insert(entity)
        try:
            return await self.replace(entity, revision)
        except NotFoundError:
            raise ConflictError("The record has been deleted.") from None

    async def merge(self, entity: Entity) -> None:
        """Update the given properties of an entity. Raise `NotFoundError` if the entity doesn't exist."""
        async with self._call("merge") as table:
            await table.update_entity(entity, mode=UpdateMode.MERGE)

    async def put(self, entity: Entity) -> str:
        """Insert or replace an entity and return its new revision. Raise `NotFoundError` if the table doesn't
        exist.
        """
        async with self._call("put") as table:
            done = await table.upsert_entity(entity, mode=UpdateMode.REPLACE)
            return str(done["etag"])

    async def delete(self, partition_key: str, row_key: str, revision: str | None = None) -> None:
        """Delete an entity; missing entities are ignored. Raise `ConflictError` if it no longer has
        `revision`.
        """
        async with self._call("delete") as table:
            await table.delete_entity(partition_key, row_key, **_match_revision(revision))

    async def change(self, changes: Sequence[Change]) -> list[str | None]:
        """Apply up to 100 operations on one partition as a transaction. Return each entity's new revision, or
        None for deletions.

        Raises:
            ConflictError: an entity has changed or already exists.
            NotFoundError: an entity or the table doesn't exist.
        """
        async with self._call("change") as table:
            done = await table.submit_transaction([_operation(change) for change in changes])
            return [None if row.get("etag") is None else str(row["etag"]) for row in done]

    async def query(
        self, condition: str = "", *, page_size: int | None = None
    ) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the entities that match an OData filter. An empty filter matches all; a missing table yields
        nothing.
        """
        table = self._client(await self._connection.opened())
        entities = table.query_entities(condition, results_per_page=page_size)
        try:
            async for entity in listed(each_within(self._timeout_s, entities, TABLES), TABLES, "query"):
                yield entity
        except NotFoundError:
            return

    async def delete_before(self, field: str, moment: datetime, most: int) -> int:
        """Delete up to `most` entities whose `field` is earlier than `moment`, and return their number.
        Entities that change concurrently are kept.
        """
        return await self.delete_found(f"{field} lt {instant(moment)}", most)

    async def delete_found(self, condition: str, most: int) -> int:
        """Delete up to `most` entities that match, and return their number. Entities that change concurrently
        are kept.
        """
        deleted = 0
        async for entity in self.query(condition, page_size=min(most, _MAX_PAGE)):
            if deleted == most:
                break
            try:
                await self.delete(entity["PartitionKey"], entity["RowKey"], revision_of(entity))
            except ConflictError:
                continue
            deleted += 1
        return deleted

    async def delete_keys(self, condition: str, most: int) -> int:
        """Delete up to `most` entities that match, even if they change concurrently. Return their number.

        Entities of a partition are deleted in transactions of up to 100.
        """
        keys: defaultdict[str, list[Change]] = defaultdict(list)
        count = 0
        async for entity in self.query(condition):
            key = {"PartitionKey": entity["PartitionKey"], "RowKey": entity["RowKey"]}
            keys[entity["PartitionKey"]].append(Change("delete", key))
            count += 1
            if count == most:
                break
        for changes in keys.values():
            for start in range(0, len(changes), _MOST_CHANGES):
                await self._delete_together(changes[start : start + _MOST_CHANGES])
        return count

    async def _delete_together(self, changes: list[Change]) -> None:
        try:
            await self.change(changes)
        # A concurrent deletion made the whole transaction fail, so delete the entities one by one.
        except NotFoundError:
            for change in changes:
                await self.delete(change.entity["PartitionKey"], change.entity["RowKey"])

    async def first(self, condition: str, count: int) -> list[Mapping[str, Any]]:
        """Return the first `count` entities that match, in row key order. All matches must be in one
        partition.
        """
        if not self._is_sorted:
            everything = [entity async for entity in self.query(condition)]
            return heapq.nsmallest(count, everything, key=lambda entity: str(entity["RowKey"]))
        entities: list[Mapping[str, Any]] = []
        async for entity in self.query(condition, page_size=min(count, _MAX_PAGE)):
            entities.append(entity)
            if len(entities) == count:
                break
        return entities

    @asynccontextmanager
    async def _call(self, operation: str) -> AsyncIterator[TableClient]:
        limit_s = self._timeout_s
        call = calling(self._connection, TABLES, _read_status, timeout_s=limit_s, operation=operation)
        async with call as service:
            yield self._client(service)

    def _client(self, service: TableServiceClient) -> TableClient:
        """Return the client of this table. It is cached, because creating one takes half as long as a
        request.
        """
        if self._opened is None or self._opened[0] is not service:
            self._opened = (service, service.get_table_client(self._name))
        return self._opened[1]


def revision_of(entity: Mapping[str, Any]) -> str:
    """Return the etag of an entity that a query or get returned. The SDK keeps it in `metadata`."""
    metadata: Mapping[str, Any] = getattr(entity, "metadata", {})
    return str(metadata["etag"])


def _operation(change: Change) -> Any:
    if change.kind == "insert":
        return ("create", change.entity)
    if change.kind == "delete":
        return ("delete", change.entity, _match_revision(change.revision))

    return ("update", change.entity, {"mode": UpdateMode.REPLACE, **_match_revision(change.revision)})


def _match_revision(revision: str | None) -> dict[str, Any]:
    if revision is None:
        return {}

    return {"etag": revision, "match_condition": MatchConditions.IfNotModified}


def _read_status(status: int, message: str) -> GroundworkError | None:
    if status == 404:
        return NotFoundError("The record does not exist.")
    return ConflictError("The record has changed or already exists.") if status in (409, 412) else None


def split_text(text: str) -> Entity:
    """Split a text into properties `state_000`, `state_001` and so on, because a property's size is
    limited.
    """
    pieces = range(0, len(text), MAX_TEXT_CHARS)
    return {
        f"state_{number:03d}": text[start : start + MAX_TEXT_CHARS] for number, start in enumerate(pieces)
    }


def joined_text(entity: Mapping[str, Any]) -> str:
    """Return the text that `split_text` has split into properties."""
    return "".join(str(entity[name]) for name in sorted(entity) if name.startswith("state_"))


def hour_partition(moment: datetime) -> str:
    """Return the partition key for the hour of an instant. Keys sort in chronological order."""
    return f"{moment.astimezone(UTC):%Y%m%d%H}"


Record = TypeVar("Record", bound=HourRecord)


class HourRecords(Generic[Record]):
    """Table of write-once records, partitioned by hour."""

    def __init__(self, table: Table, kinds: Sequence[type[Record]]) -> None:
        """Store the table and the record types to read. Records of unknown types are skipped."""
        self._table = table
        self._kinds = {str(kind.model_fields["kind"].default): kind for kind in kinds}

    async def add(self, record: Record) -> bool:
        """Store a record and return True. If a record with the same key exists, return False."""
        try:
            await self._table.insert(self._to_entity(record))
        except ConflictError:
            return False
        return True

    async def between(self, first: datetime, last: datetime) -> AsyncIterator[Record]:
        """Yield the records of every hour from `first` to `last`, both hours included."""
        condition = f"PartitionKey ge '{hour_partition(first)}' and PartitionKey le '{hour_partition(last)}'"
        async for entity in self._table.query(condition):
            record = self.record_of(entity)
            if record is not None:
                yield record

    async def delete_before(self, moment: datetime, most: int) -> int:
        """Delete up to `most` records from the hours before `moment`, and return their number."""
        return await self._table.delete_keys(f"PartitionKey lt '{hour_partition(moment)}'", most)

    def record_of(self, entity: Mapping[str, Any]) -> Record | None:
        """Parse an entity. Return None if its kind or content is unknown, e.g. written by a newer version."""
        kind = self._kinds.get(str(entity["RowKey"]).partition("-")[0])
        try:
            return None if kind is None else kind.from_stored(entity["content"])
        except ValidationError:
            return None

    def _to_entity(self, record: Record) -> Entity:
        content = record.model_dump_json()
        return {"PartitionKey": hour_partition(record.at), "RowKey": record.row_key, "content": content}
