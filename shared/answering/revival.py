"""Restarts an orchestration that its host has lost, or closes a run that can't be restarted.

The first reader, status request or timer that notices the loss does this. Completed steps return their stored
results, and the next attempt at the lost step withdraws its events. The run's time restarts, but its tokens
and cost are still counted.
"""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal

from shared.answering.children import child_ids
from shared.answering.clarification import reply_event_name
from shared.answering.run_end import project_run
from shared.answering.runs import close_dead_run
from shared.answering.services import AnsweringServices
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.instances import Instances, is_at_work
from shared.platform.telemetry import get_logger
from shared.runs.event_log import is_closed
from shared.runs.events import ResumedStatus
from shared.runs.journal import clarification_of
from shared.runs.models import RunRecord
from shared.runs.run_log import RunLog
from shared.runs.run_store import RunStore

Fate = Literal["goes_on", "closed"]


async def revive_run(run_id: str, instances: Instances, services: AnsweringServices) -> Fate:
    """Restart a run whose orchestration has failed, or close the run if it can't be restarted. Active and
    finished runs are left unchanged.

    Raises:
        GroundworkError: storage failed. The next caller repeats the work.
        Exception: any exception of the client.
    """
    try:
        state = await instances.state(run_id)
    except Exception:  # noqa: BLE001  # the client raises nothing more specific, and the state is unknown
        return "goes_on"
    record = await services.runs.get(run_id)
    if is_at_work(state) or record is None or record.finished_at is not None:
        return "goes_on"
    # Don't limit the age of these runs: a reply may take days, and a summary takes long.
    is_slow = record.ask_step or record.profile == "document_summary"
    asked_at = None if is_slow else record.created_at
    now = datetime.now(UTC)
    verdict = await services.runs.claim_revival(run_id, asked_at, now) if state == "Failed" else "give_up"
    if verdict == "revive":
        await _restart(record, now, instances, services)
    if verdict != "give_up":
        return "goes_on"
    await close_dead_run(run_id, "The run was stopped before it had an answer.", services)
    return "closed"


async def revive_instance(instance_id: str, instances: Instances, runs: RunStore) -> Fate:
    """Restart a failed orchestration that is not a run, unless it was restarted too often. Its age doesn't
    matter.

    Raises:
        GroundworkError: storage failed.
        Exception: any exception of the client.
    """
    state = await instances.state(instance_id)
    if is_at_work(state):
        return "goes_on"
    if state != "Failed":
        return "closed"
    verdict = await runs.claim_revival(instance_id, None, datetime.now(UTC))
    if verdict == "revive":
        await instances.restart(instance_id)
        get_logger().warning("instance.restarted", run_id=instance_id)
    return "closed" if verdict == "give_up" else "goes_on"


async def _restart(
    record: RunRecord, now: datetime, instances: Instances, services: AnsweringServices
) -> None:
    run_id = record.run_id
    # The restarted run starts its children again, and no child may be executed twice at the same time.
    for child_id in await child_ids(services.run_log, services.blobs, run_id):
        await instances.stop(child_id)
    if not await _append_resumed(run_id, now, services.run_log):
        with suppress(NotFoundError):
            await project_run(run_id, services)
        return
    await instances.restart(run_id)
    get_logger().warning("run.restarted", run_id=run_id)
    _, reply = await clarification_of(run_id, record.ask_step, services.run_log)
    if reply is not None:
        # The event that signalled the reply was lost with the history, so raise it again.
        await instances.raise_event(run_id, reply_event_name(record.ask_step))


async def _append_resumed(run_id: str, now: datetime, run_log: RunLog) -> bool:
    """Append a `resumed` event to the journal. Return False if the run has ended or is being erased."""
    while True:
        try:
            log_slice = await run_log.read(run_id)
            if is_closed(log_slice):
                return False
            await run_log.append(run_id, [ResumedStatus(at=now)], at_offset=log_slice.next_offset)
        except ConflictError:  # an attempt from before the restart is still writing
            continue
        except NotFoundError:  # the run is being erased
            return False
        return True
