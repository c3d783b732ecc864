"""A receiver of traces and metrics for tests: OTLP over HTTP on loopback, kept in memory."""

import gzip
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.http_server import Answer, HttpServer, Request


@dataclass(frozen=True)
class ReceivedSpan:
    """A received span. Ids are hexadecimal, times are in seconds."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    started: float
    ended: float
    failed: bool
    attributes: Mapping[str, Any]
    events: tuple[tuple[str, Mapping[str, Any]], ...]
    service: str


@dataclass
class Receiver:
    """A receiver of telemetry. `headers` contains the headers of every request received."""

    url: str
    headers: list[Mapping[str, str]] = field(default_factory=list)
    _spans: dict[tuple[str, str], ReceivedSpan] = field(default_factory=dict)
    metrics: set[str] = field(default_factory=set)

    @property
    def spans(self) -> list[ReceivedSpan]:
        """Return each received span once, by start time."""
        return sorted(self._spans.values(), key=lambda span: span.started)

    def of_trace(self, trace_id: str) -> list[ReceivedSpan]:
        """Return the spans of one trace."""
        return [span for span in self.spans if span.trace_id == trace_id]

    def take_spans(self, body: bytes) -> None:
        """Store the spans of one request."""
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = str(_attributes(resource.resource.attributes).get("service.name"))
            for scope in resource.scope_spans:
                for span in scope.spans:
                    received = _received(span, service)
                    self._spans[received.trace_id, received.span_id] = received

    def take_metrics(self, body: bytes) -> None:
        """Store the names of the metrics of one request."""
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            for scope in resource.scope_metrics:
                self.metrics.update(metric.name for metric in scope.metrics)


@contextmanager
def otlp_receiver() -> Iterator[Receiver]:
    """Yield a receiver on a free port."""

    def respond(request: Request) -> Answer:
        compressed = request.headers.get("Content-Encoding") == "gzip"
        receiver.headers.append(dict(request.headers.items()))
        take = {"/v1/traces": receiver.take_spans, "/v1/metrics": receiver.take_metrics}[request.target]
        take(gzip.decompress(request.body) if compressed else request.body)
        return 200, {"Content-Type": "application/x-protobuf"}, b""

    with HttpServer(respond) as server:
        receiver = Receiver(server.url)
        yield receiver


def _received(span: Any, service: str) -> ReceivedSpan:
    return ReceivedSpan(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        kind=span.kind,
        started=span.start_time_unix_nano / 1e9,
        ended=span.end_time_unix_nano / 1e9,
        failed=span.status.code == 2,
        attributes=_attributes(span.attributes),
        events=tuple((event.name, _attributes(event.attributes)) for event in span.events),
        service=service,
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, kind) if kind else None
