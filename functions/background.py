"""Background triggers: queue messages that store memories or erase data, and timers that purge expired data
and restart failed instances.

A queue message that cannot be parsed raises an error, and ends in the poison queue.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import azure.durable_functions as df
import azure.functions as func
from pydantic import TypeAdapter

from functions.http.trigger_scope import trigger_scope
from functions.ingest import start_ingestions
from shared import wiring
from shared.access.idempotency import purge_old_requests
from shared.answering.retention import purge_old_runs, resume_erasures
from shared.answering.revival import revive_instance, revive_run
from shared.answering.shares import purge_shares
from shared.conversations.files import expire_files
from shared.conversations.models import EraseTask, RememberTask
from shared.conversations.remembering import remember
from shared.documents.state import DocumentState
from shared.erasure.models import EraseRunTask, EraseUserTask
from shared.erasure.passes import EraseDependencies, advance
from shared.erasure.requests import resume_user_erasures
from shared.erasure.threads import erase, erase_run
from shared.ingestion.admission import Admissions
from shared.ingestion.changes import delete
from shared.ingestion.second_look import look_again
from shared.platform.errors import DependencyError
from shared.platform.instances import Instances
from shared.platform.telemetry import get_logger
from shared.quality.measures import purge_old_quality
from shared.runs.revivals import REVIVAL_WINDOW
from shared.teams.store import purge_activities, purge_turns
from shared.tools.workspace import purge_workspaces
from shared.wiring import Services

# Sub-orchestrations are not listed, because their parents restart them.
_RUNS = ("answer_question", "document_summary")
_BEGUN_AGAIN = ("reply_in_channel",)
_STATUS = df.OrchestrationRuntimeStatus
_ENDED = (_STATUS.Completed, _STATUS.Failed, _STATUS.Terminated, _STATUS.Canceled)
# Maximum number of revival counters that an hourly purge deletes. They count how often an instance was
# restarted.
_MAX_PURGED = 1000
# Maximum number of index changes that an hourly purge deletes, which takes seconds. Each ingested document
# has two.
_MAX_CHANGES = 10_000
# Maximum duration of an instance, not counting the time in which it waits for the user.
_LONGEST_WORK = timedelta(days=1)
# The client requires a start time for purges. This one is earlier than any instance.
_FIRST = datetime(2020, 1, 1, tzinfo=UTC)


async def remember_turn(message: func.QueueMessage) -> None:
    """Store the memory of an answered turn, and update the summary of its thread if one is due."""
    task = RememberTask.from_stored(message.get_body())
    async with trigger_scope("remember_turn", run_id=task.run_id, thread_id=task.thread_id):
        await remember(task, await wiring.ready_services())


async def erase_turns(message: func.QueueMessage, client: df.DurableOrchestrationClient) -> None:
    """Erase the data of a thread, run or user, depending on the queue message. A user's erasure takes several
    messages.
    """
    kinds: TypeAdapter[EraseTask | EraseRunTask | EraseUserTask] = TypeAdapter(
        EraseTask | EraseRunTask | EraseUserTask
    )
    # A newer version of the app may have written the message, so unknown fields are ignored.
    task = kinds.validate_json(message.get_body(), extra="ignore")
    if isinstance(task, EraseUserTask):
        await _erase_user(task.erasure_id, client)
        return
    if isinstance(task, EraseRunTask):
        async with trigger_scope("erase_turns", run_id=task.run_id):
            forget = Instances(client).forget
            await erase_run(task.run_id, await wiring.ready_services(), forget, is_last=True)
        return
    async with trigger_scope("erase_turns", thread_id=task.thread_id):
        instances = Instances(client)
        await erase(task, await wiring.ready_services(), instances.forget if task.is_last else instances.stop)


async def _erase_user(erasure_id: str, client: df.DurableOrchestrationClient) -> None:
    services = await wiring.ready_services()

    async def delete_document(state: DocumentState) -> None:
        await delete(state, services)
        await start_ingestions(client, services)

    async with trigger_scope("erase_user"):
        instances = Instances(client)
        await advance(
            erasure_id, services, EraseDependencies(instances.stop, instances.forget, delete_document)
        )


async def keep_tidy(client: df.DurableOrchestrationClient) -> None:
    """Continue interrupted erasures, and purge data whose retention period has ended.

    Raises:
        DependencyError: some purges failed. All others were performed.
    """
    counts: dict[str, int] = {}
    failed: list[str] = []
    for kind, purge in _purges(await wiring.ready_services(), client, datetime.now(UTC)).items():
        try:
            counts[kind] = await purge()
        except Exception as error:  # noqa: BLE001  # one bad record must not block all other purges
            failed.append(kind)
            get_logger().error("retention.purge_failed", kind=kind, error_type=type(error).__name__)
    resumed = counts.pop("erasures", 0) + counts.pop("user_erasures", 0)
    histories = counts.pop("histories", 0)
    get_logger().info("retention.finished", result_count=sum(counts.values()), erasures_resumed=resumed)
    get_logger().info("histories.purged", result_count=histories)
    if failed:
        raise DependencyError(
            f"Purges failed: {', '.join(failed)}.",
            "See the log events `retention.purge_failed` for the causes.",
        )


def _purges(
    services: Services, client: df.DurableOrchestrationClient, now: datetime
) -> dict[str, Callable[[], Awaitable[int]]]:
    """Return the hourly purges, keyed by kind of record. Each function returns the number of records that it
    deleted or resumed.
    """
    settings, blobs, forget = services.settings, services.blobs, Instances(client).forget
    before_audit = now - timedelta(days=settings.identity.audit_retention_days)
    before_runs = now - timedelta(days=settings.conversations.run_retention_days)
    before_revivals = now - timedelta(days=1)
    return {
        "erasures": partial(resume_erasures, services.threads, services.queues),
        "user_erasures": partial(resume_user_erasures, now, services),
        "runs": partial(purge_old_runs, now, services, forget),
        "channel_inbox": partial(purge_activities, now, settings, blobs, forget),
        "shares": partial(purge_shares, now, blobs),
        "workspaces": partial(purge_workspaces, now, blobs),
        "channel_turns": partial(purge_turns, now, settings, services.bot_turns),
        "quality": partial(purge_old_quality, now, settings, services.quality),
        "audit": partial(services.audit.delete_before, before_audit),
        "idempotency_keys": partial(purge_old_requests, now, services.idempotency, services.user_limits),
        "revivals": partial(services.runs.purge_revivals, before_revivals, _MAX_PURGED),
        "document_changes": partial(services.documents.purge_changes, now, _MAX_CHANGES),
        "conversation_files": partial(_expire_files, now, services, client),
        "histories": partial(_purge_histories, client, before_runs),
    }


async def _expire_files(now: datetime, services: Services, client: df.DurableOrchestrationClient) -> int:
    count = await expire_files(now, services)
    if count:
        await start_ingestions(client, services)
    return count


async def revive_instances(client: df.DurableOrchestrationClient) -> None:
    """Restart runs and channel replies that recently failed because the host lost them. Also check
    interrupted turns and running ingestions.

    Instances are selected by the time of their failure, because they may have started days earlier.
    """
    services, instances = await wiring.ready_services(), Instances(client)
    now = datetime.now(UTC)
    since = now - _LONGEST_WORK - timedelta(seconds=services.settings.answering.clarification_timeout_s)
    for failed in await client.get_status_by(since, runtime_status=[_STATUS.Failed]):
        if failed.last_updated_time < now - REVIVAL_WINDOW:
            continue
        try:
            if failed.name in _RUNS:
                await revive_run(failed.instance_id, instances, services)
            elif failed.name in _BEGUN_AGAIN:
                await revive_instance(failed.instance_id, instances, services.runs)
        except Exception as error:  # noqa: BLE001  # one failure must not block the others
            get_logger().warning(
                "instance.restart_failed", run_id=failed.instance_id, error_type=type(error).__name__
            )
    await look_again(services)
    await Admissions(services, instances).look()


async def _purge_histories(client: df.DurableOrchestrationClient, before: datetime) -> int:
    """Purge the histories of orchestrations that ended before the given time, and return the number of purged
    instances.

    The client times out after 240 s, so a backlog is purged period by period, each twice as long as the
    previous one. A purge that times out keeps its progress, and the next hourly run continues from there.
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
