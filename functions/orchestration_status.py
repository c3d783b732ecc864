"""Noticing that an orchestration ended without saying so, and saying it in its place."""

from typing import TYPE_CHECKING

import azure.durable_functions as df

from functions.event_stream import CloseIfDead
from functions.run_traces import record_ended_run
from shared.instances import Instances

if TYPE_CHECKING:
    from shared.services import Services


def closer(client: df.DurableOrchestrationClient, run_id: str, services: "Services") -> CloseIfDead:
    """A check for one run: ends its log when its orchestration does nothing more.

    It is asked only while the log has no last event: one that is completed could not store its end. Nobody
    can ask for a run's events before it was started: one that there is not was lost.
    """

    async def close_if_dead() -> None:
        from shared.agents.runs import close_dead_run

        if not await Instances(client).is_alive(run_id):
            await close_dead_run(run_id, "The run was stopped before it had an answer.", services)
            await record_ended_run(client, run_id, services)

    return close_if_dead
