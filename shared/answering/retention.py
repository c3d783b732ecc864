"""What is kept how long: old runs lose their log and working memory, and erasures that stopped go on.

A run's answer and record stay as long as its thread, so a thread can be read however old it is.
"""

import asyncio
from datetime import datetime, timedelta

from shared.conversations.threads import ask_to_erase
from shared.platform.errors import NotFoundError
from shared.platform.instances import StopRun
from shared.runs.models import RunRecord
from shared.runs.working_memory import WorkingMemory
from shared.services import Services
from shared.subagents.artifacts import child_ids

MOST_AT_ONCE = 1000  # of one call: some minutes at most; the next call goes on


async def purge_old_runs(now: datetime, services: Services, forget: StopRun) -> int:
    """Take away what only a run in progress, or its readers, need. Returns how many runs it was done for.

    `forget` removes what the orchestrator keeps of the run, or of one of its sub-agents.
    """
    limit = now - timedelta(days=services.settings.run_retention_days)
    purged = 0
    async for record in services.runs.ended_before(limit):
        await _purge(record, services, forget)
        purged += 1
        if purged == MOST_AT_ONCE:
            break
    return purged


async def resume_erasures(services: Services) -> int:
    """Ask again for every erasure that has not come to its end. Returns how many."""
    resumed = 0
    async for thread in services.threads.unerased():
        await ask_to_erase(thread, services)
        resumed += 1
    return resumed


async def _purge(record: RunRecord, services: Services, forget: StopRun) -> None:
    children = await child_ids(services.blobs, record.run_id)
    await asyncio.gather(
        *(forget(instance_id) for instance_id in (record.run_id, *children)),
        services.run_log.delete(record.run_id),
        WorkingMemory(services.blobs, record.run_id).erase(),
    )
    # Read again: it may have been rated since the first of all these were listed.
    record = await services.runs.get(record.run_id) or record
    try:
        await services.runs.replace(record.model_copy(update={"has_log": False}))
    except NotFoundError:
        return  # its thread was deleted meanwhile
