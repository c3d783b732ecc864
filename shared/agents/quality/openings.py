"""Sources that people open after an answer: each citation counts once.

What is opened while the answer is still being written counts, too: its citations stand in the run's log.
"""

import asyncio

from shared.agents.closing import answer_path
from shared.agents.journal import events_of
from shared.agents.quality.recording import NOTE_LIMIT_S, keep, key_of
from shared.agents.runs import owned_run
from shared.errors import NotFoundError
from shared.models.identity import UserContext
from shared.models.names import RUN_LOG
from shared.models.quality import OpeningRecord
from shared.models.runs import RunAnswer, RunRecord
from shared.services import Services
from shared.telemetry import get_logger


async def note_opening(run_id: str, n: int, user: UserContext, services: Services) -> None:
    """Count that the user opened the source of citation `n` of one of their own runs.

    Never raises, and takes 5 s at most: three round trips. A foreign or unknown run, and a number that is
    none of its citations, count nothing. Whoever shows the source runs it beside that.
    """
    try:
        async with asyncio.timeout(NOTE_LIMIT_S):
            await open_source(run_id, n, user, services)
    except NotFoundError:
        return  # an address that somebody made up, or passed on
    except Exception as failed:  # noqa: BLE001  # a source that is shown must not fail for being counted
        get_logger().warning("quality.not_kept", kind="opening", error_type=type(failed).__name__)


async def open_source(run_id: str, n: int, user: UserContext, services: Services) -> None:
    """The same for a caller who is told what is wrong.

    Raises:
        NotFoundError: the user has no such run, or it has no such citation.
    """
    record = await owned_run(run_id, user, services)
    if n not in await _cited(record, services):
        raise NotFoundError(f"The run has no citation {n}.", "Numbers are those of its `citations`.")
    await keep(OpeningRecord(key=key_of(record.run_id), at=record.created_at, n=n), services)


async def _cited(record: RunRecord, services: Services) -> frozenset[int]:
    if record.status == "completed":
        content = await services.blobs.read(RUN_LOG, answer_path(record.run_id))
        return frozenset(citation.n for citation in RunAnswer.from_kept(content).citations)
    if not record.has_log:
        return frozenset()
    events = events_of(await services.run_log.read(record.run_id))
    return frozenset(int(event.data["n"]) for event in events if event.name == "CITATION")
