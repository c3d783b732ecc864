"""The span and log fields around the handling of an event."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shared.platform import tracing
from shared.platform.loading import load_async
from shared.platform.telemetry import log_scope


@asynccontextmanager
async def trigger_scope(name: str, **fields: str) -> AsyncIterator[None]:
    """Wrap the handling of an event in a span, which continues the current trace or starts one.

    `fields` become attributes of the span and fields of every line logged inside.
    """
    await (await load_async("shared.wiring", "start_telemetry"))()
    goes_on = tracing.traceparent()
    span = tracing.span(name, fields) if goes_on else tracing.root(name, "consumer", attributes=fields)
    with log_scope(**fields), span:
        yield
