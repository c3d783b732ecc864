"""Noticing that an orchestration ended without saying so, and saying it in its place."""

from typing import TYPE_CHECKING

import azure.durable_functions as df

from functions.event_stream import CloseIfDead
from functions.run_traces import record_ended_run

if TYPE_CHECKING:
    from shared.services import Services

# Completed: asked only while the log has no last event, so the run could not store its end.
# None: there is no such instance. Nobody can ask for a run's events before it was started, so it was lost.
_GONE = frozenset({"Completed", "Failed", "Terminated", "Canceled", None})


def closer(client: df.DurableOrchestrationClient, run_id: str, services: "Services") -> CloseIfDead:
    """A check for one run: ends its log when its orchestration has failed or was terminated."""

    async def close_if_dead() -> None:
        from shared.agents.runs import close_dead_run

        status = await client.get_status(run_id)
        state = status.runtime_status.value if status and status.runtime_status else None
        if state in _GONE:
            await close_dead_run(run_id, "The run was stopped before it had an answer.", services)
            await record_ended_run(client, run_id, services)

    return close_if_dead
