"""A table in memory, with the same keys, etags, conditions and transactions as Azure Table Storage."""

import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.tables import Change, Entity, Table, revision_of
from tests.fakes.odata_filter import compile_filter


class _Row(dict[str, Any]):
    """An entity as the SDK returns it, whose etag is metadata and not a property."""

    def __init__(self, entity: Mapping[str, Any], etag: str) -> None:
        super().__init__({name: value for name, value in entity.items() if value is not None})
        self.metadata = {"etag": etag, "timestamp": datetime.now(UTC)}


class InMemoryTable(Table):
    """A table in memory, for use by the app's real stores."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], _Row] = {}
        self._is_sorted = True
        self._etags = itertools.count(1)

    async def ensure(self) -> None:
        """Do nothing, because the table always exists."""

    async def get(self, partition_key: str, row_key: str) -> Mapping[str, Any] | None:
        return self.rows.get((partition_key, row_key))

    async def insert(self, entity: Entity) -> str:
        return (await self.change([Change("insert", entity)]))[0] or ""

    async def replace(self, entity: Entity, revision: str | None = None) -> str:
        return (await self.change([Change("replace", entity, revision)]))[0] or ""

    async def merge(self, entity: Entity) -> None:
        await self.replace({**self.rows.get(_key(entity), {}), **entity})

    async def put(self, entity: Entity) -> str:
        return self.store(entity)

    async def delete(self, partition_key: str, row_key: str, revision: str | None = None) -> None:
        if (partition_key, row_key) in self.rows:
            keys = {"PartitionKey": partition_key, "RowKey": row_key}
            await self.change([Change("delete", keys, revision)])

    async def change(self, changes: Sequence[Change]) -> list[str | None]:
        for change in changes:
            self._check(change)
        return [self._make(change) for change in changes]

    async def query(
        self, condition: str = "", *, page_size: int | None = None
    ) -> AsyncIterator[Mapping[str, Any]]:
        meets = compile_filter(condition or None)
        for _, row in sorted(self.rows.items()):
            if meets({**row, "Timestamp": row.metadata["timestamp"]}):
                yield row

    def _check(self, change: Change) -> None:
        stored = self.rows.get(_key(change.entity))
        if change.kind == "insert":
            if stored is not None:
                raise ConflictError("The record exists already.")
        elif stored is None:
            raise NotFoundError("The record does not exist.")
        elif change.revision not in (None, revision_of(stored)):
            raise ConflictError("The record changed.")

    def _make(self, change: Change) -> str | None:
        if change.kind != "delete":
            return self.store(change.entity)
        del self.rows[_key(change.entity)]
        return None

    def store(self, entity: Entity) -> str:
        row = _Row(entity, f"revision-{next(self._etags)}")
        self.rows[_key(entity)] = row
        return revision_of(row)


def _key(entity: Entity) -> tuple[str, str]:
    return str(entity["PartitionKey"]), str(entity["RowKey"])
