"""What surrounds the handling of an event: its span, and the fields of its log lines."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shared.platform import tracing
from shared.platform.loading import load_async
from shared.platform.telemetry import log_scope


@asynccontextmanager
async def trigger_scope(name: str, **fields: str) -> AsyncIterator[None]:
    """Handle an event in a span, which continues the current trace or begins one.

    `fields` are attributes of the span, and of every line that is logged inside.
    """
    await (await load_async("shared.wiring", "start_telemetry"))()
    goes_on = tracing.traceparent()
    begun = tracing.span(name, fields) if goes_on else tracing.root(name, "consumer", attributes=fields)
    with log_scope(**fields), begun:
        yield
