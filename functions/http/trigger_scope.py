"""The tracing span and log fields for functions that are triggered by events, queue messages or timers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shared.platform import tracing
from shared.platform.loading import load_async
from shared.platform.telemetry import log_scope


@asynccontextmanager
async def trigger_scope(name: str, **fields: str) -> AsyncIterator[None]:
    """Run the block inside a tracing span, which continues the current trace or starts a new one.

    `fields` become attributes of the span, and fields of every log line inside the block.
    """
    await (await load_async("shared.wiring", "start_telemetry"))()
    goes_on = tracing.traceparent()
    span = tracing.span(name, fields) if goes_on else tracing.root(name, "consumer", attributes=fields)
    with log_scope(**fields), span:
        yield
