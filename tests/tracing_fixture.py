"""Spans in memory, recorded by the fixture `recorded`, which tests import."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from shared.platform import tracing
from shared.platform.trace_export import make_provider


class Recorded:
    """The recorded spans by name."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    @property
    def all(self) -> tuple[ReadableSpan, ...]:
        """Return the spans in the order in which they ended."""
        return self._exporter.get_finished_spans()

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.all]

    def one(self, name: str) -> ReadableSpan:
        """Return the only span with this name."""
        (match,) = (span for span in self.all if span.name == name)
        return match

    def attributes(self, name: str) -> Mapping[str, Any]:
        return self.one(name).attributes or {}

    def parent_of(self, name: str) -> str | None:
        """Return the name of a span's parent if it was recorded, otherwise None."""
        parent = self.one(name).parent
        by_id = {span.context.span_id: span.name for span in self.all if span.context}
        return by_id.get(parent.span_id) if parent else None


StartRecording = Callable[..., Recorded]


@pytest.fixture
def start_recording() -> Iterator[StartRecording]:
    """Yield a function that starts recording, with a given sampling ratio, and with or without content."""

    def start(*, ratio: float = 1.0, with_content: bool = False) -> Recorded:
        exporter = InMemorySpanExporter()
        tracing.start(
            make_provider("test", ratio, [SimpleSpanProcessor(exporter)]), with_content=with_content
        )
        return Recorded(exporter)

    yield start
    tracing.stop()


@pytest.fixture
def recorded(start_recording: StartRecording) -> Recorded:
    """Record all spans, without content."""
    return start_recording()
