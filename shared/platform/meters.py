"""OpenTelemetry instruments, each created once from whichever provider is set by then or later.

opentelemetry is imported with the first instrument, not at start.
"""

from functools import cache

from opentelemetry import metrics
from opentelemetry.metrics import Counter, Histogram


@cache
def counter(meter: str, name: str, unit: str, description: str) -> Counter:
    """Return a counter; docs/logs-and-traces.md lists its attributes."""
    return metrics.get_meter(meter).create_counter(name, unit, description)


@cache
def histogram(meter: str, name: str, unit: str, description: str) -> Histogram:
    """Return a histogram; docs/logs-and-traces.md lists its attributes."""
    return metrics.get_meter(meter).create_histogram(name, unit, description)
