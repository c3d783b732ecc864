"""Runs the script of an agent within one process, for the Python API and for tests."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta

from shared.answering.effects import perform_metered
from shared.answering.script import Children, Reply, RunEnd, Step, StepResults, next_command, run_agent
from shared.answering.services import AnsweringServices
from shared.answering.steps import StepFailed, StepInput, StepResult, SubagentsEnded
from shared.answering.sub_agent import SubAgent
from shared.answering.subagent_models import SubagentEnd, SubagentPlace, SubagentStart
from shared.platform.telemetry import get_logger, log_scope
from shared.platform.tracing import span

RunChildren = Callable[
    [tuple[SubagentStart, ...], datetime, AnsweringServices], Awaitable[tuple[SubagentEnd, ...]]
]
"""Runs sub-agents concurrently until they end or the deadline passes; returns their ends in order."""


async def run_to_end(
    run_id: str,
    services: AnsweringServices,
    results: StepResults = (),
    children: RunChildren | None = None,
) -> StepResults:
    """Run a question until the run is closed or waits for the user's answer, and return the results of all
    commands. The request must be stored.

    To resume a waiting run (`waits(results)`), call this again with its results and an additional
    `AnswerArrived` or `AnswerTimedOut`.

    Args:
        results: results of the commands so far.
        children: runs sub-agents; None = `run_children`.

    Raises:
        DefectError: a bug; the durable driver reports it to the reader instead.
    """
    while not isinstance(command := next_command(results), RunEnd | Reply):
        if isinstance(command, Children):
            ends = await (children or run_children)(command.starts, command.until, services)
            result = StepResult(observation=SubagentsEnded(ends=ends))
        else:
            assert isinstance(command, Step)  # noqa: S101  # a question has no other commands
            result = await _perform(run_id, services, command)
        results = (*results, result)
    return results


def waits(results: StepResults) -> bool:
    """Return whether a run with these results has asked a question and now waits for the reply."""
    return isinstance(next_command(results), Reply)


async def _perform(run_id: str, services: AnsweringServices, step: Step) -> StepResult:
    await asyncio.sleep(step.delay_s)
    with log_scope(run_id=run_id), span(f"perform_step {step.action.kind}", {"run_id": run_id}):
        step_input = StepInput(run_id=run_id, action=step.action, tokens=step.tokens)
        return await perform_metered(step_input, services)


async def run_children(
    starts: Sequence[SubagentStart], until: datetime, services: AnsweringServices
) -> tuple[SubagentEnd, ...]:
    """Run sub-agents concurrently until all have ended or `until` passes. Return their ends in the order of
    `starts`.

    Late sub-agents are cancelled; their stored findings remain.
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


async def run_child(start: SubagentStart, services: AnsweringServices) -> SubagentEnd:
    """Run a sub-agent until it reports or fails, and return its end."""
    script = run_agent(SubAgent(start))
    result: StepResult | None = None
    with span(f"run_sub_agent {start.profile}", {"run_id": start.run_id, "child": start.index}):
        while True:
            try:
                command = script.send(result)
            except StopIteration as ended:
                end: SubagentEnd = ended.value
                return end
            assert isinstance(command, Step)  # noqa: S101  # a sub-agent has no other commands
            result = await _perform_of_child(start, command, services)


async def _perform_of_child(
    place: SubagentPlace, step: Step, services: AnsweringServices
) -> StepResult | None:
    if step.before and datetime.now(UTC) + timedelta(seconds=step.delay_s) >= step.before:
        return None
    await asyncio.sleep(step.delay_s)
    step_input = StepInput(run_id=place.run_id, path=place.path, action=step.action)
    try:
        with span(f"perform_step {step.action.kind}", {"run_id": place.run_id, "child": place.index}):
            return await perform_metered(step_input, services)
    except Exception as defect:  # noqa: BLE001  # as in the durable host, a defect ends a turn but not the run
        get_logger().error("sub_agent.defect", run_id=place.run_id, error_type=type(defect).__name__)
        failed = StepFailed(error_type="InternalError", message="", retryable=False)
        return StepResult(observation=failed)


def _end_of(start: SubagentStart, task: "asyncio.Task[SubagentEnd]") -> SubagentEnd:
    if task.cancelled():
        return SubagentEnd(child_id=start.child_id, status="late")
    if task.exception() is not None:
        return SubagentEnd(child_id=start.child_id, status="failed")
    return task.result()
