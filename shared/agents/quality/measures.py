"""How answers did in use, over a span of time, for administrators."""

from datetime import UTC, datetime, timedelta

from shared.core.quality import QualitySums
from shared.models.quality import QualityMetrics, QualityRecord
from shared.services import Services

MOST_RECORDS = 100_000  # of one summary: 1.6 s of work and 160 MB, beside the reading
_DAY = timedelta(days=1)


async def quality_metrics(
    services: Services, now: datetime, hours: int, project_id: str | None = None
) -> QualityMetrics:
    """The measures of questions of the last `hours`. GroundworkError when the records cannot be read."""
    since, seen = now - timedelta(hours=hours), 0
    sums, day = (
        QualitySums(project_id),
        now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0),
    )
    covered = now
    # The newest day first: what does not fit is what is old. All records of a run are of one day.
    while day + _DAY > since and seen < MOST_RECORDS:
        records = await _of_day(services, max(day, since), min(day + _DAY, now))
        sums.add(records)
        seen += len(records)
        covered = max(day, since)
        day -= _DAY
    return QualityMetrics(
        since=covered,
        until=now,
        complete=covered == since,
        project_id=project_id,
        answers=sums.counts(),
        ratings=sums.said(),
        times=sums.times(),
        measures=sums.measures(),
    )


async def purge_old_quality(now: datetime, services: Services, most: int = 10_000) -> int:
    """Take away records older than RUN_RETENTION_DAYS; how many, at most `most`. The next call goes on."""
    limit = now - timedelta(days=services.settings.run_retention_days)
    return await services.quality.delete_before(limit, most)


async def _of_day(services: Services, first: datetime, last: datetime) -> list[QualityRecord]:
    """Records of questions from `first` until before `last`."""
    found = services.quality.between(first, last)
    return [record async for record in found if first <= record.at < last]
