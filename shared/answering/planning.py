"""Preparing an answer, whatever the model does: a plan of the model, or one by rule that says so; and the
documents that it names, or none when finding out takes too long.
"""

from shared.conversations.window import cited_before, conversation_element, points_back
from shared.platform.language_models.models import CallLimits, ChatModel, Prompt
from shared.platform.prompts import element, load
from shared.runs.models import Conversation, RunRequest
from shared.runs.plan import PlannedTodo, QuestionPlan, TodoItem

NOTHING_SAID = Conversation()
_MAX_TODO = 4
_MAX_TODO_CHARS = 200  # the todo list travels in the orchestration's status
_MAX_QUERIES = 3


async def plan_question(
    chat_model: ChatModel,
    question: str,
    limits: CallLimits,
    conversation: Conversation = NOTHING_SAID,
) -> QuestionPlan:
    """Plan a question; what it leaves out is taken from the conversation before it.

    Raises:
        ModelFixableError: what the model wrote is no plan. Without one there is `default_plan`.
        GroundworkError: it failed, or was late.
    """
    parts = (conversation_element(conversation), element("question", question))
    prompt = Prompt(
        name="plan", system=load("answering", "plan"), user="\n".join(part for part in parts if part)
    )
    plan = await chat_model.parse(prompt, QuestionPlan, limits)
    queries = tuple(query for query in plan.search_queries if query.strip())[:_MAX_QUERIES]
    return plan.model_copy(
        update={
            "standalone_question": plan.standalone_question.strip() or question,
            "search_queries": queries or (question,),
        }
    )


def names_documents(request: RunRequest, plan: QuestionPlan) -> bool:
    """Whether it must be found out which documents a question is about: it names some, or points back."""
    if plan.query_type == "LISTING":
        return False
    is_named = any(reference.strip() for reference in plan.document_references)
    return is_named or _documents_before(request) != ()


def documents_before(request: RunRequest, plan: QuestionPlan) -> tuple[str, ...]:
    """Ids of the documents of the turn before, when the question speaks of "it" and names none."""
    is_named = any(reference.strip() for reference in plan.document_references)
    return () if is_named else _documents_before(request)


def _documents_before(request: RunRequest) -> tuple[str, ...]:
    before = cited_before(request.conversation)
    return before.doc_ids if before is not None and points_back(request.question) else ()


def default_plan(question: str) -> QuestionPlan:
    """The plan when the model gives none: look for what the question says."""
    found = PlannedTodo(
        description="The answer is found in the documents",
        acceptance_criteria="Each statement is proved by a quotation",
        dependencies=(),
    )
    return QuestionPlan(
        query_type="CONTENT_SEARCH",
        intent="fact_lookup",
        standalone_question=question,
        search_queries=(question,),
        keywords=(),
        document_references=(),
        todo=(found,),
    )


def todo_items(plan: QuestionPlan) -> tuple[TodoItem, ...]:
    """The plan's todo list, numbered from 1; dependencies on items that do not come before are dropped."""
    planned = plan.todo[:_MAX_TODO] or default_plan(plan.standalone_question).todo
    return tuple(
        TodoItem(
            position=position,
            description=item.description[:_MAX_TODO_CHARS],
            acceptance_criteria=item.acceptance_criteria[:_MAX_TODO_CHARS],
            dependencies=tuple(number for number in item.dependencies if 1 <= number < position),
        )
        for position, item in enumerate(planned, start=1)
    )
