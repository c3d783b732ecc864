"""A process that exports traces as the app does: `python -m tests.contract.telemetry.exporting [--twice]`.

The app settings in the environment select the receiver. The process prints its log and exits.
"""

import asyncio
import logging
import sys

from shared.platform import tracing
from shared.wiring import start_telemetry


async def work() -> None:
    """Create traces with two spans."""
    await start_telemetry()
    request = tracing.root("request", "server", attributes={"http.route": "/api/chat"})
    with request, tracing.span("perform_step", {"run_id": "run-1"}):
        pass
    if "--twice" in sys.argv:
        # Longer than the export delay, so that this span is sent in a separate batch.
        await asyncio.sleep(1.2)
        with tracing.root("request", "server"):
            pass
        await asyncio.sleep(1.2)
    from opentelemetry import metrics, trace

    # The process-wide provider must stay unset. Libraries that use it (FastAPI, the SDKs) would add spans
    # that contain URLs.
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    metrics.get_meter("test").create_counter("groundwork.test").add(1)
    sys.stdout.write("WORK DONE\n")


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stdout, format="%(name)s %(message)s")
    asyncio.run(work())
