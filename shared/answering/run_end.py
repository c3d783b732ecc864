"""Ends a run: commits its answer, reports its failure, or cancels it.

The last event decides how a run ended, and no event follows it. Everything else is projected from the journal
afterwards.
"""

from shared.answering.models import Turn
from shared.answering.projections import project
from shared.answering.services import AnsweringServices
from shared.answering.step_context import StepContext
from shared.answering.steps import CommitAnswer, ReportFailure, RunClosed
from shared.platform.concurrency import run_together
from shared.platform.errors import ConflictError, NotFoundError, RunCancelledError
from shared.runs.event_log import EventLog, RunClosedError, StaleAttemptError, open_event_log
from shared.runs.events import CompleteEvent, ErrorEvent
from shared.runs.journal import Journal
from shared.runs.models import RunRecord

# Step numbers of the events that end a run from outside. They are higher than those of any real step.
_CANCELLING_STEP = 9998
_CLOSING_STEP = 9999
_MESSAGE = "The run was cancelled by its owner."
_HAS_ENDED = ("The run has ended already.", "Read its answer, or ask again.")


async def commit_step(context: StepContext, action: CommitAnswer) -> RunClosed:
    """Write COMPLETE with the answer as the last event. If several attempts run concurrently, only one writes
    it.
    """
    turn = await context.journal.get(action.answer_step, Turn, "turn")
    answer = turn.answer.model_copy(update={"tokens": context.tokens})
    request = await context.request()
    complete = CompleteEvent(
        run_id=answer.run_id, thread_id=request.thread_id, answer=answer, todo=tuple(action.todo)
    )
    event_log = context.begin()
    try:
        await run_together(event_log.write(complete), context.shown.record_end(answer))
    except NotFoundError:
        raise RunClosedError("The run's thread was cleared or deleted.") from None
    return await project_end(context, event_log)


async def report_step(context: StepContext, action: ReportFailure) -> RunClosed:
    """Write ERROR with the failure as the last event."""
    event_log = context.begin()
    await event_log.write(ErrorEvent(type=action.error_type, message=action.message, hints=action.hints))
    return await project_end(context, event_log)


async def close_run(run_id: str, end: ErrorEvent, services: AnsweringServices) -> RunRecord | None:
    """Write `end` as the last event of a run, from outside its orchestration, unless the run has ended.
    Return its record.

    Raises:
        NotFoundError: the journal was purged.
    """
    is_cancelled = end.type == RunCancelledError.code
    try:
        step = _CANCELLING_STEP if is_cancelled else _CLOSING_STEP
        await open_event_log(services.run_log, run_id, step, [end])
    except (RunClosedError, StaleAttemptError):
        pass  # the run itself or another caller has ended it
    return await project_run(run_id, services)


async def project_run(run_id: str, services: AnsweringServices) -> RunRecord | None:
    """Update the record, thread and other copies of a run's end from its journal, and return the record (see
    `project`).

    Raises:
        NotFoundError: the journal was purged.
    """
    journal = Journal(services.run_log, services.blobs, run_id)
    await journal.read()
    return await project(journal, services)


async def cancel_run(run_id: str, services: AnsweringServices) -> RunRecord:
    """Cancel a run and return its record. Repeating the call has no effect. The caller terminates the
    orchestration.

    Raises:
        ConflictError: the run has already ended in another way.
    """
    try:
        record = await close_run(run_id, ErrorEvent(type=RunCancelledError.code, message=_MESSAGE), services)
    except NotFoundError:  # the journal was purged
        record = await services.runs.get(run_id)
    if record is None or record.status != "cancelled":
        raise ConflictError(*_HAS_ENDED)
    return record


async def project_end(context: StepContext, event_log: EventLog) -> RunClosed:
    """Update the record, thread and other copies of a run's end after this attempt has written the last
    event.
    """
    context.journal.add_written(event_log)
    await project(context.journal, context.services)
    return RunClosed()
