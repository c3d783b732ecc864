"""Tests for exporting records to OpenTelemetry: once each, with few attributes, and created lazily."""

from datetime import UTC, datetime

from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from shared.quality import recording
from shared.quality.models import AnswerRecord, OpeningRecord, RatingRecord
from shared.quality.recording import keep
from tests.fakes.services import fake_services
from tests.metrics_fixture import points, reader

__all__ = ["reader"]

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


async def test_what_is_kept_is_counted_once(reader: InMemoryMetricReader) -> None:
    services = fake_services()
    answer = AnswerRecord(
        key="a",
        at=NOON,
        outcome="answered",
        plan_items=2,
        plan_items_done=2,
        figures_available=2,
        figures_shown=1,
        citations=3,
        citations_verified=2,
        tool_calls=2,
        tool_calls_succeeded=1,
        latency_ms=2000,
        first_token_ms=500,
    )
    for _ in range(2):
        await keep(answer, services.quality)
        await keep(OpeningRecord(key="a", at=NOON, n=1), services.quality)
    await recording.count(RatingRecord(key="a", at=NOON, rating=4))
    metrics = points(reader, recording.METER)
    assert metrics["groundwork.answers"] == [
        ({"outcome": "answered", "asked_back": False, "delegated": False}, 1)
    ]
    assert metrics["groundwork.answer.duration"] == [({"outcome": "answered"}, 2.0)]
    assert metrics["groundwork.answer.first_token"] == [({}, 0.5)]
    assert metrics["groundwork.answer.citations"] == [({"verified": True}, 2), ({"verified": False}, 1)]
    assert metrics["groundwork.answer.tool_calls"] == [({"success": True}, 1), ({"success": False}, 1)]
    assert metrics["groundwork.answer.todo_items"] == [({"done": True}, 2), ({"done": False}, 0)]
    assert metrics["groundwork.answer.figures"] == [({"shown": True}, 1)]
    assert metrics["groundwork.answer.ratings"] == [({"rating": 4, "thumb": "none"}, 1)]
    assert metrics["groundwork.answer.openings"] == [({}, 1)]
