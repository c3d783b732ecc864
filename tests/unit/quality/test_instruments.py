"""The same goes to OpenTelemetry: once, with few attributes, and not before the first record."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint

from shared.quality import recording
from shared.quality.models import AnswerRecord, OpeningRecord, RatingRecord
from shared.quality.recording import keep
from tests.fakes.services import fake_services

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryMetricReader]:
    """OpenTelemetry as a deployment sets it up, for this test alone."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr("opentelemetry.metrics._internal._METER_PROVIDER", provider)
    recording.instruments_of_process.cache_clear()
    yield reader
    recording.instruments_of_process.cache_clear()
    provider.shutdown()


def points(reader: InMemoryMetricReader) -> dict[str, list[tuple[dict[str, Any], float]]]:
    """Each metric's attributes and value; of a histogram the sum."""
    found: dict[str, list[tuple[dict[str, Any], float]]] = {}
    collected = reader.get_metrics_data()
    assert collected is not None
    (scope,) = collected.resource_metrics[0].scope_metrics
    assert scope.scope.name == recording.METER
    for metric in scope.metrics:
        for point in metric.data.data_points:
            assert isinstance(point, NumberDataPoint | HistogramDataPoint)
            value = point.value if isinstance(point, NumberDataPoint) else point.sum
            found.setdefault(metric.name, []).append((dict(point.attributes or {}), value))
    return found


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
    found = points(reader)
    assert found["groundwork.answers"] == [
        ({"outcome": "answered", "asked_back": False, "delegated": False}, 1)
    ]
    assert found["groundwork.answer.duration"] == [({"outcome": "answered"}, 2.0)]
    assert found["groundwork.answer.first_token"] == [({}, 0.5)]
    assert found["groundwork.answer.citations"] == [({"verified": True}, 2), ({"verified": False}, 1)]
    assert found["groundwork.answer.tool_calls"] == [({"success": True}, 1), ({"success": False}, 1)]
    assert found["groundwork.answer.todo_items"] == [({"done": True}, 2), ({"done": False}, 0)]
    assert found["groundwork.answer.figures"] == [({"shown": True}, 1)]
    assert found["groundwork.answer.ratings"] == [({"rating": 4, "thumb": "none"}, 1)]
    assert found["groundwork.answer.openings"] == [({}, 1)]


def test_opentelemetry_is_not_imported_before_the_first_record() -> None:
    program = "import sys, shared.quality.run_quality; print('opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
