"""Clarification steps: whether to ask back, the question, and its answer."""

from datetime import UTC, datetime, timedelta

from shared.access.limits import hold, release, slot_of_run
from shared.access.models import UserContext
from shared.answering.clarification import chosen_doc_ids, question_back, read_answer
from shared.answering.retrieval import resolve_documents
from shared.answering.services import AnsweringServices
from shared.answering.steps import AskUser, ResolveDocuments, TakeAnswer
from shared.evidence.messages import messages_for
from shared.platform.blobs import BlobStore
from shared.platform.concurrency import run_together
from shared.platform.errors import ConflictError
from shared.retrieval.documents import DocumentSearch
from shared.runs.event_log import EventLog
from shared.runs.events import ActionEvent, AnsweredStatus, AskUserEvent, ThoughtEvent, warning_events
from shared.runs.models import (
    Choice,
    Clarification,
    ClarificationAnswer,
    RunRecord,
    RunRequest,
    RunStatus,
    asker_after_wait,
)
from shared.runs.run_store import RunStore
from shared.runs.working_memory import StoredPlan, WorkingMemory

_ENDED = ("completed", "failed", "cancelled")


async def pending_clarification(record: RunRecord, blobs: BlobStore) -> Clarification | None:
    """What a run waits to be told; None when it does not wait."""
    if record.status != "waiting":
        return None
    return await WorkingMemory(blobs, record.run_id).clarification(record.ask_step)


async def answer_clarification(
    record: RunRecord, answer: ClarificationAnswer, user: UserContext, blobs: BlobStore
) -> bool:
    """Store an answer; the caller then tells the orchestration. Doing it twice changes nothing.

    True when the run has to be told: it may not know of the answer yet.

    Args:
        user: the run's owner as of now: their rights may be others than when they asked, days ago.

    Raises:
        CallerError: there is no such option; the run goes on waiting.
        ConflictError: nothing was asked, or it was answered otherwise, or no answer came in time.
    """
    if not record.ask_step:
        raise ConflictError("The run asks nothing.", "Read its events to see what it does.")
    memory = WorkingMemory(blobs, record.run_id)
    asked = await memory.clarification(record.ask_step)
    choice = read_answer(answer, asked.options).model_copy(update={"asker": user})
    if record.status in _ENDED:
        kept = await memory.find_choice(record.ask_step)
    else:
        kept = await memory.put_choice(record.ask_step, choice)
    if kept is None or (kept.numbers, kept.extra_words) != (choice.numbers, choice.extra_words):
        raise ConflictError("The question was answered already, or is no longer open.", "Ask again.")
    return record.status == "waiting"


async def resolve_step(
    action: ResolveDocuments, memory: WorkingMemory, documents: DocumentSearch, event_log: EventLog
) -> StoredPlan:
    """Which documents the plan is about; stored as the plan that later steps use."""
    stored = await memory.get(action.plan_step, StoredPlan)
    resolved = await resolve_documents(await memory.request(), stored, documents)
    if resolved.options:
        await event_log.write(ActionEvent(kind=action.kind, options=len(resolved.options)))
    else:
        await event_log.write(ActionEvent(kind=action.kind, documents=len(resolved.doc_ids)))
    return await memory.put(action.step, resolved)


async def ask_step(
    action: AskUser, memory: WorkingMemory, services: AnsweringServices, event_log: EventLog
) -> None:
    """Store the question, mark the run as waiting, then show the options.

    In this order: whoever sees the options can answer. While it waits it counts for nobody's limit.
    """
    stored = await memory.get(action.plan_step, StoredPlan)
    expires_at = datetime.now(UTC) + timedelta(seconds=services.settings.answering.clarification_timeout_s)
    question = question_back(stored.plan.standalone_question, stored.reference, len(stored.options))
    asked = await memory.put_clarification(
        action.step, Clarification(question=question, options=stored.options, expires_at=expires_at)
    )
    await _set_status(memory.run_id, "waiting", action.step, services.runs)
    await event_log.write(
        AskUserEvent(question=asked.question, options=asked.options, expires_at=asked.expires_at)
    )
    request = await memory.request()
    await run_together(
        memory.put(action.step, asked),
        release(request.user.user_id, memory.run_id, services.settings, services.user_limits),
    )


async def take_step(
    action: TakeAnswer, memory: WorkingMemory, services: AnsweringServices, event_log: EventLog
) -> StoredPlan:
    """Go on with the documents chosen; with all of them when no answer came, or one in other words."""
    stored = await memory.get(action.plan_step, StoredPlan)
    # The first to be stored counts: an answer that came at the last moment, or that none came.
    choice = await memory.put_choice(action.ask_step, Choice())
    request = await memory.request()
    await run_together(
        _set_status(memory.run_id, "running", action.ask_step, services.runs),
        hold(
            request.user.user_id,
            slot_of_run(memory.run_id, services.settings),
            services.settings,
            services.user_limits,
        ),
    )
    now = datetime.now(UTC)
    renewed = {"resumed_at": now, **_rights(request, stored, choice, now)}
    taken = _with_choice(stored, choice).model_copy(update=renewed)
    await event_log.write(
        ThoughtEvent(text=_thought(stored, choice)),
        AnsweredStatus(choice=choice.numbers, timed_out=not choice.said),
        *warning_events(taken.warnings[len(stored.warnings) :]),
    )
    return await memory.put(action.step, taken)


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


def _rights(request: RunRequest, stored: StoredPlan, choice: Choice, now: datetime) -> dict[str, object]:
    """As whom the run goes on; where nobody said so, that is told."""
    asker = asker_after_wait(request, choice, now)
    if asker is None or choice.asker is not None:
        return {"asker": asker}
    warning = messages_for(request.question).groups_unknown
    return {"asker": asker, "warnings": (*stored.warnings, warning)}


def _thought(stored: StoredPlan, choice: Choice) -> str:
    if choice.numbers:
        names = [option.filename for option in stored.options if option.number in choice.numbers]
        return f"Going on with {', '.join(names)}."
    if choice.extra_words:
        return f"Going on with all {len(stored.options)} documents, and with what was added."
    return f"No answer came in time; going on with all {len(stored.options)} documents."


async def _set_status(run_id: str, status: RunStatus, asked: int, runs: RunStore) -> None:
    record = await runs.get(run_id)
    if record is not None and record.status in ("running", "waiting"):
        await runs.replace(record.model_copy(update={"status": status, "ask_step": asked}))
