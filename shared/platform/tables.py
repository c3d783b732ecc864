"""Table storage: entities, texts longer than a property, and records by the hour."""

import heapq
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from pydantic import ValidationError

from shared.platform.calls import STORAGE_LIMITS, TABLES, calling, each_within, listed
from shared.platform.errors import ConflictError, GroundworkError, NotFoundError
from shared.platform.models import HourRecord
from shared.platform.odata import instant

if TYPE_CHECKING:
    from azure.data.tables.aio import TableClient, TableServiceClient

    from shared.platform.connections import Connection


_MAX_PAGE = 1000  # the service's limit
_MOST_CHANGES = 100  # of one transaction: the service's limit
MAX_TEXT_CHARS = 30_000  # of one property; the service's limit is 64 KiB in UTF-16
Entity = dict[str, Any]
_NO_KEY = re.compile(r"[/\\#?%\x00-\x1f\x7f-\x9f]")  # characters that no key can hold


@dataclass(frozen=True)
class Change:
    """One of several changes that are made together. `revision` as in `Table.replace`."""

    kind: Literal["insert", "replace", "delete"]
    entity: Entity
    revision: str | None = None


class Table:
    """Reads and writes entities. A revision is the service's etag."""

    def __init__(
        self,
        connection: "Connection[TableServiceClient]",
        name: str,
        *,
        timeout_s: float = STORAGE_LIMITS.call_s,
        is_sorted: bool = True,
    ) -> None:
        """`timeout_s` limits one call with all its tries, or one page of a query.

        `is_sorted`: queries answer in the order of keys. Table Storage does so, Cosmos DB does not.
        """
        self._connection = connection
        self._name = name
        self._timeout_s = timeout_s
        self._is_sorted = is_sorted
        self._opened: tuple[TableServiceClient, TableClient] | None = None

    async def ensure(self) -> None:
        """Create the table, unless it exists."""
        async with calling(self._connection, TABLES, timeout_s=self._timeout_s) as service:
            await service.create_table_if_not_exists(self._name)

    async def get(self, partition_key: str, row_key: str) -> Mapping[str, Any] | None:
        """The entity, or None. No table means no entity."""
        if _NO_KEY.search(partition_key + row_key):
            return None  # the service answers 5xx to such a key; callers' ids come this far
        try:
            async with self._call("get") as table:
                return await table.get_entity(partition_key, row_key)
        except NotFoundError:
            return None

    async def insert(self, entity: Entity) -> str:
        """Add it; its revision. ConflictError when its keys are taken."""
        async with self._call("insert") as table:
            from azure.core.exceptions import ResourceNotFoundError

            try:
                done = await table.create_entity(entity)
            except ResourceNotFoundError:
                await self.ensure()
                done = await table.create_entity(entity)
            return str(done["etag"])

    async def replace(self, entity: Entity, revision: str | None = None) -> str:
        """Overwrite it, if it still has `revision` (None = whatever it has); its new revision.

        Raises:
            NotFoundError: there is no such entity.
            ConflictError: it changed.
        """
        async with self._call("replace") as table:
            from azure.data.tables import UpdateMode

            done = await table.update_entity(entity, mode=UpdateMode.REPLACE, **_if_unchanged(revision))
            return str(done["etag"])

    async def swap(self, entity: Entity, revision: str | None) -> str:
        """Overwrite the version that was read, or with None add it; its new revision.

        Raises:
            ConflictError: it changed, went, or exists already.
        """
        if revision is None:
            return await self.insert(entity)
        try:
            return await self.replace(entity, revision)
        except NotFoundError:
            raise ConflictError("The record is gone.") from None

    async def merge(self, entity: Entity) -> None:
        """Change these of its properties, and no other. NotFoundError when there is no such entity."""
        async with self._call("merge") as table:
            from azure.data.tables import UpdateMode

            await table.update_entity(entity, mode=UpdateMode.MERGE)

    async def put(self, entity: Entity) -> None:
        """Add it, or overwrite what is there. NotFoundError when there is no table."""
        async with self._call("put") as table:
            from azure.data.tables import UpdateMode

            await table.upsert_entity(entity, mode=UpdateMode.REPLACE)

    async def delete(self, partition_key: str, row_key: str, revision: str | None = None) -> None:
        """Remove it, if it still has `revision`, else ConflictError; one that is gone is no error."""
        async with self._call("delete") as table:
            await table.delete_entity(partition_key, row_key, **_if_unchanged(revision))

    async def change(self, changes: Sequence[Change]) -> list[str | None]:
        """Make up to 100 changes of one partition, all or none; new revisions, None for what was deleted.

        Raises:
            ConflictError: an entity changed, or exists already.
            NotFoundError: there is no such entity, or no table.
        """
        async with self._call("change") as table:
            done = await table.submit_transaction([_operation(change) for change in changes])
            return [None if row.get("etag") is None else str(row["etag"]) for row in done]

    async def query(
        self, condition: str = "", *, page_size: int | None = None
    ) -> AsyncIterator[Mapping[str, Any]]:
        """Entities that meet an OData condition; all when it is empty. `page_size`: rows of one call."""
        table = self._client(await self._connection.opened())
        found = table.query_entities(condition, results_per_page=page_size)
        try:
            async for entity in listed(each_within(self._timeout_s, found, TABLES), TABLES, "query"):
                yield entity
        except NotFoundError:
            return

    async def delete_before(self, field: str, moment: datetime, most: int) -> int:
        """Remove entities whose `field` is an earlier instant; as `delete_found`."""
        return await self.delete_found(f"{field} lt {instant(moment)}", most)

    async def delete_found(self, condition: str, most: int) -> int:
        """Remove at most `most` entities that meet the condition and stay unchanged; returns how many."""
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
        """Delete at most `most` entities that meet the condition, whatever they hold now; returns how many.

        Entities of one partition are deleted together.
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
        except NotFoundError:  # another instance deletes, too, and a transaction is all or none
            for change in changes:
                await self.delete(change.entity["PartitionKey"], change.entity["RowKey"])

    async def first(self, condition: str, count: int) -> list[Mapping[str, Any]]:
        """The first `count` entities of one partition that meet the condition, in the order of row keys."""
        if not self._is_sorted:
            everything = [entity async for entity in self.query(condition)]
            return heapq.nsmallest(count, everything, key=lambda entity: str(entity["RowKey"]))
        found: list[Mapping[str, Any]] = []
        async for entity in self.query(condition, page_size=min(count, _MAX_PAGE)):
            found.append(entity)
            if len(found) == count:
                break
        return found

    @asynccontextmanager
    async def _call(self, operation: str) -> "AsyncIterator[TableClient]":
        limit_s = self._timeout_s
        called = calling(self._connection, TABLES, _read_status, timeout_s=limit_s, operation=operation)
        async with called as service:
            yield self._client(service)

    def _client(self, service: "TableServiceClient") -> "TableClient":
        """Made once for each service client: making one costs half as much as the call itself."""
        if self._opened is None or self._opened[0] is not service:
            self._opened = (service, service.get_table_client(self._name))
        return self._opened[1]


def revision_of(entity: Mapping[str, Any]) -> str:
    """The etag of an entity that was read; it is no property of the row: the SDK keeps it in `metadata`."""
    metadata: Mapping[str, Any] = getattr(entity, "metadata", {})
    return str(metadata["etag"])


def _operation(change: Change) -> Any:
    if change.kind == "insert":
        return ("create", change.entity)
    if change.kind == "delete":
        return ("delete", change.entity, _if_unchanged(change.revision))
    from azure.data.tables import UpdateMode

    return ("update", change.entity, {"mode": UpdateMode.REPLACE, **_if_unchanged(change.revision)})


def _if_unchanged(revision: str | None) -> dict[str, Any]:
    if revision is None:
        return {}
    from azure.core import MatchConditions

    return {"etag": revision, "match_condition": MatchConditions.IfNotModified}


def _read_status(status: int, message: str) -> GroundworkError | None:
    if status == 404:
        return NotFoundError("There is no such record.")
    return ConflictError("The record changed, or exists already.") if status in (409, 412) else None


def split_text(text: str) -> Entity:
    """The properties `state_000`, `state_001`, … that hold a text, which may be too long for one."""
    pieces = range(0, len(text), MAX_TEXT_CHARS)
    return {
        f"state_{number:03d}": text[start : start + MAX_TEXT_CHARS] for number, start in enumerate(pieces)
    }


def joined_text(entity: Mapping[str, Any]) -> str:
    """The text that `split_text` made the properties of."""
    return "".join(str(entity[name]) for name in sorted(entity) if name.startswith("state_"))


def hour_partition(moment: datetime) -> str:
    """The key of the partition of this instant's hour; keys sort as hours do."""
    return f"{moment.astimezone(UTC):%Y%m%d%H}"


Record = TypeVar("Record", bound=HourRecord)


class HourRecords(Generic[Record]):
    """Records in a table with a partition per hour."""

    def __init__(self, table: Table, kinds: Sequence[type[Record]]) -> None:
        """`kinds`: all that are read; records of a later version are passed over."""
        self._table = table
        self._kinds = {str(kind.model_fields["kind"].default): kind for kind in kinds}

    async def add(self, record: Record) -> bool:
        """Keep it; False, and nothing changed, when it already exists."""
        try:
            await self._table.insert(self._to_entity(record))
        except ConflictError:
            return False
        return True

    async def between(self, first: datetime, last: datetime) -> AsyncIterator[Record]:
        """Records of the hours from that of `first` to that of `last`."""
        condition = f"PartitionKey ge '{hour_partition(first)}' and PartitionKey le '{hour_partition(last)}'"
        async for entity in self._table.query(condition):
            record = self.record_of(entity)
            if record is not None:
                yield record

    async def delete_before(self, moment: datetime, most: int) -> int:
        """Remove records of hours that ended before `moment`, the oldest first; how many, at most `most`."""
        return await self._table.delete_keys(f"PartitionKey lt '{hour_partition(moment)}'", most)

    def record_of(self, entity: Mapping[str, Any]) -> Record | None:
        """The record that a row holds; None for one of a later version."""
        kind = self._kinds.get(str(entity["RowKey"]).partition("-")[0])
        try:
            return None if kind is None else kind.from_stored(entity["content"])
        except ValidationError:
            return None

    def _to_entity(self, record: Record) -> Entity:
        content = record.model_dump_json()
        return {"PartitionKey": hour_partition(record.at), "RowKey": record.row_key, "content": content}
