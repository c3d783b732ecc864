"""What is recorded of answers, in memory."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

from shared.quality.models import QualityRecord, RatingRecord
from shared.quality.store import QualityStore


class InMemoryQualityStore(QualityStore):
    """Records by hour, and by kind with key."""

    def __init__(self) -> None:
        self.records: dict[tuple[datetime, str], QualityRecord] = {}

    async def add(self, record: QualityRecord) -> bool:
        if _place(record) in self.records:
            return False
        self.records[_place(record)] = record
        return True

    async def put_rating(self, rating: RatingRecord) -> None:
        self.records[_place(rating)] = rating

    async def remove_rating(self, at: datetime, key: str) -> None:
        self.records.pop((_hour(at), f"rating-{key}"), None)

    async def between(self, first: datetime, last: datetime) -> AsyncIterator[QualityRecord]:
        for (hour, _), record in list(self.records.items()):
            if _hour(first) <= hour <= _hour(last):
                yield record

    async def forget(self, at: datetime, key: str) -> int:
        places = [place for place, one in self.records.items() if (place[0], one.key) == (_hour(at), key)]
        for place in places:
            del self.records[place]
        return len(places)

    async def delete_before(self, moment: datetime, most: int) -> int:
        old = [place for place in self.records if place[0] < _hour(moment)][:most]
        for place in old:
            del self.records[place]
        return len(old)


def _place(record: QualityRecord) -> tuple[datetime, str]:
    number = f"-{record.n}" if record.kind == "opening" else ""
    return _hour(record.at), f"{record.kind}-{record.key}{number}"


def _hour(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
