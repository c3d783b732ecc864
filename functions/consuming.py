"""What surrounds the handling of an event or a message: a trace of its own, and the fields of its log."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shared.telemetry import log_scope
from shared.tracing import spans
from shared.wiring import start_telemetry


@asynccontextmanager
async def consumed(name: str, **fields: str) -> AsyncIterator[None]:
    """Handle an event: a trace begins with it, unless one goes on. `fields`: contracts.md, section 6."""
    await start_telemetry()
    goes_on = spans.current().traceparent
    begun = spans.span(name, fields) if goes_on else spans.root(name, "consumer", attributes=fields)
    with log_scope(**fields), begun:
        yield
