"""Asking the person which document is meant, and going on with the answer."""

from datetime import UTC, datetime, timedelta

from shared.access.limits import admit, hold, release, slot_of_run
from shared.access.models import UserContext
from shared.answering.attempt import StepAttempt
from shared.answering.clarification import chosen_doc_ids, read_answer
from shared.answering.services import AnsweringServices
from shared.answering.steps import TakeAnswer
from shared.conversations.threads import show_run
from shared.evidence.messages import messages_in
from shared.evidence.untrusted_text import shown_name
from shared.platform.blobs import BlobStore
from shared.platform.concurrency import run_together
from shared.platform.errors import ConflictError
from shared.platform.models import Model
from shared.runs.event_log import EventLog
from shared.runs.events import AnsweredStatus, AskUserEvent, ThoughtEvent, warning_events
from shared.runs.evidence import StoredPlan
from shared.runs.models import (
    Choice,
    Clarification,
    ClarificationAnswer,
    RunRecord,
    RunRequest,
    RunStatus,
    asker_after_wait,
)
from shared.runs.working_memory import WorkingMemory


class Resumed(Model):
    """When a run first went on after its wait, with zone."""

    at: datetime


_ENDED = ("completed", "failed", "cancelled")


async def pending_clarification(record: RunRecord, blobs: BlobStore) -> Clarification | None:
    """The question that a run waits on; None if it waits on none."""
    if record.status != "waiting":
        return None
    return await WorkingMemory(blobs, record.run_id).get(record.ask_step, Clarification, "asked")


async def answer_clarification(
    record: RunRecord, answer: ClarificationAnswer, user: UserContext, services: AnsweringServices
) -> bool:
    """Store an answer; the caller then tells the orchestration. Doing it twice changes nothing.

    True when the run has to be told: it may not know of the answer yet.

    Args:
        user: the run's owner as of now: their rights may be others than when they asked, days ago.

    Raises:
        CallerError: there is no such option; the run continues waiting.
        ConflictError: nothing was asked, or it was answered otherwise, or no answer came in time.
        TooManyRunsError: the run would be one too many at work; it continues waiting.
    """
    if not record.ask_step:
        raise ConflictError(
            "The run has no open clarifying question.", "Read its events to see what it does."
        )
    memory = WorkingMemory(services.blobs, record.run_id)
    asked = await memory.get(record.ask_step, Clarification, "asked")
    choice = read_answer(answer, asked.options).model_copy(update={"asker": user})
    if record.status == "waiting":
        slot = slot_of_run(record.run_id, services.settings)
        await admit(user, services.settings, services.user_limits, slot=slot)
    if record.status in _ENDED:
        kept = await memory.find(record.ask_step, Choice, "answered")
    else:
        kept = await memory.put(record.ask_step, choice, "answered")
    if kept is None or (kept.numbers, kept.extra_words) != (choice.numbers, choice.extra_words):
        raise ConflictError("The clarifying question was already answered, or has expired.", "Ask again.")
    return record.status == "waiting"


async def ask_user(
    attempt: StepAttempt, request: RunRequest, asked: Clarification, event_log: EventLog
) -> None:
    """Store a question, mark the run as waiting, then show it with its options.

    In this order, so that people who see the options can answer. Waiting runs don't count against a limit.
    """
    memory, services, step = attempt.memory, attempt.services, attempt.action.step
    asked = await memory.put(step, asked, "asked")
    await _set_status(memory.run_id, "waiting", step, services)
    await event_log.write(
        AskUserEvent(question=asked.question, options=asked.options, expires_at=asked.expires_at)
    )
    await release(request.user.user_id, memory.run_id, services.settings, services.user_limits)


def expires_at(attempt: StepAttempt) -> datetime:
    """Until when the answer to a question that is put now is waited for."""
    waits_s = attempt.services.settings.answering.clarification_timeout_s
    return datetime.now(UTC) + timedelta(seconds=waits_s)


async def resume(attempt: StepAttempt, ask_step: int) -> tuple[Choice, datetime]:
    """The answer to a question, empty when none came, and when the run went on; the same for all attempts."""
    memory, services = attempt.memory, attempt.services
    # The first to be stored counts: an answer that came at the last moment, or that none came.
    choice = await memory.put(ask_step, Choice(), "answered")
    request = await memory.request()
    await run_together(
        _set_status(memory.run_id, "running", ask_step, services),
        hold(
            request.user.user_id,
            slot_of_run(memory.run_id, services.settings),
            services.settings,
            services.user_limits,
        ),
    )
    # One time for all attempts: the run's time counts from it.
    resumed = await memory.put(ask_step, Resumed(at=datetime.now(UTC)), "resumed")
    return choice, resumed.at


async def resumed_before(attempt: StepAttempt, ask_step: int) -> tuple[Choice, datetime]:
    """The same, of a question that an earlier step went on from."""
    choice = await attempt.memory.find(ask_step, Choice, "answered")
    resumed = await attempt.memory.get(ask_step, Resumed, "resumed")
    return choice or Choice(), resumed.at


async def with_choice(
    attempt: StepAttempt, action: TakeAnswer, stored: StoredPlan, event_log: EventLog
) -> StoredPlan:
    """The plan with the documents chosen; with all of them when no answer came, or one in other words."""
    choice, resumed_at = await resume(attempt, action.ask_step)
    request = await attempt.memory.request()
    taken = with_rights(_with_choice(stored, choice), request, choice, resumed_at)
    await event_log.write(
        _thought(stored, choice),
        AnsweredStatus.of(choice),
        *warning_events(taken.warnings[len(stored.warnings) :]),
    )
    return taken


def with_rights(stored: StoredPlan, request: RunRequest, choice: Choice, resumed_at: datetime) -> StoredPlan:
    """The plan of a run that continues: as whom, and since when; warns if nobody known replied."""
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


async def _set_status(run_id: str, status: RunStatus, asked: int, services: AnsweringServices) -> None:
    record = await services.runs.get(run_id)
    if record is not None and record.status in ("running", "waiting"):
        changed = record.model_copy(update={"status": status, "ask_step": asked})
        await run_together(services.runs.replace(changed), show_run(changed, services.threads))
