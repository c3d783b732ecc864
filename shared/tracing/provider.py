"""The provider of spans: our ids, our sampling, our name. Imports the SDK, so it is imported when used.

It is never set as the process's own: SDKs that look for one would add spans with addresses in them.
"""

from collections.abc import Sequence

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from shared.tracing.spans import told_span_id


class ToldIds(RandomIdGenerator):
    """Random ids, unless the next one was told."""

    def generate_span_id(self) -> int:
        """Whoever tells an id takes it back: it is for one span."""
        return told_span_id.get() or super().generate_span_id()


def make_provider(
    service_name: str, sample_ratio: float, processors: Sequence[SpanProcessor]
) -> TracerProvider:
    """A provider whose spans go to `processors`. A trace from outside is sampled as its caller's."""
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(sample_ratio)),
        resource=resource_of(service_name),
        id_generator=ToldIds(),
        shutdown_on_exit=False,  # the export ends it, within a limit
    )
    for processor in processors:
        provider.add_span_processor(processor)
    return provider


def resource_of(service_name: str) -> Resource:
    """What all spans and metrics of the process say of it; OTEL_RESOURCE_ATTRIBUTES is added by the SDK."""
    return Resource.create({"service.name": service_name})
