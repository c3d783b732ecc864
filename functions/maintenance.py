"""Keeping files, states and indexes in agreement: a timer repairs what events missed; an audit reports."""

import time
from collections import Counter
from typing import TYPE_CHECKING

import azure.durable_functions as df
import azure.functions as func

from functions.http.request_scope import consumed
from functions.http.requests import administrator_of, ready_services
from functions.http.responses import Request, Response, json_response, route
from functions.ingest import start_ingestion
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
        await _reconcile(client, int(time.time() // SCHEDULE_S), WINDOW_BITS)
    finally:
        await _tell_poison()


@route(blueprint, "POST", "maintenance/reconcile")
async def reconcile_now(req: Request, client: df.DurableOrchestrationClient) -> Response:
    """The same at once, for administrators."""
    await administrator_of(req)
    return json_response(await _reconcile(client, int(time.time())))


# Not below `admin/`: the Functions host keeps routes that begin so for itself, and refuses to load them.
@route(blueprint, "GET", "maintenance/audit")
async def get_audit(req: Request) -> Response:
    """Whether files, states, rows, blocks and figures agree, for administrators; names what does not."""
    from shared.ingestion.audit import audit

    await administrator_of(req)
    return json_response(await audit(await ready_services(), int(time.time())))


@route(blueprint, "GET", "maintenance/poison")
async def get_poison(req: Request) -> Response:
    """Events that were given up, for administrators: which file each is about, and no more."""
    from shared.platform.queues import PoisonList

    await administrator_of(req)
    messages = tuple(await (await ready_services()).poison.peek())
    return json_response(PoisonList(messages=messages, count=len(messages)))


async def _tell_poison() -> None:
    """An alert watches for this event: the messages stay until somebody has looked at them."""
    found = Counter(message.queue for message in await (await ready_services()).poison.peek())
    if found:
        get_logger().warning("poison.found", queues=dict(found))


async def _reconcile(
    client: df.DurableOrchestrationClient, count: int = 0, block_bits: int = 0
) -> "ReconcileReport":
    from shared.ingestion.reconciliation import reconcile

    async def start(blob_name: str, occasion: str) -> str:
        async with consumed("reconcile_documents"):
            return await start_ingestion(client, blob_name, occasion)

    return await reconcile(await ready_services(), start, count, block_bits)
