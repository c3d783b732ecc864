"""Cached OpenTelemetry instruments, which may be created before or after the meter provider is set.

opentelemetry is imported when the first instrument is created, not at startup.
"""

from functools import cache

from opentelemetry import metrics
from opentelemetry.metrics import Counter, Histogram


@cache
def counter(meter: str, name: str, unit: str, description: str) -> Counter:
    """Return the counter with this name. docs/logs-and-traces.md lists each instrument's attributes."""
    return metrics.get_meter(meter).create_counter(name, unit, description)


@cache
def histogram(meter: str, name: str, unit: str, description: str) -> Histogram:
    """Return the histogram with this name. docs/logs-and-traces.md lists each instrument's attributes."""
    return metrics.get_meter(meter).create_histogram(name, unit, description)
