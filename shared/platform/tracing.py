"""Spans: what was done, for how long, below what. The only module that knows opentelemetry's traces.

Nothing is imported and nothing recorded until `start` is called, which wiring does if a setting asks for it.
A span begins below another one, or where a trace begins or continues: `root`. Elsewhere there is
none, so that background work (polling, getting ready) leaves no traces.

Never text of documents or of questions: attributes are names, numbers and ids of ours. What models read
and write is another matter: `content`, which a deployment has to ask for.
"""

import hashlib
import json
import re
from asyncio import CancelledError
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from shared.platform.errors import CallerError, GroundworkError
from shared.platform.models import Model
from shared.platform.telemetry import add_log_source, redact

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span as RecordedSpan
    from opentelemetry.trace import Tracer, TracerProvider


class TraceLink(Model):
    """The place of one orchestration in a trace. Random ids and an instant, nothing else.

    Attributes:
        parent: `traceparent` (W3C Trace Context) of what started the orchestration.
        own: that of the orchestration itself, whose span is recorded when it ends.
        started_at: with zone.
    """

    parent: str
    own: str
    started_at: datetime


_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


def read_traceparent(header: str | None) -> tuple[int, int, int] | None:
    """Trace id, span id and flags; None when it is no trace context, which is then as if there were none."""
    found = _TRACEPARENT.fullmatch((header or "").strip())
    if found is None or found[1] == "ff" or (found[1] == "00" and found[5]):
        return None
    trace_id, span_id = int(found[2], 16), int(found[3], 16)
    return (trace_id, span_id, int(found[4], 16)) if trace_id and span_id else None


def write_traceparent(trace_id: int, span_id: int, flags: int) -> str:
    """The header's text; of the flags only `sampled` is ours to pass on."""
    return f"00-{trace_id:032x}-{span_id:016x}-{flags & 1:02x}"


def link_below(parent: str, instance_id: str, started_at: datetime) -> TraceLink | None:
    """The place of an orchestration that `parent` starts; None when that is no trace context."""
    read = read_traceparent(parent)
    if read is None:
        return None
    trace_id, _, flags = read
    digest = hashlib.sha256(f"{parent} {instance_id}".encode()).digest()
    span_id = int.from_bytes(digest[:8], "big") or 1
    return TraceLink(parent=parent, own=write_traceparent(trace_id, span_id, flags), started_at=started_at)


Value = str | int | float | bool | Sequence[str] | None
Attributes = Mapping[str, Value]
Kind = Literal["internal", "server", "client", "consumer"]
NAME = "groundwork"
MAX_VALUE_CHARS = 256  # of an attribute: names and ids are shorter
MAX_CONTENT_CHARS = 20_000  # of one event with content; receivers cut at 32 to 64 KB
CONTENT_EVENT = "gen_ai.client.inference.operation.details"
_tracer: "Tracer | None" = None
_with_content = False
_is_quiet: ContextVar[bool] = ContextVar("spans_quiet", default=False)
next_span_id: ContextVar[int | None] = ContextVar("next_span_id", default=None)
"""The id that the next span gets; read by the provider's generator of ids."""


class Span:
    """A piece of work; where nothing is recorded all of this does nothing."""

    def __init__(self, recorded: "RecordedSpan | None" = None) -> None:
        self.recorded = recorded

    def set(self, attributes: Attributes) -> None:
        """Add attributes; those that are None are left out."""
        if self.recorded is not None:
            for name, value in attributes.items():
                if value is not None:
                    self.recorded.set_attribute(name, _short(value))

    def fail_by(self, error: BaseException) -> None:
        """What ended it. That something is not there, or not wanted any more, is no failure of the work."""
        if isinstance(error, CallerError | CancelledError | GeneratorExit):
            self.set({"error.type": error_type_of(error)})
        else:
            self.fail(error_type_of(error))

    def fail(self, error_type: str) -> None:
        """Mark it as failed. The type of the error alone: its text can hold anything."""
        if self.recorded is not None:
            from opentelemetry.trace import StatusCode

            self.recorded.set_attribute("error.type", error_type)
            self.recorded.set_status(StatusCode.ERROR)

    def content(self, said: Mapping[str, str]) -> None:
        """A model's input and output; recorded only where a deployment asks for content."""
        if self.recorded is not None and _with_content:
            cut = {name: redact(text)[:MAX_CONTENT_CHARS] for name, text in said.items() if text}
            self.recorded.add_event(CONTENT_EVENT, cut)

    def end(self) -> None:
        """It is over; a second time changes nothing."""
        if self.recorded is not None and self.recorded.is_recording():
            self.recorded.end()

    @property
    def traceparent(self) -> str:
        """Its trace context, to be handed on; empty without one."""
        context = self.recorded.get_span_context() if self.recorded is not None else None
        if context is None or not context.is_valid:
            return ""
        return write_traceparent(context.trace_id, context.span_id, context.trace_flags)


NO_SPAN = Span()


def start(provider: "TracerProvider", *, with_content: bool = False) -> None:
    """Record from now on."""
    global _tracer, _with_content  # a process has one
    _tracer, _with_content = provider.get_tracer(NAME), with_content
    add_log_source(_log_fields)


def stop() -> None:
    """Record nothing more."""
    global _tracer, _with_content
    _tracer, _with_content = None, False


def is_on() -> bool:
    """Whether anything is recorded."""
    return _tracer is not None


def wants_content() -> bool:
    """Whether models' input and output are recorded."""
    return _tracer is not None and _with_content


def begin(
    name: str, attributes: Attributes | None = None, kind: Kind = "internal", *, parent: str | None = None
) -> Span:
    """Begin a span that the caller ends, and enters with `inside`.

    Args:
        parent: trace context of the span above it; empty = a trace begins with it. None = the span at work
            here, and no span where there is none.
    """
    if _tracer is None or (parent is None and (_is_quiet.get() or not current().traceparent)):
        return NO_SPAN
    from opentelemetry.trace import SpanKind

    context = None if parent is None else _context_of(parent)
    begun = Span(_tracer.start_span(name, context, SpanKind[kind.upper()]))
    begun.set(attributes or {})
    return begun


@contextmanager
def span(
    name: str, attributes: Attributes | None = None, kind: Kind = "internal", *, parent: str | None = None
) -> Iterator[Span]:
    """A span around a block; arguments as `begin`."""
    begun = begin(name, attributes, kind, parent=parent)
    try:
        with inside(begun):
            yield begun
    except BaseException as error:
        begun.fail_by(error)
        raise
    finally:
        begun.end()


def root(
    name: str, kind: Kind, parent: str = "", attributes: Attributes | None = None
) -> AbstractContextManager[Span]:
    """The span of something that came from outside: continues the trace of `parent`, or begins one."""
    return span(name, attributes, kind, parent=parent)


@contextmanager
def inside(begun: Span) -> Iterator[None]:
    """Do something below a span that `begin` gave."""
    if begun.recorded is None:
        yield
        return
    from opentelemetry import context
    from opentelemetry.trace import set_span_in_context

    token = context.attach(set_span_in_context(begun.recorded))
    try:
        yield
    finally:
        context.detach(token)


@contextmanager
def unrecorded() -> Iterator[None]:
    """Do something that is not worth spans, such as asking again and again."""
    token = _is_quiet.set(True)
    try:
        yield
    finally:
        _is_quiet.reset(token)


def record(
    name: str, link: TraceLink, attributes: Attributes | None = None, *, error_type: str = "",
    ended_at: datetime | None = None,
) -> None:  # fmt: skip
    """Record the span of an orchestration that has ended, under the id that its parts know already.

    Done twice, as after a crash, it is the same span again: receivers keep one of them, or show both.
    """
    own = read_traceparent(link.own)
    if _tracer is None or own is None:
        return
    token = next_span_id.set(own[1])
    try:
        begun = Span(
            _tracer.start_span(name, _context_of(link.parent), start_time=_nanoseconds(link.started_at))
        )
    finally:
        next_span_id.reset(token)
    begun.set(attributes or {})
    if error_type:
        begun.fail(error_type)
    if begun.recorded is not None:
        begun.recorded.end(_nanoseconds(max(ended_at or datetime.now(UTC), link.started_at)))


def current() -> Span:
    """The span at work here."""
    if _tracer is None:
        return NO_SPAN
    from opentelemetry.trace import get_current_span

    return Span(get_current_span())


def link_to(instance_id: str) -> dict[str, object]:
    """What the input of an orchestration holds so that it continues with this trace: nothing, or `trace`."""
    if _tracer is None:
        return {}
    link = link_below(current().traceparent, instance_id, datetime.now(UTC))
    return {} if link is None else {"trace": link.model_dump(mode="json")}


def note_usage(input_tokens: int | None, output_tokens: int | None, ending: str | None) -> None:
    """What a model's call took and how it ended, for the span of the call at work here."""
    current().set(
        {
            "gen_ai.usage.input_tokens": input_tokens,
            "gen_ai.usage.output_tokens": output_tokens,
            "gen_ai.response.finish_reasons": [ending] if ending else None,
        }
    )


def outgoing() -> dict[str, str]:
    """Headers for a service of ours, which can continue with the trace."""
    here = current().traceparent
    return {"traceparent": here} if here else {}


def error_type_of(error: BaseException) -> str:
    """The name by which errors are known: ours by their code."""
    return error.code if isinstance(error, GroundworkError) else type(error).__name__


def messages_text(messages: Sequence[tuple[str, str]]) -> str:
    """Messages (role, text) as the JSON that `gen_ai.input.messages` and its like hold."""
    parts = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in messages]
    return json.dumps(parts, ensure_ascii=False)


def _context_of(parent: str) -> "Context":
    """Where a span below `parent` belongs; a fresh one for a trace that begins."""
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({"traceparent": parent}, Context())


def _log_fields() -> dict[str, str]:
    here = current().traceparent.split("-")
    return {"trace_id": here[1], "span_id": here[2]} if len(here) == 4 else {}


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1000


def _short(value: str | float | Sequence[str]) -> str | float | Sequence[str]:
    if isinstance(value, str):
        return redact(value[:MAX_VALUE_CHARS])
    return [redact(one[:MAX_VALUE_CHARS]) for one in value] if isinstance(value, Sequence) else value
