"""Erasure of the turns of cleared or deleted threads, and of runs, from every store. It takes two passes.

The first pass deletes everything at once, even data of active runs, and marks the turns so that no answer is
accepted. Steps that were active may still write data. Therefore the last pass repeats the deletion when no
step can be active any more, and removes the turns. Passes are idempotent.
"""

import asyncio
from collections.abc import Callable

from shared.access.limits import release
from shared.answering.children import child_ids, store_child_ids
from shared.answering.shares import end_shares
from shared.conversations.branches import is_shown_elsewhere, relatives_of
from shared.conversations.models import EraseTask, Thread, ThreadTurn
from shared.conversations.thread_store import ThreadStore
from shared.erasure.models import EraseRunTask
from shared.erasure.services import ErasureServices
from shared.ingestion.thread_files import remove_files
from shared.platform.concurrency import run_together
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.instances import StopRun
from shared.platform.names import ERASURES_QUEUE, RUN_LOG
from shared.runs.event_log import RunClosedError, StaleAttemptError, open_event_log
from shared.runs.events import ErrorEvent
from shared.runs.run_files import RunFiles
from shared.runs.run_log import RunLog

# After this time no step is active, because the platform ends functions after ten minutes (functionTimeout in
# host.json).
LAST_PASS_AFTER_S = 15 * 60.0
# Higher than the number of any regular step of a run.
CLOSING_STEP = 9998
# Time for readers of a run to see its last event. They poll every 0.25 s.
_READERS_S = 0.5
# Number of turns read at a time.
_AT_ONCE = 50


async def erase(task: EraseTask, services: ErasureServices, stop: StopRun) -> None:
    """Run one pass over the turns to erase. The first pass queues a message for the last one."""
    thread = await services.threads.get(task.owner_id, task.thread_id)
    if thread is None:
        return
    if thread.is_deleted:
        # Repeated in each pass, because files may be added while the thread is being deleted.
        await remove_files(thread.thread_id, services)
    await erase_turns(thread, task.through, services, stop, is_last=task.is_last)
    if not task.is_last:
        last = task.model_copy(update={"is_last": True}).model_dump_json()
        await services.queues.send(ERASURES_QUEUE, last, LAST_PASS_AFTER_S)
    elif thread.is_deleted and task.through == thread.turn_count:
        await services.threads.remove(thread)
    else:

        def counted(current: Thread) -> Thread:
            return current.model_copy(update={"erased_count": max(current.erased_count, task.through)})

        await change_thread(thread, counted, services.threads)


async def erase_turns(
    thread: Thread,
    through: int,
    services: ErasureServices,
    stop: StopRun,
    *,
    is_last: bool,
    require_time: Callable[[], None] = lambda: None,
) -> None:
    """Run one erasure pass over the turns of a thread with numbers up to `through`. The last pass also
    deletes the rows of the turns.

    Runs that a branch of the thread also shows are kept. `require_time` is called before each turn; if it
    raises an exception, the pass ends.
    """
    relatives = await relatives_of(thread, services.threads)
    before = through + 1
    while turns := await services.threads.turns(thread.owner_id, thread.thread_id, _AT_ONCE, before):
        for turn in turns:
            if is_last or turn.status != "erased":
                require_time()
                await _mark_erased(thread.owner_id, turn, services.threads)
                # The turn is marked first, so that an answer committed in the meantime is rejected, or erased
                # here.
                if not await is_shown_elsewhere(turn, relatives, services.threads):
                    await erase_run(turn.run_id, services, stop, is_last=is_last)
            if is_last:
                await services.threads.remove_turn(thread.owner_id, turn)
        before = turns[-1].number


async def erase_run(run_id: str, services: ErasureServices, stop: StopRun, *, is_last: bool) -> None:
    """Delete a run's record, journal, answer, files and memory, and the same data of its sub-agents.

    The list of sub-agents is kept until the last pass, which needs it to delete their histories.
    """
    await stop(run_id)
    # The parent is stopped first, so that it can't start more sub-agents.
    children = await child_ids(services.run_log, services.blobs, run_id)
    await run_together(*(stop(child_id) for child_id in children))
    record = await services.runs.get(run_id)
    # The record is deleted first: a commit that doesn't find it deletes its own answer.
    await services.runs.delete(run_id)
    if record is not None and record.finished_at is None:
        await release(record.owner_id, run_id, services.settings, services.user_limits)
        await _tell_readers(run_id, services.run_log)
    await end_shares(run_id, services.blobs)
    await run_together(
        services.run_log.delete(run_id),
        services.blobs.delete_prefix(RUN_LOG, f"{run_id}/"),
        RunFiles(services.blobs, run_id).erase(),
        services.memory_index.delete([run_id]),
    )
    if not is_last:
        await store_child_ids(services.blobs, run_id, children)


async def delete_run(run_id: str, services: ErasureServices, forget: StopRun) -> None:
    """Delete a run that belongs to no thread. A queued message repeats the deletion later, in case a running
    step has written data meanwhile.
    """
    last = EraseRunTask(run_id=run_id).model_dump_json()
    await services.queues.send(ERASURES_QUEUE, last, LAST_PASS_AFTER_S)
    await erase_run(run_id, services, forget, is_last=True)


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
    """Append a final error event to the journal of an active run, so that its readers stop waiting."""
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
        return  # The run has already ended, or its journal has been deleted.
    await asyncio.sleep(_READERS_S)


async def change_thread(
    thread: Thread, change: Callable[[Thread], Thread], threads: ThreadStore
) -> Thread | None:
    """Apply a change to a thread, retrying after conflicts until it succeeds. Return the changed thread, or
    None if the thread no longer exists.
    """
    current: Thread | None = thread
    while current is not None and (target := change(current)) != current:
        try:
            return await threads.replace(current, target)
        except (ConflictError, NotFoundError):
            current = await threads.get(thread.owner_id, thread.thread_id)
    return current
