"""The inline driver: the loops of a run and of its sub-agents in one process, for library use and tests."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

from shared.answering.effects import perform_metered
from shared.answering.loop import LoopState, next_action, observe, start
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
from shared.platform.telemetry import get_logger, log_scope
from shared.platform.tracing import span
from shared.subagents import loop as child_loop
from shared.subagents.models import SubagentEnd, SubagentStart, TurnInput, TurnResult
from shared.subagents.services import SubagentServices
from shared.subagents.turn import take_turn

RunChildren = Callable[
    [tuple[SubagentStart, ...], datetime, AnsweringServices], Awaitable[tuple[SubagentEnd, ...]]
]
"""Runs sub-agents side by side until they end or the instant comes; their ends in the same order."""


async def run_to_end(
    run_id: str,
    services: AnsweringServices,
    state: LoopState | None = None,
    children: RunChildren | None = None,
) -> LoopState:
    """Run a question whose request lies in working memory until its run is closed, or waits for an answer.

    A run that waits (`waits(state)`) continues when this is called again with its state after `observe` of
    AnswerArrived or AnswerTimedOut.

    Args:
        children: runs sub-agents side by side; None = `run_children`.

    Raises:
        DefectError: a bug; the durable driver would report it to the reader instead.
    """
    state = state or start()
    while not isinstance(action := next_action(state), EndRun | AwaitAnswer):
        result = await _perform(run_id, services, action, children or run_children, state.tokens)
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


async def run_children(
    starts: Sequence[SubagentStart], until: datetime, services: SubagentServices
) -> tuple[SubagentEnd, ...]:
    """Run sub-agents side by side until they end or the instant comes; their ends in the same order.

    Who is late is ended; what it has stored by then stays.
    """
    if not starts:
        return ()
    tasks = [asyncio.create_task(run_child(start, services)) for start in starts]
    try:
        await asyncio.wait(tasks, timeout=max((until - datetime.now(UTC)).total_seconds(), 0.0))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return tuple(_end_of(start, task) for start, task in zip(starts, tasks, strict=True))


async def run_child(start: SubagentStart, services: SubagentServices) -> SubagentEnd:
    """One sub-agent, from its first turn to its end."""
    state = child_loop.begin(start)
    profile = start.profiles[0] if start.profiles else ""
    with span(f"run_sub_agent {profile}", {"run_id": start.run_id, "child": start.index}):
        while isinstance(move := child_loop.next_move(state, datetime.now(UTC)), child_loop.TakeTurn):
            await asyncio.sleep(move.delay_ms / 1000)
            state = child_loop.observe(state, await _take(move.turn, services))
        return move


async def _take(turn: TurnInput, services: SubagentServices) -> TurnResult:
    try:
        with span("take_sub_agent_turn", {"run_id": turn.run_id, "child": turn.index, "turn": turn.turn}):
            return await take_turn(turn, services)
    except Exception as defect:  # noqa: BLE001  # as a durable host: a defect ends a turn, not the question
        get_logger().error("sub_agent.defect", run_id=turn.run_id, error_type=type(defect).__name__)
        return child_loop.CRASHED


def _end_of(start: SubagentStart, task: "asyncio.Task[SubagentEnd]") -> SubagentEnd:
    if task.cancelled():
        return SubagentEnd(child_id=start.child_id, status="late")
    if task.exception() is not None:
        return SubagentEnd(child_id=start.child_id, status="failed")
    return task.result()
