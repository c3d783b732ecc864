"""Storage of quality records, with one table partition per hour in which a question was asked. Only ratings
are ever updated.
"""

from datetime import datetime

from shared.platform.errors import NotFoundError
from shared.platform.tables import HourRecords, Table, hour_partition
from shared.quality.models import AnswerRecord, OpeningRecord, QualityRecord, RatingRecord

_EVERY = 1_000_000_000  # no limit on deleted rows


class QualityStore(HourRecords[QualityRecord]):
    """Storage of records of answers, ratings and opened sources, keyed by the hour of the question and a
    digest of the run id.
    """

    def __init__(self, table: Table) -> None:
        super().__init__(table, (AnswerRecord, RatingRecord, OpeningRecord))

    async def put_rating(self, rating: RatingRecord) -> None:
        """Store a rating, replacing an earlier one."""
        entity = self._to_entity(rating)
        try:
            await self._table.put(entity)
        except NotFoundError:  # the table doesn't exist yet
            await self._table.ensure()
            await self._table.put(entity)

    async def remove_rating(self, at: datetime, key: str) -> None:
        """Delete a rating. Missing ratings are ignored."""
        await self._table.delete(hour_partition(at), f"rating-{key}")

    async def forget(self, at: datetime, key: str) -> int:
        """Delete all records of an answer whose question was asked at `at`. Return their number."""
        hour = f"PartitionKey eq '{hour_partition(at)}'"
        rows = [f"RowKey eq 'answer-{key}'", f"RowKey eq 'rating-{key}'"]
        # Row keys of opened sources end in a dash and the citation number; a dot sorts right after the dash.
        rows.append(f"RowKey gt 'opening-{key}-' and RowKey lt 'opening-{key}.'")
        return sum([await self._table.delete_found(f"{hour} and {row}", _EVERY) for row in rows])
