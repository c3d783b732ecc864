"""OpenTelemetry metrics, configured as in a deployment but kept in memory for one test."""

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint

from shared.platform import meters

INSTRUMENTS = (meters.counter, meters.histogram)
Points = dict[str, list[tuple[dict[str, Any], float]]]


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryMetricReader]:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr("opentelemetry.metrics._internal._METER_PROVIDER", provider)
    for instrument in INSTRUMENTS:
        instrument.cache_clear()
    yield reader
    for instrument in INSTRUMENTS:
        instrument.cache_clear()
    provider.shutdown()


def points(reader: InMemoryMetricReader, meter: str) -> Points:
    """Return the data points of a meter: for each metric its attributes and value (for histograms, the
    sum).
    """
    values: Points = {}
    collected = reader.get_metrics_data()
    assert collected is not None
    scopes = {scope.scope.name: scope for scope in collected.resource_metrics[0].scope_metrics}
    scope = scopes[meter]
    for metric in scope.metrics:
        for point in metric.data.data_points:
            assert isinstance(point, NumberDataPoint | HistogramDataPoint)
            value = point.value if isinstance(point, NumberDataPoint) else point.sum
            values.setdefault(metric.name, []).append((dict(point.attributes or {}), value))
    return values
