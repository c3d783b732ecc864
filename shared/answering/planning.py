"""Plans a question with a model. If the model fails, the plan follows fixed rules and contains a warning."""

import re
from collections.abc import Sequence
from datetime import date

from shared.answering.plan_reply import PlanReply
from shared.answering.script import retry_delay_s
from shared.answering.steps import step_failed
from shared.conversations.window import cited_before, conversation_element, points_back
from shared.evidence.messages import messages_in
from shared.evidence.reader_text import readable_line
from shared.platform.errors import DefectError, GroundworkError, ModelFixableError
from shared.platform.language_models.models import CallLimits, ChatModel, Prompt
from shared.platform.prompts import element, load
from shared.platform.telemetry import get_logger
from shared.runs.event_log import RunClosedError, StaleAttemptError
from shared.runs.evidence import StoredPlan
from shared.runs.models import Conversation, RunRequest
from shared.runs.plan import QuestionPlan, TodoItem
from shared.runs.step_time import StepTime

NOTHING_SAID = Conversation()
_MIN_TODO = 2
_MAX_TODO = 4
# Maximum length of a to-do item. It is short because the list is part of the orchestration's status.
_MAX_TODO_CHARS = 200
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")  # ISO 639 codes in BCP 47 notation


async def plan_or_default(
    chat_model: ChatModel,
    request: RunRequest,
    time: StepTime,
    limit_s: float,
    tries: int = 0,
    *,
    files: Sequence[str] = (),
) -> StoredPlan:
    """Return the model's plan, or a rule-based plan with a warning if the model fails or exceeds the time
    limit.

    Args:
        tries: number of failed attempts.
        files: names of the thread's own files.

    Raises:
        GroundworkError: the model failed, and a retry may succeed.
    """
    limits = time.limits("plan", limit_s)
    try:
        plan = await plan_question(
            chat_model, request.question, limits, request.conversation, today=request.today, files=files
        )
    # RunClosedError and StaleAttemptError come from the token reservation, not from the model.
    except (DefectError, RunClosedError, StaleAttemptError):
        raise
    except GroundworkError as failed:
        observed = step_failed(failed, time.left.remaining_s)
        # A model that wrote an invalid plan is unlikely to write a valid one on a retry.
        is_no_plan = isinstance(failed, ModelFixableError)
        if not is_no_plan and retry_delay_s("prepare", tries, observed) is not None:
            raise
        get_logger().warning("plan.fallback", run_id=request.run_id, error_type=failed.code)
    else:
        return StoredPlan(plan=plan)
    warning = messages_in("").planned_by_rule
    return StoredPlan(plan=default_plan(request.question), warnings=(warning,))


async def plan_question(
    chat_model: ChatModel,
    question: str,
    limits: CallLimits,
    conversation: Conversation = NOTHING_SAID,
    *,
    today: date | None = None,
    files: Sequence[str] = (),
) -> QuestionPlan:
    """Ask the model for a plan. Its question is self-contained: references to the conversation are replaced
    by their meaning.

    Raises:
        ModelFixableError: the model's output is not a valid plan; use `default_plan` instead.
        GroundworkError: the model failed, or was late.
    """
    parts = (
        conversation_element(conversation),
        element("question", question),
        element("today", f"{today:%Y-%m-%d, %A}") if today else "",
        attached_files(files),
    )
    prompt = Prompt(
        name="plan", system=load("answering", "plan"), user="\n".join(part for part in parts if part)
    )
    plan = (await chat_model.parse(prompt, PlanReply, limits)).to_plan()
    language = plan.language if _LANGUAGE.fullmatch(plan.language) else ""
    return plan.model_copy(
        update={"standalone_question": plan.standalone_question or question, "language": language}
    )


def attached_files(names: Sequence[str]) -> str:
    """Return the prompt element that lists the files attached to the conversation, or "" if there are
    none.
    """
    listed = ", ".join(readable_line(name) for name in names)
    note = "The user attached these files; “the file” or “this document” means them: "
    return element("attached_files", f"{note}{listed}.") if names else ""


def names_documents(request: RunRequest, plan: QuestionPlan, *, has_files: bool = False) -> bool:
    """Return whether the question names documents or refers back to some, so that they must be looked up.

    Args:
        has_files: whether the thread has files of its own, which a question may mean by "this document".
    """
    if plan.query_type in ("LISTING", "CONVERSATION"):
        return False
    is_named = any(reference.strip() for reference in (*plan.document_references, plan.every))
    return is_named or documents_before(request, plan) != () or (has_files and points_back(request.question))


def documents_before(request: RunRequest, plan: QuestionPlan) -> tuple[str, ...]:
    """Return the ids of the documents cited earlier in the conversation if the question refers back to them.
    Return an empty tuple if it names a document.
    """
    references = (*plan.document_references, plan.every)
    if any(reference.strip() for reference in references) or not points_back(request.question):
        return ()
    before = cited_before(request.conversation)
    return before.doc_ids if before is not None else ()


def default_plan(question: str) -> QuestionPlan:
    """Return a plan that searches for the words of the question, for use without a model."""
    return QuestionPlan(
        query_type="CONTENT_SEARCH",
        intent="fact_lookup",
        language="",
        standalone_question=question,
        reply="",
        search_queries=(),
        filters=(),
        document_references=(),
        todo=(),
    )


def todo_items(plan: QuestionPlan) -> tuple[TodoItem, ...]:
    """Return the plan's to-do list, numbered from 1. An item may only depend on earlier items; other
    dependencies are dropped.

    A single item makes no useful list, so the result is then empty.
    """
    if len(plan.todo) < _MIN_TODO:
        return ()
    return tuple(
        TodoItem(
            position=position,
            description=readable_line(item.description[:_MAX_TODO_CHARS]),
            acceptance_criteria=readable_line(item.acceptance_criteria[:_MAX_TODO_CHARS]),
            dependencies=tuple(number for number in item.dependencies if 1 <= number < position),
        )
        for position, item in enumerate(plan.todo[:_MAX_TODO], start=1)
    )
