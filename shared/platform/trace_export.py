"""Where spans and metrics go: an OTLP receiver, Application Insights, or both.

Both leave in batches from threads of their own, so no request waits for them, and a receiver that does not
answer costs them and nothing else: it is logged once, and again after it was there again.
"""

import atexit
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from shared.platform import tracing
from shared.platform.settings import Settings
from shared.platform.telemetry import get_logger

if TYPE_CHECKING:
    from azure.identity import DefaultAzureCredential


class ChosenIds(RandomIdGenerator):
    """Random ids, unless the next one was chosen."""

    def generate_span_id(self) -> int:
        """The chosen id is for one span: its caller takes it back."""
        return tracing.next_span_id.get() or super().generate_span_id()


def make_provider(
    service_name: str, sample_ratio: float, processors: Sequence[SpanProcessor]
) -> TracerProvider:
    """A provider whose spans go to `processors`. A trace from outside is sampled as its caller's."""
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(sample_ratio)),
        resource=resource_of(service_name),
        id_generator=ChosenIds(),
        shutdown_on_exit=False,  # the export ends it, within a limit
    )
    for processor in processors:
        provider.add_span_processor(processor)
    return provider


def resource_of(service_name: str) -> Resource:
    """What all spans and metrics of the process say of it; OTEL_RESOURCE_ATTRIBUTES is added by the SDK."""
    return Resource.create({"service.name": service_name})


EXPORT_TIMEOUT_S = 3  # for one batch with its retries; the end of a process waits for one at most
DELAY_MS = 1_000  # how long a span waits for company; a host that is stopped has it sent at once
METRICS_EVERY_MS = 30_000

# Each failing batch would have its own lines, with addresses in them.
_CHATTY = ("opentelemetry.exporter", "opentelemetry.sdk", "azure.monitor.opentelemetry")


@dataclass(frozen=True)
class Receiver:
    """One place that takes spans and metrics."""

    name: str
    spans: SpanExporter
    metrics: MetricExporter


def start_export(settings: Settings) -> Callable[[], None]:
    """Send what is recorded from now on to where the settings say; gives what ends it.

    Takes a while: call it off the event loop.
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
    """Says once that a receiver does not answer, and at the end of the process does not insist."""

    def __init__(self, exporter: SpanExporter, receiver: str) -> None:
        self._exporter = exporter
        self._receiver = receiver
        self._is_ending = False
        self.is_failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch; never raises."""
        if self._is_ending and self.is_failing:
            return SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        except Exception:  # noqa: BLE001  # whatever an exporter raises, traces are not worth more than this
            result = SpanExportResult.FAILURE
        self._note(result is not SpanExportResult.SUCCESS)
        return result

    def end_soon(self) -> None:
        """The process ends: what cannot be sent at once is given up."""
        self._is_ending = True

    def shutdown(self) -> None:
        """End the exporter's connections."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing waits here."""
        return self._exporter.force_flush(timeout_millis)

    def _note(self, failed: bool) -> None:
        if failed and not self.is_failing:
            get_logger().warning("telemetry.export_failed", receiver=self._receiver)
        elif self.is_failing and not failed:
            get_logger().info("telemetry.export_resumed", receiver=self._receiver)
        self.is_failing = failed


def _receivers(settings: Settings) -> list[Receiver]:
    """Those that the settings name; one that cannot be made is logged, and is no reason not to start."""
    wanted = (
        (_otlp, settings.telemetry.otlp_endpoint),
        (_insights, settings.telemetry.connection_string),
    )
    found = []
    for make, address in wanted:
        if not address:
            continue
        try:
            found.append(make(address, settings))
        except Exception as refused:  # noqa: BLE001  # its text can hold the connection string
            get_logger().error("telemetry.receiver_invalid", error_type=type(refused).__name__)
    return found


def _otlp(address: str, settings: Settings) -> Receiver:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    address = address.rstrip("/")
    options: dict[str, Any] = {"headers": settings.telemetry.otlp_headers, "timeout": EXPORT_TIMEOUT_S}
    return Receiver(
        "otlp",
        OTLPSpanExporter(endpoint=f"{address}/v1/traces", **options),
        OTLPMetricExporter(endpoint=f"{address}/v1/metrics", **options),
    )


def _insights(connection_string: str, settings: Settings) -> Receiver:
    # Read when the package is imported: without it, it reports on its own use to its maker.
    os.environ.setdefault("APPLICATIONINSIGHTS_STATSBEAT_DISABLED_ALL", "true")
    from azure.monitor.opentelemetry.exporter import AzureMonitorMetricExporter, AzureMonitorTraceExporter

    options: dict[str, Any] = {
        "connection_string": connection_string,
        "disable_offline_storage": True,  # what cannot be sent is given up, and never lies on a disk
    }
    credential = _credential(settings)
    if credential is not None:
        options["credential"] = credential
    return Receiver(
        "application insights",
        AzureMonitorTraceExporter(**options),
        AzureMonitorMetricExporter(**options),
    )


def _credential(settings: Settings) -> "DefaultAzureCredential | None":
    """The managed identity where the platform's own setting says that keys are not taken."""
    pairs = (pair.partition("=") for pair in (settings.telemetry.authentication_string or "").split(";"))
    said = {name.strip().lower(): value.strip() for name, _, value in pairs}
    if said.get("authorization", "").lower() != "aad":
        return None
    from azure.identity import DefaultAzureCredential

    client_id = said.get("clientid") or settings.host.azure_client_id
    return DefaultAzureCredential(managed_identity_client_id=client_id)
