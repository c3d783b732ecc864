"""planning_step."""

import asyncio
from collections.abc import Awaitable

from shared.answering.loop import retry_delay_s
from shared.answering.planning import default_plan, plan_question
from shared.answering.step_results import step_failed
from shared.answering.steps import ResolveDocuments
from shared.evidence.messages import messages_for
from shared.platform.errors import CallTimeoutError, DefectError, GroundworkError, ModelFixableError
from shared.platform.language_models.models import ChatModel
from shared.platform.telemetry import get_logger
from shared.runs.models import RunRequest
from shared.runs.step_time import StepTime
from shared.runs.working_memory import StoredPlan, WorkingMemory

_RESOLVE_S = 15.0  # a few searches for names: they take 20 ms


async def plan_or_default(
    chat_model: ChatModel, request: RunRequest, time: StepTime, limit_s: float, tries: int = 0
) -> StoredPlan:
    """A plan of the model; one by rule, with a warning, when the model fails or is late.

    Args:
        tries: that failed before.

    Raises:
        GroundworkError: the model failed, and may do better when it is asked once more.
    """
    limits = time.limits("plan", limit_s)
    try:
        plan = await plan_question(chat_model, request.question, limits, request.conversation)
    except DefectError:
        raise
    except GroundworkError as failed:
        observed = step_failed(failed, time.left.remaining_s)
        # A model that cannot write a valid plan will not learn it.
        is_no_plan = isinstance(failed, ModelFixableError)
        if not is_no_plan and retry_delay_s("plan", tries, observed) is not None:
            raise
        get_logger().warning("plan.by_rule", run_id=request.run_id, error_type=failed.code)
    else:
        return StoredPlan(plan=plan)
    warning = messages_for(request.question).planned_by_rule
    return StoredPlan(plan=default_plan(request.question), warnings=(warning,))


async def resolved_in_time(
    action: ResolveDocuments, memory: WorkingMemory, resolving: Awaitable[StoredPlan], time: StepTime
) -> StoredPlan:
    """What `resolving` brings; the plan without documents, with a warning, when that takes too long."""
    try:
        async with asyncio.timeout(time.seconds("resolve", _RESOLVE_S)):
            return await resolving
    except (TimeoutError, CallTimeoutError):
        planned = await memory.get(action.plan_step, StoredPlan)
        warning = messages_for((await memory.request()).question).searches_late
        late = {"warnings": (*planned.warnings, warning)}
        return await memory.put(action.step, planned.model_copy(update=late))
