"""Durable orchestrations that execute the script of `shared.answering.script` for questions, summaries and
children.

Control flow only: every effect is an activity, every child an orchestration. A replay runs the
script again on the results in the history, so neither the run's state nor any content is stored twice.
"""

from collections.abc import Generator
from datetime import timedelta
from typing import Any

import azure.durable_functions as df

from orchestrations.fan_out import Child, ChildEnd, race
from orchestrations.payloads import as_object, call_activity, child_input, close_trace, input_of
from shared.answering.clarification import reply_event_name
from shared.answering.script import (
    Children,
    Command,
    MainAgent,
    Readers,
    Reply,
    RunEnd,
    Step,
    Steps,
    run_agent,
)
from shared.answering.steps import (
    AnswerArrived,
    AnswerTimedOut,
    RunClosed,
    StepInput,
    StepResult,
    SubagentsEnded,
)
from shared.answering.sub_agent import SubAgent
from shared.answering.subagent_models import SubagentEnd, SubagentPlace
from shared.answering.summary_models import DocumentEnded
from shared.answering.summary_script import DocumentReader, DocumentSummary

Tasks = Generator[Any, Any, Any]
AnyAgent = MainAgent | SubAgent | DocumentSummary | DocumentReader


def answer_question(context: df.DurableOrchestrationContext) -> Tasks:
    """Answer a question. Input: {"run_id"}. Output: {"outcome", "abstained"}."""
    agent = MainAgent()
    end: RunEnd = yield from _drive(context, agent, str(input_of(context)["run_id"]))
    context.set_custom_status(_status(agent))
    return {"outcome": end.outcome, "abstained": end.abstained}


def run_sub_agent(context: df.DurableOrchestrationContext) -> Tasks:
    """Run a sub-agent until it reports or fails. Input: SubagentPlace. Output: SubagentEnd."""
    place = SubagentPlace.from_payload(input_of(context))
    end: SubagentEnd = yield from _drive(context, SubAgent(place), place.run_id, place.path)
    return end.model_dump(mode="json")


def document_summary(context: df.DurableOrchestrationContext) -> Tasks:
    """Summarise documents. Input: {"run_id"}. Output: {"outcome"}."""
    end: RunEnd = yield from _drive(context, DocumentSummary(), str(input_of(context)["run_id"]))
    return {"outcome": end.outcome}


def read_document(context: df.DurableOrchestrationContext) -> Tasks:
    """Read one document for a summary. Input: SubagentPlace. Output: SubagentEnd."""
    place = SubagentPlace.from_payload(input_of(context))
    end: SubagentEnd = yield from _drive(context, DocumentReader(place), place.run_id, place.path)
    yield from close_trace(context, "read_document", end.status)
    return end.model_dump(mode="json")


def _drive(context: df.DurableOrchestrationContext, agent: AnyAgent, run_id: str, path: str = "") -> Tasks:
    """Execute the commands of an agent's script until it ends, and return its result."""
    script = run_agent(agent)
    result: StepResult | tuple[StepResult, ...] | None = None
    while True:
        try:
            command = script.send(result)
        except StopIteration as ended:
            return ended.value
        context.set_custom_status(_status(agent, command))
        match command:
            case Step():
                result = yield from _perform(context, run_id, path, command)
            case Steps():
                result = yield from _perform_together(context, run_id, path, command)
            case Reply():
                result = StepResult(observation=(yield from _await_answer(context, command)))
            case Children() | Readers():
                result = StepResult(observation=(yield from _run_children(context, command, agent)))


def _perform(context: df.DurableOrchestrationContext, run_id: str, path: str, step: Step) -> Tasks:
    """Perform a step after its delay, and return its result. Return None if the delay would last beyond
    `step.before`.
    """
    due = context.current_utc_datetime + timedelta(seconds=step.delay_s)
    if step.before is not None and due >= step.before:
        return None
    if step.delay_s:
        yield context.create_timer(due)
    step_input = StepInput(run_id=run_id, path=path, action=step.action, tokens=step.tokens)
    performed = yield call_activity(context, "perform_step", step_input.model_dump(mode="json"))
    return StepResult.from_payload(as_object(performed))


def _perform_together(context: df.DurableOrchestrationContext, run_id: str, path: str, steps: Steps) -> Tasks:
    """Perform steps in concurrent batches, after a delay for all of them, and return their results in order.

    No further batch is started once the document or the run has ended.
    """
    if steps.delay_s:
        yield context.create_timer(context.current_utc_datetime + timedelta(seconds=steps.delay_s))
    results: list[StepResult] = []
    for start in range(0, len(steps.actions), steps.at_once):
        batch = steps.actions[start : start + steps.at_once]
        inputs = [StepInput(run_id=run_id, path=path, action=action) for action in batch]
        performed = yield context.task_all(
            [call_activity(context, "perform_step", one.model_dump(mode="json")) for one in inputs]
        )
        results += [StepResult.from_payload(as_object(one)) for one in performed]
        if any(isinstance(result.observation, DocumentEnded | RunClosed) for result in results):
            break  # the document or the run has ended, so the results of later batches would be unused
    return tuple(results)


def _await_answer(context: df.DurableOrchestrationContext, reply: Reply) -> Tasks:
    # The event only signals that a reply was stored. A premature, duplicate or unrelated event does no harm,
    # because the reply itself is read from the store.
    answered = context.wait_for_external_event(reply_event_name(reply.ask_step))
    too_late = context.create_timer(reply.until)
    winner = yield context.task_any([answered, too_late])
    if winner != answered:
        return AnswerTimedOut()
    too_late.cancel()  # an orchestration completes only when it has no open timer
    return AnswerArrived()


def _run_children(
    context: df.DurableOrchestrationContext, command: Children | Readers, agent: AnyAgent
) -> Tasks:
    orchestrator, at_once = "run_sub_agent", None
    if isinstance(command, Readers):
        orchestrator, at_once = "read_document", command.at_once
    children = [
        Child(
            orchestrator,
            child_input(context, {"run_id": start.run_id, "path": start.path}, start.child_id),
            start.child_id,
        )
        for start in command.starts
    ]
    statuses: dict[str, str] = {}

    def show(end: ChildEnd) -> None:
        statuses[end.instance_id] = _end_of(end).status
        context.set_custom_status(_status(agent, command, statuses))

    ends = yield from race(context, children, command.until, at_once=at_once, on_end=show)
    return SubagentsEnded(ends=tuple(_end_of(end) for end in ends))


def _end_of(end: ChildEnd) -> SubagentEnd:
    if end.status == "done":
        try:
            return SubagentEnd.from_payload(end.output)
        except ValueError:  # the result is invalid, but the findings that the child stored are still used
            return SubagentEnd(child_id=end.instance_id, status="failed")
    return SubagentEnd(child_id=end.instance_id, status=end.status)


def _status(
    agent: AnyAgent, command: Command | None = None, statuses: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return the custom status of an orchestration that executes `command`, or that has ended if it is None.

    Args:
        statuses: final statuses by child id; children without one are running.
    """
    if isinstance(agent, DocumentReader):
        return {"windows": len(command.actions) if isinstance(command, Steps) else 0}
    if isinstance(agent, DocumentSummary):
        counts = (
            {"ended": len(statuses or {}), "of": len(command.starts)} if isinstance(command, Readers) else {}
        )
        return {"phase": agent.phase, "step": agent.step, **counts}
    if isinstance(agent, SubAgent):
        deadline = agent.task.deadline.isoformat() if agent.task else None
        return {"turn": agent.step, "deadline": deadline}
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
                "profile": start.profile,
                "status": (statuses or {}).get(start.child_id, "running"),
            }
            for start in command.starts
        ]
    return status
