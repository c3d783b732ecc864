"""Triggers of queues and timers. Each calls the function of the same name in a module that is loaded late."""

import azure.durable_functions as df
import azure.functions as func

from shared.platform.loading import load_async
from shared.platform.names import ERASURES_QUEUE, TURNS_QUEUE

blueprint = df.Blueprint()
sharepoint_blueprint = df.Blueprint()  # registered only if libraries are configured

CONNECTION = "DocumentsStorage"
# Hourly: the longest delay of an erasure whose message was lost or dead-lettered.
TIDY_SCHEDULE = "0 7 * * * *"
REVIVAL_SCHEDULE = "30 * * * * *"  # every minute: the longest delay of a lost run without a reader
# Every five minutes: the longest delay of a missed event or of access changed in a blob's metadata, as
# long as one run covers all documents. Beyond 10,000, each run covers a part (see `fitting_window`).
RECONCILE_SCHEDULE = "0 */5 * * * *"
# Uses 900 units of SharePoint's daily quota (at least 1.2 million) per library.
LIBRARIES_SCHEDULE = "0 */10 * * * *"
_BACKGROUND = "functions.background"


@blueprint.queue_trigger(arg_name="message", queue_name=TURNS_QUEUE, connection=CONNECTION)
async def remember_turn(message: func.QueueMessage) -> None:
    """Remember an answered turn."""
    await (await load_async(_BACKGROUND, "remember_turn"))(message)


@blueprint.queue_trigger(arg_name="message", queue_name=ERASURES_QUEUE, connection=CONNECTION)
@blueprint.durable_client_input(client_name="client")
async def erase_turns(message: func.QueueMessage, client: df.DurableOrchestrationClient) -> None:
    """Erase the data of a deleted thread or user."""
    await (await load_async(_BACKGROUND, "erase_turns"))(message, client)


@blueprint.timer_trigger(arg_name="timer", schedule=TIDY_SCHEDULE, run_on_startup=False, use_monitor=True)
@blueprint.durable_client_input(client_name="client")
async def keep_tidy(timer: func.TimerRequest, client: df.DurableOrchestrationClient) -> None:
    """Purge data older than its retention."""
    await (await load_async(_BACKGROUND, "keep_tidy"))(client)


@blueprint.timer_trigger(arg_name="timer", schedule=REVIVAL_SCHEDULE, run_on_startup=False, use_monitor=False)
@blueprint.durable_client_input(client_name="client")
async def revive_instances(timer: func.TimerRequest, client: df.DurableOrchestrationClient) -> None:
    """Restart orchestrations that the host lost."""
    await (await load_async(_BACKGROUND, "revive_instances"))(client)


@blueprint.timer_trigger(
    arg_name="timer", schedule=RECONCILE_SCHEDULE, run_on_startup=False, use_monitor=True
)
@blueprint.durable_client_input(client_name="client")
async def reconcile_documents(timer: func.TimerRequest, client: df.DurableOrchestrationClient) -> None:
    """Repair what events have missed."""
    await (await load_async("functions.reconciliation", "reconcile_documents"))(client)


@sharepoint_blueprint.timer_trigger(
    arg_name="timer", schedule=LIBRARIES_SCHEDULE, run_on_startup=True, use_monitor=False
)
@sharepoint_blueprint.durable_client_input(client_name="client")
async def synchronise_libraries(timer: func.TimerRequest, client: df.DurableOrchestrationClient) -> None:
    """Start a run for each SharePoint library that has no run in progress."""
    await (await load_async("functions.sharepoint", "synchronise_libraries"))(client)
