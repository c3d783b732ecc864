"""Durable driver of the script in `shared.answering.script`, from a question to a streamed, cited answer.

Control flow only: every effect is an activity, every sub-agent a child orchestration. A replay runs the
script again on the results in the history, so neither the run's state nor any content is stored twice.
"""

from collections.abc import Generator
from datetime import timedelta
from typing import Any

import azure.durable_functions as df

from orchestrations.fan_out import Child, ChildEnd, race
from orchestrations.payloads import as_object, call_activity, input_of, traced_child
from shared.answering.clarification import event_name
from shared.answering.script import Children, Command, MainAgent, Reply, RunEnd, Step, run_agent
from shared.answering.steps import (
    AnswerArrived,
    AnswerTimedOut,
    StepInput,
    StepResult,
    SubagentsEnded,
)
from shared.answering.sub_agent import SubAgent
from shared.answering.subagent_models import SubagentEnd, SubagentStart, TurnInput, TurnResult

Tasks = Generator[Any, Any, Any]


def answer_question(context: df.DurableOrchestrationContext) -> Tasks:
    """Run a question to its end. Input: {"run_id"}. Output: {"outcome", "abstained"}."""
    run_id = str(input_of(context)["run_id"])
    agent = MainAgent()
    script = run_agent(agent)
    result: StepResult | None = None
    while True:
        try:
            command = script.send(result)
        except StopIteration as ended:
            end: RunEnd = ended.value
            context.set_custom_status(_status(agent))
            return {"outcome": end.outcome, "abstained": end.abstained}
        context.set_custom_status(_status(agent, command))
        result = yield from _result_of(context, run_id, command, agent)


def run_sub_agent(context: df.DurableOrchestrationContext) -> Tasks:
    """Run a sub-agent to its end. Input: SubagentStart. Output: SubagentEnd."""
    script = run_agent(SubAgent(SubagentStart.from_payload(input_of(context))))
    result: TurnResult | None = None
    while True:
        try:
            command = script.send(result)
        except StopIteration as ended:
            end: SubagentEnd = ended.value
            return end.model_dump(mode="json")
        assert isinstance(command, Step)  # noqa: S101  # a sub-agent has no other commands
        outcome = yield from _perform(context, "", command)
        result = None if outcome is None else TurnResult.from_payload(outcome)


def _result_of(
    context: df.DurableOrchestrationContext, run_id: str, command: Command, agent: MainAgent
) -> Tasks:
    match command:
        case Step():
            return StepResult.from_payload((yield from _perform(context, run_id, command)))
        case Reply():
            return StepResult(observation=(yield from _await_answer(context, command)))
        case Children():
            return StepResult(observation=(yield from _run_children(context, command, agent)))


def _perform(context: df.DurableOrchestrationContext, run_id: str, step: Step) -> Tasks:
    """Wait for the step's pause, call its activity and return the output; None if it would start too late."""
    due = context.current_utc_datetime + timedelta(seconds=step.delay_s)
    if step.before is not None and due >= step.before:
        return None
    if step.delay_s:
        yield context.create_timer(due)
    if isinstance(step.action, TurnInput):
        name, payload = "take_sub_agent_turn", step.action.model_dump(mode="json")
    else:
        step_input = StepInput(run_id=run_id, action=step.action, tokens=step.tokens)
        name, payload = "perform_step", step_input.model_dump(mode="json")
    return as_object((yield call_activity(context, name, payload)))


def _await_answer(context: df.DurableOrchestrationContext, reply: Reply) -> Tasks:
    # The event only signals that an answer was stored. An early, duplicate or foreign event is harmless,
    # because the answer itself is read from the store.
    answered = context.wait_for_external_event(event_name(reply.ask_step))
    too_late = context.create_timer(context.current_utc_datetime + timedelta(seconds=reply.timeout_s))
    winner = yield context.task_any([answered, too_late])
    if winner != answered:
        return AnswerTimedOut()
    too_late.cancel()  # an open timer would delay the run's completion
    return AnswerArrived()


def _run_children(context: df.DurableOrchestrationContext, command: Children, agent: MainAgent) -> Tasks:
    children = [
        Child(
            "run_sub_agent",
            traced_child(context, start.model_dump(mode="json"), start.child_id),
            start.child_id,
        )
        for start in command.starts
    ]
    statuses: dict[str, str] = {}

    def show(end: ChildEnd) -> None:
        statuses[end.instance_id] = _end_of(end).status
        context.set_custom_status(_status(agent, command, statuses))

    ends = yield from race(context, children, command.until, on_end=show)
    return SubagentsEnded(ends=tuple(_end_of(end) for end in ends))


def _end_of(end: ChildEnd) -> SubagentEnd:
    if end.status == "done":
        try:
            return SubagentEnd.from_payload(end.output)
        except ValueError:  # invalid output; the child's stored findings are still used
            return SubagentEnd(child_id=end.instance_id, status="failed")
    return SubagentEnd(child_id=end.instance_id, status=end.status)


def _status(
    agent: MainAgent, command: Command | None = None, statuses: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return the custom status while a command is executed.

    Args:
        statuses: final statuses by child id; children without one are running.
    """
    phase = {Reply: "await", Children: "delegate"}.get(type(command), agent.phase)
    status: dict[str, Any] = {
        "phase": phase,
        "step": agent.step,
        "query_type": agent.query_type,
        "todo": [
            {"position": item.position, "status": item.status, "attempts": item.attempts}
            for item in agent.todo
        ],
    }
    if isinstance(command, Children):
        status["children"] = [
            {
                "child_id": start.child_id,
                "profile": start.profiles[0] if start.profiles else "",
                "status": (statuses or {}).get(start.child_id, "running"),
            }
            for start in command.starts
        ]
    return status
