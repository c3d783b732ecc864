"""The inline driver: the same loop in one process, for library use, evaluations and tests."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from shared.answering.effects import perform_metered
from shared.answering.loop import next_action, observe, start
from shared.answering.loop_state import LoopState
from shared.answering.services import AnsweringServices
from shared.answering.steps import (
    AwaitAnswer,
    EndRun,
    RunSubagents,
    StepAction,
    StepInput,
    StepResult,
    SubagentsEnded,
)
from shared.platform.telemetry import log_scope
from shared.platform.tracing import span
from shared.subagents.inline import run_children
from shared.subagents.models import SubagentEnd, SubagentStart

RunChildren = Callable[
    [tuple[SubagentStart, ...], datetime, AnsweringServices], Awaitable[tuple[SubagentEnd, ...]]
]
"""Runs sub-agents side by side until they end or the instant comes; their ends in the same order."""


async def run_to_end(
    run_id: str,
    services: AnsweringServices,
    state: LoopState | None = None,
    children: RunChildren = run_children,
) -> LoopState:
    """Run a question whose request lies in working memory until its run is closed, or waits for an answer.

    A run that waits (`waits(state)`) goes on when this is called again with its state after `observe` of
    AnswerArrived or AnswerTimedOut.

    Args:
        children: runs sub-agents.

    Raises:
        DefectError: a bug; the durable driver would report it to the reader instead.
    """
    state = state or start()
    while not isinstance(action := next_action(state), EndRun | AwaitAnswer):
        result = await _perform(run_id, services, action, children, state.tokens)
        state = observe(state, result.observation, result.tokens)
    return state


def waits(state: LoopState) -> bool:
    """Whether a run waits for an answer of the person who asked."""
    return isinstance(next_action(state), AwaitAnswer)


async def _perform(
    run_id: str,
    services: AnsweringServices,
    action: StepAction | RunSubagents,
    children: RunChildren,
    tokens: int,
) -> StepResult:
    if isinstance(action, RunSubagents):
        ends = await children(action.children, action.until, services)
        return StepResult(observation=SubagentsEnded(ends=ends))
    await asyncio.sleep(action.delay_s)
    with log_scope(run_id=run_id), span(f"perform_step {action.kind}", {"run_id": run_id}):
        return await perform_metered(StepInput(run_id=run_id, action=action, tokens=tokens), services)
