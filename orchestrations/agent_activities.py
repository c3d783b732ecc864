"""The activities behind the loops: one decided step in, one observation out; one turn of a sub-agent."""

from typing import Any

import azure.durable_functions as df

from orchestrations.payloads import Payload, at_work, report_defect, split

blueprint = df.Blueprint()


@blueprint.activity_trigger(input_name="payload")
async def perform_step(payload: Payload) -> dict[str, Any]:
    """Perform one step of a run. Input: StepInput. Output: StepResult."""
    from shared.answering.effects import perform_metered
    from shared.answering.steps import (
        CommitAnswer,
        ReportFailure,
        RunClosed,
        StepFailed,
        StepInput,
        StepResult,
    )
    from shared.answering.trace import record_end
    from shared.wiring import get_services

    given, link = split(payload)
    step_input = StepInput.from_payload(given)
    name = f"perform_step {step_input.action.kind}"
    try:
        async with at_work(name, link, run_id=step_input.run_id, step=str(step_input.action.step)):
            result = await perform_metered(step_input, get_services())
    except Exception:  # noqa: BLE001  # a defect: readers get an end all the same, and at once
        report_defect(name, step_input.run_id)
        message = "The answer could not be completed because of an internal error."
        hints = ("Ask again. If it happens again, give the operator the run id.",)
        failed = StepFailed(error_type="InternalError", message=message, hints=hints, retryable=False)
        result = StepResult(observation=failed)
    is_last = isinstance(step_input.action, CommitAnswer | ReportFailure)
    if link is not None and is_last and isinstance(result.observation, RunClosed):
        services = get_services()
        await record_end(step_input.run_id, link, services.blobs, services.runs)
    return result.model_dump(mode="json")


@blueprint.activity_trigger(input_name="payload")
async def take_sub_agent_turn(payload: Payload) -> dict[str, Any]:
    """Take one turn. Input: TurnInput. Output: TurnResult."""
    from shared.subagents.loop import CRASHED
    from shared.subagents.models import TurnInput
    from shared.subagents.turn import take_turn
    from shared.wiring import get_services

    given, link = split(payload)
    turn = TurnInput.from_payload(given)
    known = {"profile": turn.profile, "child": str(turn.index), "turn": str(turn.turn)}
    try:
        async with at_work("take_sub_agent_turn", link, run_id=turn.run_id, **known):
            result = await take_turn(turn, get_services())
    except Exception:  # noqa: BLE001  # a defect ends a turn, not the question
        report_defect("take_sub_agent_turn", turn.run_id)
        result = CRASHED
    return result.model_dump(mode="json")
