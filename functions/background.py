"""After the turn: a queue remembers answers, another erases threads and people, a timer takes old runs away.

A message of another kind raises, and ends in the poison queue.
"""

import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import azure.durable_functions as df
import azure.functions as func

from functions.http.request_scope import consumed
from functions.http.requests import ready_services
from functions.ingest import start_ingestion
from shared.platform.instances import Instances
from shared.platform.names import ERASURES_QUEUE, TURNS_QUEUE
from shared.platform.telemetry import get_logger

if TYPE_CHECKING:
    from shared.documents.state import DocumentState

blueprint = df.Blueprint()

CONNECTION = "DocumentsStorage"
# Hourly: how long an erasure whose message was lost, or given up, waits at most.
SCHEDULE = "0 7 * * * *"
REVIVAL_SCHEDULE = "30 * * * * *"  # a minute is what a question without a reader waits at most
# Children are begun again by their parents.
_BEGUN_AGAIN = ("reply_in_channel", "summarize_documents", "ingest_document")
_STATUS = df.OrchestrationRuntimeStatus
_ENDED = (_STATUS.Completed, _STATUS.Failed, _STATUS.Terminated, _STATUS.Canceled)
_MAX_PURGED = 1000  # counts of revivals in one hour
_LONGEST_WORK = timedelta(days=1)  # of one instance, a wait for a person not included
_FIRST = datetime(2020, 1, 1, tzinfo=UTC)  # before all histories: the client asks for a first moment


@blueprint.queue_trigger(arg_name="message", queue_name=TURNS_QUEUE, connection=CONNECTION)
async def remember_turn(message: func.QueueMessage) -> None:
    """Remember an answered turn, and summarise its thread when that is due."""
    from shared.conversations.memory import remember
    from shared.conversations.models import RememberTask

    task = RememberTask.from_stored(message.get_body())
    async with consumed("remember_turn", run_id=task.run_id, thread_id=task.thread_id):
        await remember(task, await ready_services())


@blueprint.queue_trigger(arg_name="message", queue_name=ERASURES_QUEUE, connection=CONNECTION)
@blueprint.durable_client_input(client_name="client")
async def erase_turns(message: func.QueueMessage, client: df.DurableOrchestrationClient) -> None:
    """Erase what was cleared or deleted of a thread, or continue with the erasure of a person."""
    from pydantic import TypeAdapter

    from shared.conversations.models import EraseTask
    from shared.erasure.models import EraseUserTask
    from shared.erasure.threads import erase

    kinds: TypeAdapter[EraseTask | EraseUserTask] = TypeAdapter(EraseTask | EraseUserTask)
    # Unknown fields are ignored, as in `Model.from_stored`.
    task = kinds.validate_json(message.get_body(), extra="ignore")
    if isinstance(task, EraseUserTask):
        await _erase_user(task.erasure_id, client)
        return
    async with consumed("erase_turns", thread_id=task.thread_id):
        instances = Instances(client)
        await erase(task, await ready_services(), instances.forget if task.is_last else instances.stop)


async def _erase_user(erasure_id: str, client: df.DurableOrchestrationClient) -> None:
    from shared.erasure.passes import EraseDependencies, advance
    from shared.ingestion.changes import delete

    services = await ready_services()

    async def delete_document(state: "DocumentState") -> None:
        await delete(state, services)
        await start_ingestion(client, state.blob_name, f"{state.blob_name} erased {uuid.uuid4().hex}")

    async with consumed("erase_user"):
        instances = Instances(client)
        await advance(
            erasure_id, services, EraseDependencies(instances.stop, instances.forget, delete_document)
        )


@blueprint.timer_trigger(arg_name="timer", schedule=SCHEDULE, run_on_startup=False, use_monitor=True)
@blueprint.durable_client_input(client_name="client")
async def keep_tidy(timer: func.TimerRequest, client: df.DurableOrchestrationClient) -> None:
    """Go on with erasures that stopped; purge what is older than RUN_RETENTION_DAYS."""
    from shared.access.idempotency import purge_old_requests
    from shared.answering.retention import purge_old_runs, resume_erasures
    from shared.erasure.requests import resume_user_erasures
    from shared.quality.measures import purge_old_quality
    from shared.subagents.metrics import purge_old_metrics
    from shared.summaries.summaries import purge_old_summaries
    from shared.teams.store import purge_taken, purge_turns
    from shared.tools.workspace import purge_workspaces

    services, forget, now = await ready_services(), Instances(client).forget, datetime.now(UTC)
    settings, blobs = services.settings, services.blobs
    resumed = await resume_erasures(services.threads, services.queues)
    resumed += await resume_user_erasures(now, services)
    purged = await purge_old_runs(now, services, forget)
    purged += await purge_old_summaries(now, settings, blobs, services.user_limits, forget)
    purged += await purge_taken(now, settings, blobs, forget)
    purged += await purge_workspaces(now, blobs)
    metrics = await purge_turns(now, settings, services.bot_turns)
    metrics += await purge_old_metrics(now, settings, services.subagent_metrics)
    metrics += await purge_old_quality(now, settings, services.quality)
    metrics += await services.audit.delete_before(
        now - timedelta(days=settings.identity.audit_retention_days)
    )
    metrics += await purge_old_requests(now, services.idempotency, services.user_limits)
    await services.runs.purge_revivals(now - timedelta(days=1), _MAX_PURGED)
    get_logger().info("runs.purged", result_count=purged, erasures_resumed=resumed, metrics_purged=metrics)
    before = now - timedelta(days=settings.conversations.run_retention_days)
    get_logger().info("histories.purged", result_count=await _purge_histories(client, before))


@blueprint.timer_trigger(arg_name="timer", schedule=REVIVAL_SCHEDULE, run_on_startup=False, use_monitor=False)
@blueprint.durable_client_input(client_name="client")
async def revive_instances(timer: func.TimerRequest, client: df.DurableOrchestrationClient) -> None:
    """Begin again what the host lost a few minutes ago, and what nobody has asked for since.

    When it began does not count: an ingestion, a summary or a wait for a person takes longer than that.
    """
    from shared.answering.revival import revive_instance, revive_run
    from shared.runs.revivals import REVIVAL_WINDOW

    services, instances = await ready_services(), Instances(client)
    now = datetime.now(UTC)
    since = now - _LONGEST_WORK - timedelta(seconds=services.settings.answering.clarification_timeout_s)
    for failed in await client.get_status_by(since, runtime_status=[_STATUS.Failed]):
        if failed.last_updated_time < now - REVIVAL_WINDOW:
            continue
        try:
            if failed.name == "answer_question":
                await revive_run(failed.instance_id, instances, services)
            elif failed.name in _BEGUN_AGAIN:
                await revive_instance(failed.instance_id, instances, services.runs)
        except Exception as error:  # noqa: BLE001  # the others must not wait for this one
            get_logger().warning(
                "instance.restart_failed", run_id=failed.instance_id, error_type=type(error).__name__
            )


async def _purge_histories(client: df.DurableOrchestrationClient, before: datetime) -> int:
    """Take away what the orchestrator keeps of all that ended, ingestions above all; returns how many.

    The client gives up on a call after 240 s, so a backlog is purged in slices of time, each twice as long as
    the one before it. What a late call has purged stays so: the next hour continues from there.
    """
    count, end, length = 0, before, timedelta(hours=1)
    while end > _FIRST:
        start = max(end - length, _FIRST)
        try:
            purged = await client.purge_instance_history_by(start, end, list(_ENDED))
            count += int(purged.instances_deleted)
        except TimeoutError:
            get_logger().warning("histories.purge_timed_out")
        end, length = start, length * 2
    return count
