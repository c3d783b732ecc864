"""Begins an orchestration again that its host lost; a run that cannot begin again is closed.

The first to notice does it: a reader, a status request, a timer. The steps of a run that were done
give their stored results, and what was sent of the one that was lost is withdrawn by its next attempt. Time
begins again with the run; tokens and cost do not.
"""

from datetime import UTC, datetime
from typing import Literal

from shared.answering.children import child_ids
from shared.answering.clarification import event_name
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
    """See that a run without its last event continues, or gets it.

    Raises:
        GroundworkError: storage failed; what was begun is done again by the next who looks.
        Exception: whatever the client raises.
    """
    try:
        state = await instances.state(run_id)
    except Exception:  # noqa: BLE001  # the client raises nothing more precise; nobody can tell now
        return "goes_on"
    record = await services.runs.get(run_id)
    if is_at_work(state) or record is None or record.finished_at is not None:
        return "goes_on"
    # A run that asked its owner something may have waited for days.
    asked_at = None if record.ask_step else record.created_at
    now = datetime.now(UTC)
    verdict = await services.runs.claim_revival(run_id, asked_at, now) if state == "Failed" else "give_up"
    if verdict == "revive":
        await _restart(record, now, instances, services)
    if verdict != "give_up":
        return "goes_on"
    await close_dead_run(run_id, "The run was stopped before it had an answer.", services)
    return "closed"


async def revive_instance(instance_id: str, instances: Instances, runs: RunStore) -> Fate:
    """Begin any other orchestration again, if it failed and may begin again, however long it has worked.

    Raises:
        GroundworkError: storage failed.
        Exception: whatever the client raises.
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
    # A run that begins again starts its sub-agents again: two executions of one must not both write.
    for child_id in await child_ids(services.run_log, services.blobs, run_id):
        await instances.stop(child_id)
    if not await _say_resumed(run_id, now, services.run_log):
        return
    await instances.restart(run_id)
    get_logger().warning("run.restarted", run_id=run_id)
    _, reply = await clarification_of(run_id, record.ask_step, services.run_log)
    if reply is not None:
        await instances.tell(run_id, event_name(record.ask_step))  # the event went with the history


async def _say_resumed(run_id: str, now: datetime, run_log: RunLog) -> bool:
    """Tell the run's readers; False when it has ended meanwhile."""
    while True:
        try:
            written = await run_log.read(run_id)
            if is_closed(written):
                return False
            await run_log.append(run_id, [ResumedStatus(at=now)], at_offset=written.next_offset)
        except ConflictError:  # an attempt that outlived its orchestration still writes
            continue
        except NotFoundError:  # it is being erased
            return False
        return True
