"""`MetricStore` in a table: a partition per hour, so that time is read, and what is old goes, by hours."""

from collections import defaultdict
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import ValidationError

from shared.clients.tables import Change, Entity, Table
from shared.errors import ConflictError, NotFoundError
from shared.ports import MetricStore

if TYPE_CHECKING:
    from shared.models.subagent_metrics import MetricRecord

_MOST_CHANGES = 100  # of one transaction: the service's limit


class TableMetricStore(MetricStore):
    """Records by hour, kind and key."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def add(self, record: "MetricRecord") -> bool:
        """Keep it; False when there is one of this hour, kind and key already."""
        try:
            await self._table.insert(_to_entity(record))
        except ConflictError:
            return False
        return True

    async def of_hour(self, hour: datetime) -> "AsyncIterator[MetricRecord]":
        """Records whose `at` is within the hour that begins then; a later version's are passed over."""
        async for entity in self._table.query(f"PartitionKey eq '{_partition(hour)}'"):
            record = _record(entity["RowKey"], entity["content"])
            if record is not None:
                yield record

    async def delete_before(self, moment: datetime, most: int) -> int:
        """Remove records of hours that ended before `moment`; how many, at most `most`."""
        found: defaultdict[str, list[Change]] = defaultdict(list)
        count = 0
        async for entity in self._table.query(f"PartitionKey lt '{_partition(moment)}'"):
            keys = {"PartitionKey": entity["PartitionKey"], "RowKey": entity["RowKey"]}
            found[entity["PartitionKey"]].append(Change("delete", keys))
            count += 1
            if count == most:
                break
        for changes in found.values():
            for start in range(0, len(changes), _MOST_CHANGES):
                await self._delete(changes[start : start + _MOST_CHANGES])
        return count

    async def _delete(self, changes: list[Change]) -> None:
        try:
            await self._table.change(changes)
        except NotFoundError:  # another instance deletes, too, and a transaction is all or none
            for change in changes:
                await self._table.delete(change.entity["PartitionKey"], change.entity["RowKey"])


def _partition(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y%m%d%H}"


def _to_entity(record: "MetricRecord") -> Entity:
    return {
        "PartitionKey": _partition(record.at),
        "RowKey": f"{record.kind}-{record.key}",
        "content": record.model_dump_json(),
    }


def _record(row_key: str, content: str) -> "MetricRecord | None":
    # Imported when read: who only answers questions never reads one.
    from shared.models.subagent_metrics import ChildRecord, DecisionRecord

    kind = ChildRecord if row_key.startswith("child-") else DecisionRecord
    try:
        return kind.model_validate_json(content)
    except ValidationError:
        return None
