"""Erases the cleared or deleted turns of a thread from every store.

Two passes. The first takes everything away at once, also of a run that is still at work, and marks the turns
so that no answer is taken. A step that was at work then may write again; so the last pass, when no step
can be at work any more, does the same again and removes the turns themselves. Each pass may be repeated:
what is gone is no error.
"""

import asyncio
from collections.abc import Callable

from shared.access.limits import release
from shared.answering.artifacts import child_ids, remember_ids
from shared.conversations.branches import is_shown_elsewhere, relatives_of
from shared.conversations.models import EraseTask, Thread, ThreadTurn
from shared.conversations.thread_store import ThreadStore
from shared.erasure.services import ErasureServices
from shared.platform.concurrency import run_together
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.instances import StopRun
from shared.platform.names import ERASURES_QUEUE, RUN_LOG
from shared.runs.event_log import RunClosedError, StaleAttemptError, open_event_log
from shared.runs.events import ErrorEvent
from shared.runs.run_files import RunFiles
from shared.runs.run_log import RunLog

# The platform ends a function after ten minutes (host.json, functionTimeout); no step outlives that.
LAST_PASS_AFTER_S = 15 * 60.0
CLOSING_STEP = 9998  # behind every step of a run
_READERS_S = 0.5  # until those who follow the run have read its last event; they look every 0.25 s
_AT_ONCE = 50  # turns that are read with one call


async def erase(task: EraseTask, services: ErasureServices, stop: StopRun) -> None:
    """Make one pass over the turns that are to go; the first asks for the last."""
    thread = await services.threads.get(task.owner_id, task.thread_id)
    if thread is None:
        return
    await erase_turns(thread, task.through, services, stop, is_last=task.is_last)
    if not task.is_last:
        last = task.model_copy(update={"is_last": True}).model_dump_json()
        await services.queues.send(ERASURES_QUEUE, last, LAST_PASS_AFTER_S)
    elif thread.is_deleted and task.through == thread.turn_count:
        await services.threads.remove(thread)
    else:

        def counted(current: Thread) -> Thread:
            return current.model_copy(update={"erased_count": max(current.erased_count, task.through)})

        await changed(thread, counted, services.threads)


async def erase_turns(
    thread: Thread,
    through: int,
    services: ErasureServices,
    stop: StopRun,
    *,
    is_last: bool,
    require_time: Callable[[], None] = lambda: None,
) -> None:
    """Make one pass over the turns of a thread up to a number; the last pass removes them.

    A run that a branch shows, too, stays. `require_time` is asked before each turn that is to go; what it
    raises ends the pass.
    """
    relatives = await relatives_of(thread, services.threads)
    before = through + 1
    while turns := await services.threads.turns(thread.owner_id, thread.thread_id, _AT_ONCE, before):
        for turn in turns:
            if is_last or turn.status != "erased":
                require_time()
                await _mark_erased(thread.owner_id, turn, services.threads)
                # Marked first: an answer that is committed meanwhile is refused, or erased here.
                if not await is_shown_elsewhere(turn, relatives, services.threads):
                    await erase_run(turn.run_id, services, stop, is_last=is_last)
            if is_last:
                await services.threads.remove_turn(thread.owner_id, turn)
        before = turns[-1].number


async def erase_run(run_id: str, services: ErasureServices, stop: StopRun, *, is_last: bool) -> None:
    """Delete a run's journal, answer, files (also of its sub-agents), record and memory.

    Until the last pass the names of its sub-agents stay, by which their histories are found then.
    """
    await stop(run_id)
    # Then its sub-agents: nobody starts one for a run that is ended.
    children = await child_ids(services.blobs, run_id)
    await run_together(*(stop(child_id) for child_id in children))
    record = await services.runs.get(run_id)
    # First the record: a commit that comes after it finds none, and takes its own answer away again.
    await services.runs.delete(run_id)
    if record is not None and record.finished_at is None:
        await release(record.owner_id, run_id, services.settings, services.user_limits)
        await _tell_readers(run_id, services.run_log)
    await run_together(
        services.run_log.delete(run_id),
        services.blobs.delete_prefix(RUN_LOG, f"{run_id}/"),
        RunFiles(services.blobs, run_id).erase(),
        services.memory_index.delete([run_id]),
    )
    if not is_last:
        await remember_ids(services.blobs, run_id, children)


async def _mark_erased(owner_id: str, turn: ThreadTurn, threads: ThreadStore) -> None:
    current: ThreadTurn | None = turn
    while current is not None and current.status != "erased":
        emptied = current.model_copy(
            update={"status": "erased", "question": "", "answer": "", "doc_ids": (), "filenames": ()}
        )
        try:
            await threads.replace_turn(owner_id, emptied)
        except NotFoundError:
            return
        except ConflictError:
            current = await threads.turn(owner_id, turn.thread_id, turn.number)
        else:
            return


async def _tell_readers(run_id: str, run_log: RunLog) -> None:
    """Send a run's last event, so that nobody waits for more."""
    try:
        event_log = await open_event_log(run_log, run_id, CLOSING_STEP)
        await event_log.write(
            ErrorEvent(
                type=NotFoundError.code,
                message="The thread of this question was cleared or deleted.",
                hints=("Ask again in another thread.",),
            )
        )
    except (RunClosedError, StaleAttemptError, NotFoundError):
        return  # it has ended, or its log is gone already
    await asyncio.sleep(_READERS_S)


async def changed(thread: Thread, change: Callable[[Thread], Thread], threads: ThreadStore) -> Thread | None:
    """Apply the change however often others write; the thread, None when it is gone."""
    current: Thread | None = thread
    while current is not None and (wanted := change(current)) != current:
        try:
            return await threads.replace(current, wanted)
        except (ConflictError, NotFoundError):
            current = await threads.get(thread.owner_id, thread.thread_id)
    return current
