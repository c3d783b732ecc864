"""The trace of a run that did not end by itself: its orchestration can record nothing any more."""

import json
from typing import TYPE_CHECKING

import azure.durable_functions as df

from shared.models.tracing import TraceLink
from shared.tracing import spans

if TYPE_CHECKING:
    from shared.services import Services


async def record_ended_run(client: df.DurableOrchestrationClient, run_id: str, services: "Services") -> None:
    """Record the spans of a run that was cancelled, or whose orchestration died. Never raises."""
    if not spans.is_on():
        return
    from shared.agents.run_trace import record_end

    try:
        status = await client.get_status(run_id, show_input=True)
        given = status.input_ if status else None
        link = (json.loads(given) if isinstance(given, str) else given or {}).get("trace")
        if link is not None:
            await record_end(run_id, TraceLink.from_payload(link), services)
    except Exception:  # noqa: BLE001  # the client raises nothing more precise; a trace is not worth an error
        return
