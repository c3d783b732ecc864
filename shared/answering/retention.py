"""Deletes the journals and files of old runs, and resumes interrupted erasures.

An answer and its record are kept as long as their thread, so old threads remain readable. A summary has no
thread, so nothing of it is kept.
"""

from datetime import datetime, timedelta

from shared.answering.children import child_ids
from shared.answering.services import AnsweringServices
from shared.conversations.thread_store import ThreadStore
from shared.conversations.threads import ask_to_erase
from shared.platform.blobs import BlobStore
from shared.platform.concurrency import run_together
from shared.platform.errors import NotFoundError
from shared.platform.instances import StopRun
from shared.platform.queues import TaskQueues
from shared.runs.models import RunRecord
from shared.runs.run_files import RunFiles
from shared.runs.run_log import RunLog
from shared.runs.run_store import RunStore

# Maximum number of runs purged per call, which takes a few minutes. The next call continues.
MOST_AT_ONCE = 1000


async def purge_old_runs(now: datetime, services: AnsweringServices, forget: StopRun) -> int:
    """Delete the journals and files of runs older than the retention period, and return the number of runs.

    `forget` deletes the orchestrator's state of a run or of one of its sub-agents.
    """
    limit = now - timedelta(days=services.settings.conversations.run_retention_days)
    purged = 0
    async for record in services.runs.ended_before(limit):
        await _purge(record, services.blobs, services.run_log, services.runs, forget)
        purged += 1
        if purged == MOST_AT_ONCE:
            break
    return purged


async def resume_erasures(threads: ThreadStore, queues: TaskQueues) -> int:
    """Enqueue every unfinished erasure of a thread again, and return their number."""
    resumed = 0
    async for thread in threads.unerased():
        await ask_to_erase(thread, queues)
        resumed += 1
    return resumed


async def _purge(
    record: RunRecord, blobs: BlobStore, run_log: RunLog, runs: RunStore, forget: StopRun
) -> None:
    children = await child_ids(run_log, blobs, record.run_id)
    await run_together(
        *(forget(instance_id) for instance_id in (record.run_id, *children)),
        run_log.delete(record.run_id),
        RunFiles(blobs, record.run_id).erase(),
    )
    if record.profile == "document_summary":
        await runs.delete(record.run_id)
        return
    # Read the record again, because feedback may have been added in the meantime.
    record = await runs.get(record.run_id) or record
    try:
        await runs.replace(record.model_copy(update={"has_log": False}))
    except NotFoundError:
        return  # the thread and its runs were deleted in the meantime
