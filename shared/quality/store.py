"""Port of quality in use: what is recorded of answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

# For annotations alone: the start of the app need not build every model.
if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

    from shared.quality.models import QualityRecord, RatingRecord


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
