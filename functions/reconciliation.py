"""A timer that keeps files, states and indexes in agreement: it repairs what events missed."""

import time
from collections import Counter
from typing import TYPE_CHECKING

import azure.durable_functions as df
import azure.functions as func

from functions.http.trigger_scope import trigger_scope
from functions.ingest import start_ingestion
from shared import wiring
from shared.platform.telemetry import get_logger

if TYPE_CHECKING:
    from shared.ingestion.models import ReconcileReport

blueprint = df.Blueprint()

# Five minutes: how long a missed event, or access changed in a blob's metadata, goes unnoticed at most while
# all documents fit into one look; of more than 10,000 each run looks at a part (see `fitting_window`).
SCHEDULE = "0 */5 * * * *"
SCHEDULE_S = 300


@blueprint.timer_trigger(arg_name="timer", schedule=SCHEDULE, run_on_startup=False, use_monitor=True)
@blueprint.durable_client_input(client_name="client")
async def reconcile_documents(timer: func.TimerRequest, client: df.DurableOrchestrationClient) -> None:
    """Start the ingestion of what differs from its file; say in the log what lies in the poison queues."""
    from shared.ingestion.inventory import WINDOW_BITS

    try:
        await reconcile(client, int(time.time() // SCHEDULE_S), WINDOW_BITS)
    finally:
        await _tell_poison()


async def _tell_poison() -> None:
    """An alert watches for this event: the messages stay until somebody has looked at them."""
    found = Counter(message.queue for message in await (await wiring.ready_services()).poison.peek())
    if found:
        get_logger().warning("poison.found", queues=dict(found))


async def reconcile(
    client: df.DurableOrchestrationClient, count: int = 0, block_bits: int = 0
) -> "ReconcileReport":
    """Start the ingestion of documents that differ from their files."""
    from shared.ingestion.reconciliation import reconcile as repair

    async def start(blob_name: str, occasion: str) -> str:
        async with trigger_scope("reconcile_documents"):
            return await start_ingestion(client, blob_name, occasion)

    return await repair(await wiring.ready_services(), start, count, block_bits)
