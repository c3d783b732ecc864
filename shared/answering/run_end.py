"""Ending a run: commit its answer, report its failure, or cancel it.

The answer and the record are stored before the last event is sent. No event follows a terminal event, so the
log decides how a run ended, and the record is updated to match it.
"""

from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime

from shared.access.limits import release
from shared.answering.models import Turn
from shared.answering.services import AnsweringServices
from shared.answering.shown_documents import record_unanswered
from shared.answering.step_context import StepContext
from shared.answering.steps import CommitAnswer, ReportFailure, RunClosed
from shared.conversations.thread_store import ThreadStore
from shared.conversations.threads import ask_to_remember, close_turn, show_run
from shared.platform.blobs import BlobStore
from shared.platform.concurrency import run_in_background, run_together
from shared.platform.errors import ConflictError, NotFoundError, RunCancelledError
from shared.platform.names import RUN_LOG
from shared.quality.run_quality import note_end
from shared.runs.event_log import EventLog, RunClosedError, StaleAttemptError, open_event_log
from shared.runs.events import CompleteEvent, ErrorEvent, events_of, is_terminal
from shared.runs.models import RunAnswer, RunRecord
from shared.runs.plan import TodoItem
from shared.runs.run_files import RunFiles, answer_path, committed_answer
from shared.runs.run_store import RunStore

_CANCELLING_STEP = 9998  # higher than any run's steps
_MESSAGE = "The run was cancelled by its owner."
_HAS_ENDED = ("The run has ended already.", "Read its answer, or ask again.")


async def commit_step(context: StepContext, action: CommitAnswer) -> RunClosed:
    """Store the answer, then send COMPLETE."""
    turn = await context.journal.get(action.answer_step, Turn, "turn")
    event_log = context.begin()  # concurrent attempts store the same; only one sends COMPLETE
    answer = turn.answer.model_copy(update={"tokens": context.tokens})
    await commit_answer(answer, action, context, event_log)
    return RunClosed()


async def report_step(context: StepContext, action: ReportFailure) -> RunClosed:
    """Store the failure, then send ERROR."""
    await report_failure(context.run_id, action, context.services, await context.open())
    return RunClosed()


async def commit_answer(
    answer: RunAnswer, action: CommitAnswer, context: StepContext, event_log: EventLog
) -> None:
    """Store the answer and the run's record, then send COMPLETE. Idempotent."""
    services = context.services
    content = answer.model_dump_json().encode()
    request, (record, _) = await run_together(
        RunFiles(services.blobs, answer.run_id).request(),
        run_together(
            services.runs.get(answer.run_id),
            services.blobs.write(RUN_LOG, answer_path(answer.run_id), content),
        ),
    )
    if record is not None:
        ended = {"status": "completed", "finished_at": datetime.now(UTC), "todo": tuple(action.todo)}
        record = record.model_copy(update=ended)
        await _commit_record(record, answer, services.blobs, services.runs, services.threads)
    # Send COMPLETE only when the answer is readable everywhere. The other writes may finish later.
    complete = event_log.write(_complete(answer, request.thread_id, action.todo))
    background_writes: list[Coroutine[None, None, None]] = [context.shown.record_end(answer)]
    if record is not None:
        background_writes += [
            ask_to_remember(record, services.queues),
            release(record.owner_id, record.run_id, services.settings, services.user_limits),
        ]
    try:
        await run_together(complete, *background_writes)
    except NotFoundError:
        raise await _withdrawn(answer.run_id, services.blobs) from None
    await note_end(record, services, answer, action.answer_step, context.journal)


async def report_failure(
    run_id: str,
    action: ReportFailure,
    services: AnsweringServices,
    event_log: EventLog,
) -> None:
    """Store the failure, then send ERROR. If an answer was already committed, send COMPLETE instead."""
    record = await services.runs.get(run_id)
    if record is not None and record.status == "completed":
        answer = await committed_answer(run_id, services.blobs)
        await event_log.write(_complete(answer, record.thread_id, record.todo))
        await note_end(record, services, answer)
        return
    if record is not None:
        ended = {
            "status": "failed",
            "finished_at": datetime.now(UTC),
            "error": action.message,
            "error_type": action.error_type,
        }
        record = record.model_copy(update=ended)
        await run_together(services.runs.replace(record), show_run(record, services.threads))
    send_error = event_log.write(
        ErrorEvent(type=action.error_type, message=action.message, hints=action.hints)
    )
    if record is None:
        await send_error
    else:
        await run_together(
            send_error,
            release(record.owner_id, run_id, services.settings, services.user_limits),
            record_unanswered(record, "fail", services),
        )
    await note_end(record, services)


async def cancel_run(run_id: str, services: AnsweringServices) -> RunRecord:
    """Cancel a run unless it has ended, and return its record. Idempotent. The caller ends the orchestration.

    Raises:
        ConflictError: the run has already ended in another way.
    """
    try:
        event_log = await open_event_log(services.run_log, run_id, _CANCELLING_STEP)
        await event_log.write(ErrorEvent(type=RunCancelledError.code, message=_MESSAGE))
    except (RunClosedError, StaleAttemptError):
        pass  # the run ended or is being cancelled elsewhere; the log decides
    except NotFoundError:  # the log was purged
        ended = await services.runs.get(run_id)
        if ended is not None and ended.status == "cancelled":
            return ended
        raise ConflictError(*_HAS_ENDED) from None
    record = await keep_cancelled(run_id, services)
    if record is None:
        raise ConflictError(*_HAS_ENDED)
    await run_together(
        release(record.owner_id, run_id, services.settings, services.user_limits),
        record_unanswered(record, "cancel", services),
    )
    run_in_background(note_end(record, services))
    return record


async def keep_cancelled(run_id: str, services: AnsweringServices) -> RunRecord | None:
    """Update record and thread if the log says that the run was cancelled; otherwise return None."""
    last = next(filter(is_terminal, events_of(await services.run_log.read(run_id))), None)
    if not isinstance(last, ErrorEvent) or last.type != RunCancelledError.code:
        return None
    record = await services.runs.get(run_id)
    if record is None:
        return None
    if record.status == "cancelled":
        await show_run(record, services.threads)  # an earlier attempt may have failed before this call
        return record
    ended = record.model_copy(
        update={
            "status": "cancelled",
            "finished_at": datetime.now(UTC),
            "error": _MESSAGE,
            "error_type": RunCancelledError.code,
        }
    )
    await run_together(services.runs.replace(ended), show_run(ended, services.threads))
    return ended


async def _commit_record(
    record: RunRecord, answer: RunAnswer, blobs: BlobStore, runs: RunStore, threads: ThreadStore
) -> None:
    """Store the end in the thread and in the run's record.

    Raises:
        RunClosedError: the thread was deleted meanwhile, so the answer was deleted as well.
    """
    try:
        # The thread first, so that a follow-up to a completed run always finds the answer in the thread.
        await close_turn(record, answer, threads)
        await runs.replace(record)
    except (RunClosedError, NotFoundError):
        raise await _withdrawn(record.run_id, blobs) from None


async def _withdrawn(run_id: str, blobs: BlobStore) -> RunClosedError:
    """Delete an answer whose thread no longer exists, and return the error to raise."""
    await blobs.delete(RUN_LOG, answer_path(run_id))
    return RunClosedError("The run's thread was cleared or deleted.")


def _complete(answer: RunAnswer, thread_id: str, todo: Sequence[TodoItem]) -> CompleteEvent:
    return CompleteEvent(run_id=answer.run_id, thread_id=thread_id, answer=answer, todo=tuple(todo))
