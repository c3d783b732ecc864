"""Queue and timer triggers. Each imports its implementation on first use and calls the function of the same
name.
"""

import azure.durable_functions as df
import azure.functions as func

from shared.platform.loading import load_async
from shared.platform.names import ERASURES_QUEUE, TURNS_QUEUE

blueprint = df.Blueprint()
sharepoint_blueprint = df.Blueprint()  # registered only if SharePoint libraries are configured

CONNECTION = "DocumentsStorage"
# An erasure whose queue message was lost or dead-lettered is delayed by at most this interval.
TIDY_SCHEDULE = "0 7 * * * *"
# A lost run is restarted after at most this interval, or earlier if a client requests it.
REVIVAL_SCHEDULE = "30 * * * * *"
# A missed event or an access change in blob metadata takes effect after at most this interval. With more than
# 10,000 documents, each run covers only some of them (see `fitting_window`).
RECONCILE_SCHEDULE = "0 */5 * * * *"
# At this interval, each library uses 900 units of the daily SharePoint quota (at least 1.2 million).
LIBRARIES_SCHEDULE = "0 */10 * * * *"
_BACKGROUND = "functions.background"


@blueprint.queue_trigger(arg_name="message", queue_name=TURNS_QUEUE, connection=CONNECTION)
async def remember_turn(message: func.QueueMessage) -> None:
    """Store the memory of an answered turn."""
    await (await load_async(_BACKGROUND, "remember_turn"))(message)


@blueprint.queue_trigger(arg_name="message", queue_name=ERASURES_QUEUE, connection=CONNECTION)
@blueprint.durable_client_input(client_name="client")
async def erase_turns(message: func.QueueMessage, client: df.DurableOrchestrationClient) -> None:
    """Erase the data of a deleted thread, run or user."""
    await (await load_async(_BACKGROUND, "erase_turns"))(message, client)


@blueprint.timer_trigger(arg_name="timer", schedule=TIDY_SCHEDULE, run_on_startup=False, use_monitor=True)
@blueprint.durable_client_input(client_name="client")
async def keep_tidy(timer: func.TimerRequest, client: df.DurableOrchestrationClient) -> None:
    """Purge data whose retention period has ended."""
    await (await load_async(_BACKGROUND, "keep_tidy"))(client)


@blueprint.timer_trigger(arg_name="timer", schedule=REVIVAL_SCHEDULE, run_on_startup=False, use_monitor=False)
@blueprint.durable_client_input(client_name="client")
async def revive_instances(timer: func.TimerRequest, client: df.DurableOrchestrationClient) -> None:
    """Restart orchestrations that the host has lost."""
    await (await load_async(_BACKGROUND, "revive_instances"))(client)


@blueprint.timer_trigger(
    arg_name="timer", schedule=RECONCILE_SCHEDULE, run_on_startup=False, use_monitor=True
)
@blueprint.durable_client_input(client_name="client")
async def reconcile_documents(timer: func.TimerRequest, client: df.DurableOrchestrationClient) -> None:
    """Repair documents for which events were missed."""
    await (await load_async("functions.reconciliation", "reconcile_documents"))(client)


@sharepoint_blueprint.timer_trigger(
    arg_name="timer", schedule=LIBRARIES_SCHEDULE, run_on_startup=True, use_monitor=False
)
@sharepoint_blueprint.durable_client_input(client_name="client")
async def synchronise_libraries(timer: func.TimerRequest, client: df.DurableOrchestrationClient) -> None:
    """Start a synchronisation of each SharePoint library that has none in progress."""
    await (await load_async("functions.sharepoint", "synchronise_libraries"))(client)
