"""Durable activities of runs and of their orchestrations."""

import asyncio
from typing import Any

import azure.durable_functions as df

from orchestrations.payloads import Payload, activity_scope, as_object, report_defect, split
from shared import wiring
from shared.answering.effects import perform_metered
from shared.answering.steps import (
    CommitAnswer,
    CommitSummary,
    MergeSummary,
    OpenSummary,
    ReportFailure,
    RunClosed,
    StepFailed,
    StepInput,
    StepResult,
)
from shared.answering.subagent_models import ReadTask, TakeSubagentTurn
from shared.answering.summary_models import DocumentAction
from shared.answering.trace import record_end
from shared.ingestion import fair_turns
from shared.platform import tracing
from shared.platform.concurrency import run_together
from shared.platform.telemetry import get_logger

TRIES = 3  # a child that was just scheduled may be unknown to the client for a moment
PAUSE_S = 0.5


async def perform_step(payload: Payload) -> dict[str, Any]:
    """Perform one step of a run or of one of its children. Input: StepInput. Output: StepResult, even after a
    defect.
    """
    fields, link = split(payload)
    step_input = StepInput.from_payload(fields)
    name = f"perform_step {step_input.action.kind}"
    try:
        async with activity_scope(name, link, run_id=step_input.run_id, **_log_fields(step_input)):
            services = wiring.get_services()
            # A summary takes minutes, so unlike a question it must not delay ingestion while it runs.
            if _is_summary(step_input):
                result = await perform_metered(step_input, services)
            else:
                await services.documents.open_work.note_question()
                with fair_turns.SHARES.answering():
                    result = await perform_metered(step_input, services)
    except Exception:  # noqa: BLE001  # even after a defect, readers must see the run end at once
        report_defect(name, step_input.run_id)
        message = "The answer could not be completed because of an internal error."
        hints = ("Ask again. If it happens again, give the operator the run id.",)
        failed = StepFailed(error_type="InternalError", message=message, hints=hints, retryable=False)
        result = StepResult(observation=failed)
    is_last = isinstance(step_input.action, CommitAnswer | CommitSummary | ReportFailure)
    if link is not None and is_last and isinstance(result.observation, RunClosed):
        services = wiring.get_services()
        await record_end(step_input.run_id, link, services, services.runs)
    return result.model_dump(mode="json")


def _log_fields(step_input: StepInput) -> dict[str, str]:
    """Return the log fields that identify a step: its number, or the child and its turn."""
    action = step_input.action
    if isinstance(action, TakeSubagentTurn):
        fields = {"profile": action.profile, "turn": str(action.turn)}
        return {"child": str(step_input.place.index), **fields}
    if isinstance(action, ReadTask | DocumentAction):
        return {"child": str(step_input.place.index)}
    return {"step": str(action.step)}


def _is_summary(step_input: StepInput) -> bool:
    """Return whether the step belongs to a summary. `ReportFailure` does not count, because questions share
    it.
    """
    return isinstance(step_input.action, OpenSummary | MergeSummary | CommitSummary | DocumentAction)


async def terminate_instances(payload: Payload, client: df.DurableOrchestrationClient) -> dict[str, Any]:
    """Terminate orchestration instances. Input: {"instance_ids", "reason"}. Output: {"terminated": count}.

    Instances that have already ended count as terminated.
    """
    fields = as_object(payload)
    ended = await run_together(
        *(_terminate(client, str(one), str(fields["reason"])) for one in fields["instance_ids"])
    )
    return {"terminated": sum(ended)}


async def record_span(payload: Payload) -> dict[str, Any]:
    """Record the trace span of an orchestration. Input: {"name", "instance_id", "status"}. Output: {}."""
    await wiring.start_telemetry()
    fields, link = split(payload)
    if link is not None:
        attributes = {"run_id": str(fields["instance_id"]), "groundwork.status": str(fields["status"])}
        failed = "OrchestrationFailed" if fields["status"] == "failed" else ""
        tracing.record(str(fields["name"]), link, attributes, error_type=failed)
    return {}


async def _terminate(client: df.DurableOrchestrationClient, instance_id: str, reason: str) -> bool:
    for attempt in range(TRIES):
        try:
            await client.terminate(instance_id, reason)
        except Exception:  # noqa: BLE001  # the client raises nothing more precise
            if attempt + 1 < TRIES:
                await asyncio.sleep(PAUSE_S)
        else:
            return True
    get_logger().warning("child.terminate_failed", run_id=instance_id)
    return False
