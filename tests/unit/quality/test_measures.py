"""The measures over a span of time: by the hour of the question, whole days at a time, the newest first."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.quality.measures import quality_metrics
from shared.quality.models import AnswerRecord, OpeningRecord, RatingRecord
from shared.wiring import Services
from tests.fakes.services import fake_services

NOW = datetime(2026, 3, 10, 0, 30, tzinfo=UTC)  # most of a span of hours lies in the day before


async def note(services: Services, key: str, hours_ago: float) -> None:
    at = NOW - timedelta(hours=hours_ago)
    await services.quality.add(AnswerRecord(key=key, at=at, outcome="answered", citations=1))
    await services.quality.add(OpeningRecord(key=key, at=at, n=1))
    await services.quality.put_rating(RatingRecord(key=key, at=at, rating=4))


@pytest.mark.parametrize(("hours", "runs"), [(1, 1), (3, 2), (24, 3), (720, 4)])
async def test_what_is_older_does_not_count(hours: int, runs: int) -> None:
    services = fake_services()
    for key, hours_ago in (("a", 0.2), ("b", 2.9), ("c", 23.9), ("d", 700), ("e", 721)):
        await note(services, key, hours_ago)
    told = await quality_metrics(services.quality, NOW, hours)
    assert (told.answers.runs, told.ratings.rated, told.measures.click_through_rate.of) == (runs, runs, runs)
    assert (told.until, told.since, told.complete) == (NOW, NOW - timedelta(hours=hours), True)


async def test_what_does_not_fit_is_what_is_old_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.quality.measures.MOST_RECORDS", 4)
    services = fake_services()
    for key, hours_ago in (("a", 0.1), ("b", 1), ("c", 49)):
        await note(services, key, hours_ago)
    told = await quality_metrics(services.quality, NOW, 96)
    assert (told.answers.runs, told.complete) == (2, False)
    assert told.since == datetime(2026, 3, 9, tzinfo=UTC)
