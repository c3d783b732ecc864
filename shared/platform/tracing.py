"""Tracing with the OpenTelemetry API.

Nothing is recorded and no SDK imported until `start` is called, which wiring does if a setting asks for it. A
span begins below another one, or with `root` where a trace begins or continues. Elsewhere no span is created,
so that background work such as polling leaves no traces.

Attributes are names, numbers and our own ids, never text of documents or questions. Model input and output is
separate: `content`, which a deployment must enable.
"""

import hashlib
import json
from asyncio import CancelledError
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Literal

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    INVALID_SPAN,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    Tracer,
    TracerProvider,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from shared.platform.errors import CallerError, GroundworkError
from shared.platform.models import Model
from shared.platform.telemetry import add_log_source, redact


class TraceLink(Model):
    """Position of an orchestration in a trace.

    Attributes:
        parent: `traceparent` (W3C Trace Context) of the span that started the orchestration.
        own: `traceparent` of the orchestration's own span, recorded when it ends.
        started_at: with zone.
    """

    parent: str
    own: str
    started_at: datetime


_PROPAGATOR = TraceContextTextMapPropagator()


def context_of(traceparent: str) -> SpanContext:
    """Return the span context of a `traceparent` header. The context is invalid if the header is
    malformed.
    """
    return trace.get_current_span(_context_below(traceparent)).get_span_context()


def link_below(parent: str, instance_id: str, started_at: datetime) -> TraceLink | None:
    """Return the trace position of an orchestration started by `parent`, or None if `parent` is malformed."""
    above = context_of(parent)
    if not above.is_valid:
        return None
    digest = hashlib.sha256(f"{parent} {instance_id}".encode()).digest()
    span_id = int.from_bytes(digest[:8], "big") or 1
    flags = TraceFlags(above.trace_flags & TraceFlags.SAMPLED)
    own = NonRecordingSpan(SpanContext(above.trace_id, span_id, is_remote=False, trace_flags=flags))
    return TraceLink(parent=parent, own=traceparent(own), started_at=started_at)


Value = str | int | float | bool | Sequence[str] | None
Attributes = Mapping[str, Value]
Kind = Literal["internal", "server", "client", "consumer"]
NAME = "groundwork"
MAX_VALUE_CHARS = 256  # limit on the length of an attribute; names and ids are shorter
MAX_CONTENT_CHARS = 20_000  # limit on the content of one event; receivers truncate it at 32 to 64 KB
CONTENT_EVENT = "gen_ai.client.inference.operation.details"
_tracer: Tracer | None = None
_with_content = False
_is_quiet: ContextVar[bool] = ContextVar("spans_quiet", default=False)
next_span_id: ContextVar[int | None] = ContextVar("next_span_id", default=None)
"""The id that the next span gets; read by the provider's generator of ids."""


def set_attributes(span: Span, attributes: Attributes) -> None:
    """Add attributes to a span. Values are redacted and truncated; None values are skipped."""
    if span.is_recording():
        span.set_attributes({name: _short(value) for name, value in attributes.items() if value is not None})


def fail(span: Span, error_type: str) -> None:
    """Mark a span as failed. Only the error type is recorded, because messages may contain private data."""
    if span.is_recording():
        span.set_attribute("error.type", error_type)
        span.set_status(StatusCode.ERROR)


def fail_by(span: Span, error: BaseException) -> None:
    """Record an exception on a span. Caller errors and cancellations don't mark the span as failed."""
    if isinstance(error, CallerError | CancelledError | GeneratorExit):
        set_attributes(span, {"error.type": error_type_of(error)})
    else:
        fail(span, error_type_of(error))


def add_content(span: Span, texts: Mapping[str, str]) -> None:
    """Record the input and output of a model on a span, if TRACE_CONTENT is enabled."""
    if _with_content and span.is_recording():
        cut = {name: redact(text)[:MAX_CONTENT_CHARS] for name, text in texts.items() if text}
        span.add_event(CONTENT_EVENT, cut)


def end(span: Span) -> None:
    """End a span. A second call is ignored."""
    if span.is_recording():
        span.end()


def traceparent(span: Span | None = None) -> str:
    """Return the `traceparent` of a span, by default the current one. It is empty if there is no span."""
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier, trace.set_span_in_context(span or current(), Context()))
    return carrier.get("traceparent", "")


def start(provider: TracerProvider, *, with_content: bool = False) -> None:
    """Start recording spans with this provider."""
    global _tracer, _with_content  # all traced code of this process uses the same tracer
    _tracer, _with_content = provider.get_tracer(NAME), with_content
    add_log_source(_log_fields)


def stop() -> None:
    """Stop recording spans."""
    global _tracer, _with_content
    _tracer, _with_content = None, False


def is_on() -> bool:
    """Return whether spans are being recorded."""
    return _tracer is not None


def wants_content() -> bool:
    """Return whether the input and output of models are being recorded."""
    return _tracer is not None and _with_content


def begin(
    name: str, attributes: Attributes | None = None, kind: Kind = "internal", *, parent: str | None = None
) -> Span:
    """Start a span that the caller must end. Use `inside` to make it the current span.

    Args:
        parent: trace context of the parent; empty = begin a trace. None = the current span, and no span if
            there is none.
    """
    if _tracer is None or (parent is None and (_is_quiet.get() or not traceparent())):
        return INVALID_SPAN
    below = None if parent is None else _context_below(parent)
    new = _tracer.start_span(name, below, SpanKind[kind.upper()])
    set_attributes(new, attributes or {})
    return new


@contextmanager
def span(
    name: str, attributes: Attributes | None = None, kind: Kind = "internal", *, parent: str | None = None
) -> Iterator[Span]:
    """Run a block inside a new span. Takes the same arguments as `begin`."""
    new = begin(name, attributes, kind, parent=parent)
    try:
        with inside(new):
            yield new
    except BaseException as error:
        fail_by(new, error)
        raise
    finally:
        end(new)


def root(
    name: str, kind: Kind, parent: str = "", attributes: Attributes | None = None
) -> AbstractContextManager[Span]:
    """Handle an external request in a span that continues the trace of `parent` or starts a new one."""
    return span(name, attributes, kind, parent=parent)


def inside(span: Span) -> AbstractContextManager[object]:
    """Make a span the current one inside a block."""
    if not span.get_span_context().is_valid:
        return nullcontext()
    return trace.use_span(span, record_exception=False, set_status_on_exception=False)


@contextmanager
def without_spans() -> Iterator[None]:
    """Suppress spans inside a block, e.g. for polling."""
    token = _is_quiet.set(True)
    try:
        yield
    finally:
        _is_quiet.reset(token)


def record(
    name: str, link: TraceLink, attributes: Attributes | None = None, *, error_type: str = "",
    ended_at: datetime | None = None,
) -> None:  # fmt: skip
    """Record the span of an orchestration that has ended, under the id already used by its child spans.

    Recording twice, as after a crash, yields the same span: receivers keep one or show both.
    """
    own = context_of(link.own)
    if _tracer is None or not own.is_valid:
        return
    token = next_span_id.set(own.span_id)
    try:
        new = _tracer.start_span(name, _context_below(link.parent), start_time=_nanoseconds(link.started_at))
    finally:
        next_span_id.reset(token)
    set_attributes(new, attributes or {})
    if error_type:
        fail(new, error_type)
    new.end(_nanoseconds(max(ended_at or datetime.now(UTC), link.started_at)))


def current() -> Span:
    """Return the current span, or an invalid span if nothing is recorded."""
    return INVALID_SPAN if _tracer is None else trace.get_current_span()


def link_to(instance_id: str) -> dict[str, object]:
    """Return the `trace` entry that lets an orchestration's input continue the current trace. Empty without a
    trace.
    """
    if _tracer is None:
        return {}
    link = link_below(traceparent(), instance_id, datetime.now(UTC))
    return {} if link is None else {"trace": link.model_dump(mode="json")}


def note_usage(input_tokens: int | None, output_tokens: int | None, ending: str | None) -> None:
    """Record the token counts and finish reason of a model call on the current span."""
    usage: Attributes = {
        "gen_ai.usage.input_tokens": input_tokens,
        "gen_ai.usage.output_tokens": output_tokens,
        "gen_ai.response.finish_reasons": [ending] if ending else None,
    }
    set_attributes(current(), usage)


def outgoing() -> dict[str, str]:
    """Return trace headers for an outgoing request, or no headers without a trace."""
    here = traceparent()
    return {"traceparent": here} if here else {}


def error_type_of(error: BaseException) -> str:
    """Return the error type for telemetry: the code of a `GroundworkError`, otherwise the class name."""
    return error.code if isinstance(error, GroundworkError) else type(error).__name__


def messages_text(messages: Sequence[tuple[str, str]]) -> str:
    """Return (role, text) messages as JSON in the format of `gen_ai.input.messages`."""
    parts = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in messages]
    return json.dumps(parts, ensure_ascii=False)


def _context_below(parent: str) -> Context:
    """Return the context for child spans of `parent`. A malformed `parent` yields an empty context, which
    starts a new trace.
    """
    return _PROPAGATOR.extract({"traceparent": parent}, Context())


def _log_fields() -> dict[str, str]:
    here = traceparent().split("-")
    return {"trace_id": here[1], "span_id": here[2]} if len(here) == 4 else {}


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1000


def _short(value: str | float | Sequence[str]) -> str | float | Sequence[str]:
    if isinstance(value, str):
        return redact(value[:MAX_VALUE_CHARS])
    return [redact(one[:MAX_VALUE_CHARS]) for one in value] if isinstance(value, Sequence) else value
