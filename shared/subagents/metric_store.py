"""`MetricStore` in a table: a partition per hour, so that time is read, and what is old goes, by hours."""

from datetime import datetime
from typing import TYPE_CHECKING

from pydantic import ValidationError

from shared.platform.errors import ConflictError
from shared.platform.tables import Entity, Table, delete_hours_before, hour_partition
from shared.subagents.metrics import MetricStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from shared.subagents.metrics import MetricRecord


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
        async for entity in self._table.query(f"PartitionKey eq '{hour_partition(hour)}'"):
            record = _record(entity["RowKey"], entity["content"])
            if record is not None:
                yield record

    async def delete_before(self, moment: datetime, most: int) -> int:
        """Remove records of hours that ended before `moment`; how many, at most `most`."""
        return await delete_hours_before(self._table, moment, most)


def _to_entity(record: "MetricRecord") -> Entity:
    return {
        "PartitionKey": hour_partition(record.at),
        "RowKey": f"{record.kind}-{record.key}",
        "content": record.model_dump_json(),
    }


def _record(row_key: str, content: str) -> "MetricRecord | None":
    # Imported when read: who only answers questions never reads one.
    from shared.subagents.metrics import ChildRecord, DecisionRecord

    kind = ChildRecord if row_key.startswith("child-") else DecisionRecord
    try:
        return kind.from_stored(content)
    except ValidationError:
        return None
