"""Asks the user which document is meant, and resumes the run with the reply."""

from datetime import UTC, datetime, timedelta

from shared.access.limits import admit, hold, release, slot_of_run
from shared.access.models import UserContext
from shared.answering.clarification import chosen_doc_ids, read_reply
from shared.answering.services import AnsweringServices
from shared.answering.step_context import Observed, StepContext
from shared.answering.steps import TakeAnswer
from shared.conversations.turns import show_run
from shared.evidence.messages import messages_in
from shared.evidence.untrusted_text import shown_name
from shared.platform.concurrency import run_together
from shared.platform.errors import ConflictError, NotFoundError
from shared.runs.event_log import EventLog, RunClosedError
from shared.runs.events import AnsweredStatus, AskUserEvent, ReplyLine, ThoughtEvent, warning_events
from shared.runs.evidence import StoredPlan
from shared.runs.journal import clarification_of, keep_reply
from shared.runs.models import (
    Choice,
    Clarification,
    ClarificationAnswer,
    RunRecord,
    RunRequest,
    RunStatus,
    asker_after_wait,
)
from shared.runs.run_log import RunLog

_ENDED = ("completed", "failed", "cancelled")


async def pending_clarification(record: RunRecord, run_log: RunLog) -> Clarification | None:
    """Return the open clarification of a waiting run, or None if the run isn't waiting."""
    if record.status != "waiting":
        return None
    clarification, _ = await clarification_of(record.run_id, record.ask_step, run_log)
    return clarification


async def answer_clarification(
    record: RunRecord, answer: ClarificationAnswer, user: UserContext, services: AnsweringServices
) -> bool:
    """Store the user's reply to a clarification. Repeating the same reply has no effect.

    Args:
        user: the run's owner with current permissions, which may have changed since the question.

    Returns:
        Whether the caller must signal the orchestration, because the run may still be waiting.

    Raises:
        CallerError: the option doesn't exist; the run continues to wait.
        ConflictError: the question isn't open, was answered differently, or has expired.
        TooManyRunsError: the user has too many running runs; this run continues to wait.
    """
    if not record.ask_step:
        raise ConflictError(
            "The run has no open clarifying question.", "Read its events for its current state."
        )
    clarification, reply = await clarification_of(record.run_id, record.ask_step, services.run_log)
    if clarification is None:
        raise ConflictError("The run is about to ask its clarifying question.", "Send the answer again.")
    choice = read_reply(answer, clarification.options).model_copy(update={"asker": user})
    if record.status == "waiting":
        slot = slot_of_run(record.run_id, services.settings)
        await admit(user, services.settings, services.user_limits, slot=slot)
    if reply is None and record.status not in _ENDED:
        reply = await _reply(record, choice, services)
    stored = reply.choice if reply else None
    if stored is None or (stored.numbers, stored.extra_words) != (choice.numbers, choice.extra_words):
        raise ConflictError("The clarifying question was already answered, or has expired.", "Ask again.")
    return record.status == "waiting"


async def _reply(record: RunRecord, choice: Choice, services: AnsweringServices) -> ReplyLine | None:
    """Append the reply to the journal and return the reply that counts, which is the first. Return None if
    the run has ended.
    """
    try:
        now = datetime.now(UTC)
        return await keep_reply(services.run_log, record.run_id, record.ask_step, choice, now)
    except RunClosedError:
        return None


async def ask_user(
    context: StepContext, request: RunRequest, clarification: Clarification, observed: Observed
) -> Observed:
    """Mark the run as waiting, then complete the step and send the clarifying question with its options.

    The order matters: users can answer as soon as they see the options. Waiting runs don't count against the
    limit.
    """
    services, run_id = context.services, context.run_id
    await _set_status(run_id, "waiting", context.action.step, services)
    event = AskUserEvent(
        question=clarification.question, options=clarification.options, expires_at=clarification.expires_at
    )
    await context.complete(observed, event)
    await release(request.user.user_id, run_id, services.settings, services.user_limits)
    return observed


def expires_at(context: StepContext) -> datetime:
    """Return the time at which a clarifying question that is asked now expires."""
    waits_s = context.services.settings.answering.clarification_timeout_s
    return datetime.now(UTC) + timedelta(seconds=waits_s)


async def resume(context: StepContext, ask_step: int) -> tuple[Choice, datetime]:
    """Resume a run that asked the user, and return the choice and the time of the reply. After a timeout, the
    choice is empty.

    All attempts return the same result, because only the first reply in the journal counts.
    """
    services, run_id = context.services, context.run_id
    reply = context.journal.reply(ask_step)
    if reply is None:
        now = datetime.now(UTC)
        reply = await keep_reply(services.run_log, run_id, ask_step, Choice(), now)
    request = await context.request()
    await run_together(
        _set_status(run_id, "running", ask_step, services),
        hold(
            request.user.user_id,
            slot_of_run(run_id, services.settings),
            services.settings,
            services.user_limits,
        ),
    )
    return reply.choice, reply.at


def resumed_before(context: StepContext, ask_step: int) -> tuple[Choice, datetime]:
    """Return the choice with which an earlier step resumed the run, and the time of the reply."""
    reply = context.journal.reply(ask_step)
    if reply is None:
        raise NotFoundError("The run has no reply to its clarification.")
    return reply.choice, reply.at


async def with_choice(
    context: StepContext, action: TakeAnswer, stored: StoredPlan, event_log: EventLog
) -> StoredPlan:
    """Resume the run and return its plan, restricted to the chosen documents. If the user chose none, all
    options are used.
    """
    choice, resumed_at = await resume(context, action.ask_step)
    request = await context.request()
    resumed = with_rights(_with_choice(stored, choice), request, choice, resumed_at)
    await event_log.write(
        _thought(stored, choice),
        AnsweredStatus.of(choice),
        *warning_events(resumed.warnings[len(stored.warnings) :]),
    )
    return resumed


def with_rights(stored: StoredPlan, request: RunRequest, choice: Choice, resumed_at: datetime) -> StoredPlan:
    """Return the plan with the permissions of the user who replied and with the time of the reply.

    A reply without a known user adds a warning to the plan.
    """
    asker = asker_after_wait(request, choice, resumed_at)
    update: dict[str, object] = {"resumed_at": resumed_at, "asker": asker}
    if asker is not None and choice.asker is None:
        warning = messages_in(stored.plan.language).groups_unknown
        update["warnings"] = (*stored.warnings, warning)
    return stored.model_copy(update=update)


def _with_choice(stored: StoredPlan, choice: Choice) -> StoredPlan:
    chosen = chosen_doc_ids(choice, stored.options)
    plan = stored.plan
    if choice.extra_words:
        plan = plan.model_copy(
            update={
                "standalone_question": f"{plan.standalone_question} ({choice.extra_words})",
                "search_queries": (*plan.search_queries, choice.extra_words),
            }
        )
    return stored.model_copy(
        update={
            "plan": plan,
            "doc_ids": tuple(dict.fromkeys((*stored.doc_ids, *chosen))),
            "is_choice": bool(choice.numbers),
            "options": (),
        }
    )


def _thought(stored: StoredPlan, choice: Choice) -> ThoughtEvent:
    if choice.numbers:
        chosen = [option for option in stored.options if option.number in choice.numbers]
        names = tuple(shown_name(option.filename or option.title) for option in chosen)
        return ThoughtEvent(text=f"Continuing with {', '.join(names)}.", code="chosen", filenames=names)
    count = len(stored.options)
    if choice.extra_words:
        text = f"Continuing with all {count} documents and what you added."
        return ThoughtEvent(text=text, code="all_meant", documents=count)
    text = f"No answer came in time; continuing with all {count} documents."
    return ThoughtEvent(text=text, code="unanswered", documents=count)


async def _set_status(run_id: str, status: RunStatus, ask_step: int, services: AnsweringServices) -> None:
    record = await services.runs.get(run_id)
    if record is not None and record.status in ("running", "waiting"):
        changed = record.model_copy(update={"status": status, "ask_step": ask_step})
        await run_together(services.runs.replace(changed), show_run(changed, services.threads))
