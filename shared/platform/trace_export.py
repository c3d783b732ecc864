"""Export of spans and metrics to an OTLP receiver, Application Insights or both.

Both export batches from their own threads, so no request waits. A receiver that is down affects nothing else;
its failure is logged once, and again after it has recovered and failed anew.
"""

import atexit
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from azure.identity import DefaultAzureCredential
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from shared.platform import tracing
from shared.platform.loading import load
from shared.platform.settings import Settings
from shared.platform.telemetry import get_logger

_OTLP = "opentelemetry.exporter.otlp.proto.http"
_MONITOR = "azure.monitor.opentelemetry.exporter"


class ChosenIds(RandomIdGenerator):
    """Span id generator that returns random ids unless an id was set for the next span."""

    def generate_span_id(self) -> int:
        """Return the id set for the next span, otherwise a random one."""
        return tracing.next_span_id.get() or super().generate_span_id()


def make_provider(
    service_name: str, sample_ratio: float, processors: Sequence[SpanProcessor]
) -> TracerProvider:
    """Create a tracer provider. Incoming traces keep their caller's sampling decision."""
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(sample_ratio)),
        resource=resource_of(service_name),
        id_generator=ChosenIds(),
        shutdown_on_exit=False,  # `start_export` shuts it down within a time limit
    )
    for processor in processors:
        provider.add_span_processor(processor)
    return provider


def resource_of(service_name: str) -> Resource:
    """Return the attributes shared by all spans and metrics. The SDK adds OTEL_RESOURCE_ATTRIBUTES."""
    return Resource.create({"service.name": service_name})


EXPORT_TIMEOUT_S = 3  # time limit for a batch with its retries; process exit waits for at most one batch
DELAY_MS = 1_000  # longest delay before a span is exported; a stopping host flushes at once
METRICS_EVERY_MS = 30_000

# Loggers that would log every failed batch, including URLs.
_CHATTY = ("opentelemetry.exporter", "opentelemetry.sdk", "azure.monitor.opentelemetry")


@dataclass(frozen=True)
class Receiver:
    """Destination of spans and metrics."""

    name: str
    spans: SpanExporter
    metrics: MetricExporter


def start_export(settings: Settings) -> Callable[[], None]:
    """Start exporting to the configured receivers. Return a function that stops the export.

    This takes a while: call it off the event loop.
    """
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    receivers = _receivers(settings)
    exporters = [CalmExporter(receiver.spans, receiver.name) for receiver in receivers]
    provider = make_provider(
        settings.telemetry.service_name,
        settings.telemetry.trace_sample_ratio,
        [BatchSpanProcessor(exporter, schedule_delay_millis=DELAY_MS) for exporter in exporters],
    )
    readers = [
        PeriodicExportingMetricReader(receiver.metrics, METRICS_EVERY_MS, EXPORT_TIMEOUT_S * 1000)
        for receiver in receivers
    ]
    meters = MeterProvider(readers, resource_of(settings.telemetry.service_name), shutdown_on_exit=False)
    metrics.set_meter_provider(meters)
    tracing.start(provider, with_content=settings.telemetry.trace_content)

    def end() -> None:
        tracing.stop()
        atexit.unregister(end)
        for exporter in exporters:
            exporter.end_soon()
        provider.shutdown()
        if not any(exporter.is_failing for exporter in exporters):
            meters.shutdown(EXPORT_TIMEOUT_S * 1000)

    atexit.register(end)
    return end


class CalmExporter(SpanExporter):
    """Span exporter that logs an outage of its receiver once and gives up quickly on process exit."""

    def __init__(self, exporter: SpanExporter, receiver: str) -> None:
        self._exporter = exporter
        self._receiver = receiver
        self._is_ending = False
        self.is_failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export a batch of spans. Failures are logged, never raised."""
        if self._is_ending and self.is_failing:
            return SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        except Exception:  # noqa: BLE001  # whatever an exporter raises, traces are not worth more than this
            result = SpanExportResult.FAILURE
        self._note(result is not SpanExportResult.SUCCESS)
        return result

    def end_soon(self) -> None:
        """Make further exports fail at once if the receiver is down. Called when the process exits."""
        self._is_ending = True

    def shutdown(self) -> None:
        """Close the connections of the exporter."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush the wrapped exporter."""
        return self._exporter.force_flush(timeout_millis)

    def _note(self, failed: bool) -> None:
        if failed and not self.is_failing:
            get_logger().warning("telemetry.export_failed", receiver=self._receiver)
        elif self.is_failing and not failed:
            get_logger().info("telemetry.export_resumed", receiver=self._receiver)
        self.is_failing = failed


def _receivers(settings: Settings) -> list[Receiver]:
    """Return the configured receivers. A receiver that can't be created is logged and skipped."""
    candidates = (
        (_otlp, settings.telemetry.otlp_endpoint),
        (_insights, settings.telemetry.connection_string),
    )
    receivers = []
    for make, address in candidates:
        if not address:
            continue
        try:
            receivers.append(make(address, settings))
        except Exception as refused:  # noqa: BLE001  # its text can hold the connection string
            get_logger().error("telemetry.receiver_invalid", error_type=type(refused).__name__)
    return receivers


def _otlp(address: str, settings: Settings) -> Receiver:
    address = address.rstrip("/")
    options: dict[str, Any] = {"headers": settings.telemetry.otlp_headers, "timeout": EXPORT_TIMEOUT_S}
    return Receiver(
        "otlp",
        load(f"{_OTLP}.trace_exporter", "OTLPSpanExporter")(endpoint=f"{address}/v1/traces", **options),
        load(f"{_OTLP}.metric_exporter", "OTLPMetricExporter")(endpoint=f"{address}/v1/metrics", **options),
    )


def _insights(connection_string: str, settings: Settings) -> Receiver:
    # The package reads this on import. Without it, usage statistics are sent to the vendor.
    os.environ.setdefault("APPLICATIONINSIGHTS_STATSBEAT_DISABLED_ALL", "true")
    options: dict[str, Any] = {
        "connection_string": connection_string,
        "disable_offline_storage": True,  # drop unsent data instead of writing it to disk
    }
    credential = _credential(settings)
    if credential is not None:
        options["credential"] = credential
    return Receiver(
        "application insights",
        load(_MONITOR, "AzureMonitorTraceExporter")(**options),
        load(_MONITOR, "AzureMonitorMetricExporter")(**options),
    )


def _credential(settings: Settings) -> DefaultAzureCredential | None:
    """Return the managed identity if the settings require Entra ID authentication, otherwise None."""
    pairs = (pair.partition("=") for pair in (settings.telemetry.authentication_string or "").split(";"))
    options = {name.strip().lower(): value.strip() for name, _, value in pairs}
    if options.get("authorization", "").lower() != "aad":
        return None
    client_id = options.get("clientid") or settings.host.azure_client_id
    return DefaultAzureCredential(managed_identity_client_id=client_id)
