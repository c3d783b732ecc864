"""Cancelling a run. Its last event decides: once that stands in the log, nothing follows it, and what else is
stored about the run is brought in line with it."""

from datetime import UTC, datetime

from shared.access.limits import release
from shared.answering.services import AnsweringServices
from shared.platform.concurrency import run_in_background
from shared.platform.errors import ConflictError, NotFoundError, RunCancelledError
from shared.quality.run_quality import note_end
from shared.runs.event_log import RunClosedError, StaleAttemptError, open_event_log
from shared.runs.events import ErrorEvent, events_of, is_terminal
from shared.runs.models import RunRecord
from shared.runs.run_log import RunLog
from shared.runs.run_store import RunStore

_CANCELLING_STEP = 9998  # no run decides so many steps
_MESSAGE = "The run was cancelled by its owner."


async def cancel_run(run_id: str, services: AnsweringServices) -> RunRecord:
    """End a run, unless it has ended; doing it twice changes nothing. The caller ends the orchestration.

    Raises:
        ConflictError: it has ended otherwise.
    """
    try:
        event_log = await open_event_log(services.run_log, run_id, _CANCELLING_STEP)
        await event_log.write(ErrorEvent(type=RunCancelledError.code, message=_MESSAGE))
    except (RunClosedError, StaleAttemptError):
        pass  # it ended, or somebody else is cancelling it: what the log says counts
    except NotFoundError:
        return await _long_cancelled(run_id, services.runs)
    record = await keep_cancelled(run_id, services.run_log, services.runs)
    if record is None:
        raise _has_ended()
    await release(record.owner_id, run_id, services.settings, services.user_limits)
    run_in_background(note_end(record, services))
    return record


async def keep_cancelled(run_id: str, run_log: RunLog, runs: RunStore) -> RunRecord | None:
    """Make the record say what the log says, if that is that the run was cancelled; None if it is not."""
    if not await _was_cancelled(run_id, run_log):
        return None
    record = await runs.get(run_id)
    if record is None or record.status == "cancelled":
        return record
    ended = record.model_copy(
        update={
            "status": "cancelled",
            "finished_at": datetime.now(UTC),
            "error": _MESSAGE,
            "error_type": RunCancelledError.code,
        }
    )
    await runs.replace(ended)
    return ended


async def _long_cancelled(run_id: str, runs: RunStore) -> RunRecord:
    """The record of a run whose log is kept no more."""
    record = await runs.get(run_id)
    if record is None or record.status != "cancelled":
        raise _has_ended()
    return record


def _has_ended() -> ConflictError:
    return ConflictError("The run has ended already.", "Read its answer, or ask again.")


async def _was_cancelled(run_id: str, run_log: RunLog) -> bool:
    written = await run_log.read(run_id)
    last = next(filter(is_terminal, events_of(written)), None)
    return isinstance(last, ErrorEvent) and last.type == RunCancelledError.code
