"""Records of quality in a table: a partition per hour of the question; only ratings change."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Protocol

from pydantic import ValidationError

from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.tables import Entity, Table, delete_hours_before, hour_partition
from shared.quality.models import AnswerRecord, OpeningRecord, QualityRecord, RatingRecord


class QualityStore(Protocol):
    """Records of answers, ratings and openings, by the hour of the question."""

    async def add(self, record: QualityRecord) -> bool:
        """Keep it; False, and nothing changed, when it is there already."""

    async def put_rating(self, rating: RatingRecord) -> None:
        """Keep it in place of the one before."""

    async def remove_rating(self, at: datetime, key: str) -> None:
        """Take it away; an absent one is no error."""

    def between(self, first: datetime, last: datetime) -> AsyncIterator[QualityRecord]:
        """Records of the hours from that of `first` to that of `last`, in any order."""

    async def forget(self, at: datetime, key: str) -> int:
        """Remove all records of one answer, whose question came at `at`; how many."""

    async def delete_before(self, moment: datetime, most: int) -> int:
        """Remove records of hours that ended before `moment`, the oldest first; how many, at most `most`."""


_EVERY = 1_000_000_000  # rows of one deletion: all there are


class TableQualityStore(QualityStore):
    """Records by hour, kind and key; openings by their citation's number, too."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def add(self, record: "QualityRecord") -> bool:
        """Keep it; False when it is there already."""
        try:
            await self._table.insert(_to_entity(record))
        except ConflictError:
            return False
        return True

    async def put_rating(self, rating: "RatingRecord") -> None:
        """Keep it in place of the one before."""
        entity = _to_entity(rating)
        try:
            await self._table.put(entity)
        except NotFoundError:  # there is no table yet
            await self._table.ensure()
            await self._table.put(entity)

    async def remove_rating(self, at: datetime, key: str) -> None:
        """Take it away; an absent one is no error."""
        await self._table.delete(hour_partition(at), f"rating-{key}")

    async def between(self, first: datetime, last: datetime) -> "AsyncIterator[QualityRecord]":
        """Records of these hours; a later version's are passed over."""
        condition = f"PartitionKey ge '{hour_partition(first)}' and PartitionKey le '{hour_partition(last)}'"
        async for entity in self._table.query(condition):
            record = _record(entity["RowKey"], entity["content"])
            if record is not None:
                yield record

    async def forget(self, at: datetime, key: str) -> int:
        """Remove all records of one answer, whose question came at `at`; how many."""
        hour = f"PartitionKey eq '{hour_partition(at)}'"
        rows = [f"RowKey eq 'answer-{key}'", f"RowKey eq 'rating-{key}'"]
        # Row keys of openings end in a number; a dot sorts right behind the dash before it.
        rows.append(f"RowKey gt 'opening-{key}-' and RowKey lt 'opening-{key}.'")
        return sum([await self._table.delete_found(f"{hour} and {row}", _EVERY) for row in rows])

    async def delete_before(self, moment: datetime, most: int) -> int:
        """Remove records of hours that ended before `moment`; how many, at most `most`."""
        return await delete_hours_before(self._table, moment, most)


def _to_entity(record: "QualityRecord") -> Entity:
    place = f"{record.key}-{record.n:04d}" if record.kind == "opening" else record.key
    return {
        "PartitionKey": hour_partition(record.at),
        "RowKey": f"{record.kind}-{place}",
        "content": record.model_dump_json(),
    }


def _record(row_key: str, content: str) -> "QualityRecord | None":
    kinds: dict[str, type[QualityRecord]] = {
        "answer": AnswerRecord,
        "rating": RatingRecord,
        "opening": OpeningRecord,
    }
    kind = kinds.get(row_key.partition("-")[0])
    try:
        return None if kind is None else kind.from_stored(content)
    except ValidationError:
        return None
