"""Records of quality in a table: a partition per hour of the question; only ratings change."""

from datetime import datetime

from shared.platform.errors import NotFoundError
from shared.platform.tables import HourRecords, Table, hour_partition
from shared.quality.models import AnswerRecord, OpeningRecord, QualityRecord, RatingRecord

_EVERY = 1_000_000_000  # rows of one deletion: all there are


class QualityStore(HourRecords[QualityRecord]):
    """Records of answers, ratings and openings, by the hour of the question.

    Keys are digests of runs.
    """

    def __init__(self, table: Table) -> None:
        super().__init__(table, (AnswerRecord, RatingRecord, OpeningRecord))

    async def put_rating(self, rating: RatingRecord) -> None:
        """Keep it in place of the one before."""
        entity = self._to_entity(rating)
        try:
            await self._table.put(entity)
        except NotFoundError:  # there is no table yet
            await self._table.ensure()
            await self._table.put(entity)

    async def remove_rating(self, at: datetime, key: str) -> None:
        """Take it away; an absent one is no error."""
        await self._table.delete(hour_partition(at), f"rating-{key}")

    async def forget(self, at: datetime, key: str) -> int:
        """Remove all records of one answer, whose question came at `at`; how many."""
        hour = f"PartitionKey eq '{hour_partition(at)}'"
        rows = [f"RowKey eq 'answer-{key}'", f"RowKey eq 'rating-{key}'"]
        # Row keys of openings end in a number; a dot sorts right behind the dash before it.
        rows.append(f"RowKey gt 'opening-{key}-' and RowKey lt 'opening-{key}.'")
        return sum([await self._table.delete_found(f"{hour} and {row}", _EVERY) for row in rows])
