"""Ending orchestrations from an orchestration: a client can, so it is an activity. It never raises."""

import asyncio
from typing import Any

import azure.durable_functions as df

from orchestrations.payloads import Payload, as_object
from shared.platform.telemetry import get_logger

blueprint = df.Blueprint()

TRIES = 3  # a child that was scheduled a moment ago may not be known to the client yet
PAUSE_S = 0.5


@blueprint.activity_trigger(input_name="payload")
@blueprint.durable_client_input(client_name="client")
async def terminate_instances(payload: Payload, client: df.DurableOrchestrationClient) -> dict[str, Any]:
    """End instances. Input: {"instance_ids", "reason"}. Output: {"terminated": how many}.

    One that has ended meanwhile counts as ended.
    """
    # Imported when used: a worker that only serves HTTP never pays for it.
    from shared.platform.concurrency import run_together

    given = as_object(payload)
    ended = await run_together(
        *(_terminate(client, str(one), str(given["reason"])) for one in given["instance_ids"])
    )
    return {"terminated": sum(ended)}


async def _terminate(client: df.DurableOrchestrationClient, instance_id: str, reason: str) -> bool:
    for attempt in range(TRIES):
        try:
            await client.terminate(instance_id, reason)
        except Exception:  # noqa: BLE001  # the client raises nothing more precise
            if attempt + 1 < TRIES:
                await asyncio.sleep(PAUSE_S)
        else:
            return True
    get_logger().warning("child.terminate_failed", run_id=instance_id)
    return False
