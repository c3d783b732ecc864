"""Sub-agents in one process: what the inline driver runs where the durable one starts orchestrations."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from shared.platform.telemetry import get_logger
from shared.platform.tracing import span
from shared.subagents.loop import CRASHED, TakeTurn, begin, next_move, observe
from shared.subagents.models import SubagentEnd, SubagentStart, TurnInput, TurnResult
from shared.subagents.services import SubagentServices
from shared.subagents.turn import take_turn


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
    state = begin(start)
    profile = start.profiles[0] if start.profiles else ""
    with span(f"run_sub_agent {profile}", {"run_id": start.run_id, "child": start.index}):
        while isinstance(move := next_move(state, datetime.now(UTC)), TakeTurn):
            await asyncio.sleep(move.delay_ms / 1000)
            state = observe(state, await _take(move.turn, services))
        return move.end


async def _take(turn: TurnInput, services: SubagentServices) -> TurnResult:
    try:
        with span("take_sub_agent_turn", {"run_id": turn.run_id, "child": turn.index, "turn": turn.turn}):
            return await take_turn(turn, services)
    except Exception as defect:  # noqa: BLE001  # as a durable host: a defect ends a turn, not the question
        get_logger().error("sub_agent.broke", run_id=turn.run_id, error_type=type(defect).__name__)
        return CRASHED


def _end_of(start: SubagentStart, task: "asyncio.Task[SubagentEnd]") -> SubagentEnd:
    if task.cancelled():
        return SubagentEnd(child_id=start.child_id, status="late")
    if task.exception() is not None:
        return SubagentEnd(child_id=start.child_id, status="failed")
    return task.result()
