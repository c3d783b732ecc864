"""Question -> streamed, cited answer: the durable driver of the loop in `shared.answering.loop`.

Only sequences: every effect is the activity `perform_step`, every sub-agent a child orchestration. The state
is rebuilt on each replay from the observations in the history, so neither it nor any content is stored twice.
"""

from collections.abc import Generator
from datetime import timedelta
from typing import Any

import azure.durable_functions as df

from orchestrations.fan_out import Child, ChildEnd, race
from orchestrations.payloads import as_object, call_activity, input_of, traced_child
from shared.answering.clarification import event_name
from shared.answering.loop import LoopState, next_action, observe, start
from shared.answering.steps import (
    AnswerArrived,
    AnswerTimedOut,
    AwaitAnswer,
    EndRun,
    Observation,
    RunSubagents,
    StepInput,
    StepResult,
    SubagentsEnded,
)
from shared.subagents.models import SubagentEnd


def answer_question(
    context: df.DurableOrchestrationContext,
) -> Generator[Any, Any, dict[str, Any]]:
    """Run the loop to its end. Input: {"run_id"}. Output: {"outcome", "abstained"}."""
    run_id = str(input_of(context)["run_id"])
    state = start()
    while not isinstance(action := next_action(state), EndRun):
        if isinstance(action, AwaitAnswer):
            result = StepResult(observation=(yield from _await_answer(context, action)))
        elif isinstance(action, RunSubagents):
            result = StepResult(observation=(yield from _run_subagents(context, action, state)))
        else:
            result = yield from _perform(
                context, StepInput(run_id=run_id, action=action, tokens=state.tokens)
            )
        state = observe(state, result.observation, result.tokens)
        context.set_custom_status(_status(state))
    return {"outcome": action.outcome, "abstained": state.abstained}


def _perform(
    context: df.DurableOrchestrationContext, step_input: StepInput
) -> Generator[Any, Any, StepResult]:
    if delay_s := step_input.action.delay_s:
        yield context.create_timer(context.current_utc_datetime + timedelta(seconds=delay_s))
    outcome = yield call_activity(context, "perform_step", step_input.model_dump(mode="json"))
    return StepResult.from_payload(as_object(outcome))


def _await_answer(
    context: df.DurableOrchestrationContext, action: AwaitAnswer
) -> Generator[Any, Any, Observation]:
    # The event says only that there is an answer: what it is lies in working memory, stored before the event
    # was raised. So one that comes before the wait, twice, or from somebody else does no harm.
    answered = context.wait_for_external_event(event_name(action.ask_step))
    too_late = context.create_timer(context.current_utc_datetime + timedelta(seconds=action.timeout_s))
    winner = yield context.task_any([answered, too_late])
    if winner != answered:
        return AnswerTimedOut()
    too_late.cancel()  # a run with an open timer would not end before it
    return AnswerArrived()


def _run_subagents(
    context: df.DurableOrchestrationContext, action: RunSubagents, state: LoopState
) -> Generator[Any, Any, Observation]:
    children = [
        Child(
            "run_sub_agent",
            traced_child(context, start.model_dump(mode="json"), start.child_id),
            start.child_id,
        )
        for start in action.children
    ]
    statuses: dict[str, str] = {}

    def show(end: ChildEnd) -> None:
        statuses[end.instance_id] = _end_of(end).status
        context.set_custom_status({**_status(state), "children": _children(action, statuses)})

    context.set_custom_status({**_status(state), "children": _children(action, statuses)})
    ends = yield from race(context, children, action.until, on_end=show)
    return SubagentsEnded(ends=tuple(_end_of(end) for end in ends))


def _end_of(end: ChildEnd) -> SubagentEnd:
    if end.status == "done":
        try:
            return SubagentEnd.from_payload(end.output)
        except ValueError:  # an output that is none: what the child stored counts all the same
            return SubagentEnd(child_id=end.instance_id, status="failed")
    return SubagentEnd(child_id=end.instance_id, status=end.status)


def _children(action: RunSubagents, statuses: dict[str, str]) -> list[dict[str, str]]:
    return [
        {
            "child_id": start.child_id,
            "profile": start.profiles[0] if start.profiles else "",
            "status": statuses.get(start.child_id, "running"),
        }
        for start in action.children
    ]


def _status(state: LoopState) -> dict[str, Any]:
    return {
        "phase": state.phase,
        "step": state.step,
        "query_type": state.query_type,
        "todo": [
            {"position": item.position, "status": item.status, "attempts": item.attempts}
            for item in state.todo
        ],
    }
