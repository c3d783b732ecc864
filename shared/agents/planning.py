"""The planning step: one structured call that classifies the question and writes the todo list."""

from shared.agents.prompt_files import load
from shared.core.prompts import element
from shared.errors import ModelFixableError
from shared.models.plan import PlannedTodo, QuestionPlan, TodoItem
from shared.models.prompts import CallLimits, Prompt
from shared.ports import ChatModel

_MAX_TODO = 4
_MAX_TODO_CHARS = 200  # the todo list travels in the orchestration's status
_MAX_QUERIES = 3


async def plan_question(chat_model: ChatModel, question: str, limits: CallLimits) -> QuestionPlan:
    """Plan a question. A model that cannot write a valid plan costs the plan, not the answer."""
    prompt = Prompt(name="plan", system=load("plan"), user=element("question", question))
    try:
        plan = await chat_model.parse(prompt, QuestionPlan, limits)
    except ModelFixableError:
        return default_plan(question)
    queries = tuple(query for query in plan.search_queries if query.strip())[:_MAX_QUERIES]
    return plan.model_copy(
        update={
            "standalone_question": plan.standalone_question.strip() or question,
            "search_queries": queries or (question,),
        }
    )


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
