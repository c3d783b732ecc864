"""Instruments of OpenTelemetry's metrics, each made once: by whatever provider is set by then, or later.

opentelemetry comes with the first instrument, not at start.
"""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram


@cache
def counter(meter: str, name: str, unit: str, description: str) -> "Counter":
    """Counts; its attributes are documented in docs/logs-and-traces.md."""
    from opentelemetry import metrics

    return metrics.get_meter(meter).create_counter(name, unit, description)


@cache
def histogram(meter: str, name: str, unit: str, description: str) -> "Histogram":
    """Measures; as `counter`."""
    from opentelemetry import metrics

    return metrics.get_meter(meter).create_histogram(name, unit, description)
