"""Timer that repairs documents for which events were missed, by comparing files, states and indexes."""

import time
from collections import Counter

import azure.durable_functions as df

from functions.http.trigger_scope import trigger_scope
from functions.ingest import start_ingestions
from shared import wiring
from shared.ingestion.inventory import WINDOW_BITS
from shared.ingestion.models import ReconcileReport
from shared.ingestion.reconciliation import reconcile as repair
from shared.platform.telemetry import get_logger

SCHEDULE_S = 300  # interval in seconds, the same as in RECONCILE_SCHEDULE of `functions.triggers`


async def reconcile_documents(client: df.DurableOrchestrationClient) -> None:
    """Start the ingestion of documents that differ from their files, then log a warning if poison queues
    contain messages.
    """
    try:
        await reconcile(client, int(time.time() // SCHEDULE_S), WINDOW_BITS)
    finally:
        await _warn_of_poison()


async def _warn_of_poison() -> None:
    """Log the number of messages in each poison queue, so that an alert can fire. The messages stay until an
    operator removes them.
    """
    counts = Counter(message.queue for message in await (await wiring.ready_services()).poison.peek())
    if counts:
        get_logger().warning("poison.found", queues=dict(counts))


async def reconcile(
    client: df.DurableOrchestrationClient, count: int = 0, block_bits: int = 0
) -> ReconcileReport:
    """Start the ingestion of documents that differ from their files. Return a report of the ingestions
    started and the data removed.
    """

    services = await wiring.ready_services()

    async def start() -> None:
        async with trigger_scope("reconcile_documents"):
            await start_ingestions(client, services)

    return await repair(services, start, count, block_bits)
