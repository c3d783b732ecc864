"""Execution of a single step; used by both drivers."""

import time
from contextlib import suppress
from typing import assert_never

from shared.answering import prepare, subagent_turn, turn_step
from shared.answering.attempts import result_of_other
from shared.answering.run_end import commit_step, project_run, report_step
from shared.answering.services import AnsweringServices
from shared.answering.step_context import StepContext
from shared.answering.steps import (
    CommitAnswer,
    Observation,
    Prepare,
    ReportFailure,
    RunClosed,
    StepFailed,
    StepInput,
    StepResult,
    TakeAnswer,
    TakeTurn,
    step_failed,
)
from shared.answering.subagent_models import ReadTask, TakeSubagentTurn
from shared.platform.errors import GroundworkError
from shared.platform.telemetry import get_logger
from shared.runs.event_log import RunClosedError, StaleAttemptError
from shared.runs.metering import Charge, MeteredChatModel, TokenMeter, charge_to
from shared.runs.models import RunRequest
from shared.runs.run_files import RunFiles

_OTHER_ATTEMPT_S = 120.0  # longer than the limit for an answer


async def perform_metered(step_input: StepInput, services: AnsweringServices) -> StepResult:
    """Perform a step within the run's token budget and charge its model calls to the run's owner.

    Tokens reserved for a call that was lost with its worker count as used. Expected failures are returned as
    `StepFailed`; defects are raised.
    """
    match step_input.action:
        case ReadTask():
            return StepResult(observation=await subagent_turn.read_task(step_input.place, services))
        case TakeSubagentTurn() as turn:
            taken = await subagent_turn.take_turn(step_input.place, turn, services)
            return StepResult(observation=taken)
    charge: Charge | None = None
    # If the request is missing, the step itself reports it.
    with suppress(GroundworkError):
        request = await RunFiles(services.blobs, step_input.run_id).request()
        services = _services_of_agent(request, services)
        charge = charge_to(request.user.user_id, services.user_limits)
    meter = TokenMeter(services.settings.budgets.max_total_tokens_per_request - step_input.tokens)
    context = StepContext(services, step_input, meter)
    model = MeteredChatModel(services.chat_model, meter, reserve=context.reserve, charge=charge)
    context.services = services.using(chat_model=model)
    return await _result_of(context)


def _services_of_agent(request: RunRequest, services: AnsweringServices) -> AnsweringServices:
    """Return the services with the limits and the model of the request's agent, if it names one."""
    agent = request.agent
    if agent is None:
        return services
    model = services.chat_model_named(agent.model) if agent.model else None
    return services.using(settings=agent.limited(services.settings), chat_model=model)


async def perform(step_input: StepInput, services: AnsweringServices) -> Observation:
    """Perform a step without a budget and return its observation."""
    return (await _result_of(StepContext(services, step_input))).observation


async def _result_of(context: StepContext) -> StepResult:
    """Return the result of an earlier attempt that completed the step; otherwise perform the step."""
    try:
        await context.read_journal()
        if context.journal.is_closed:
            raise RunClosedError("The run has ended.")
        if (result := _completed(context)) is not None:
            return result
        if context.is_repeated:
            context.meter.used += context.journal.reserved(context.action.step)
        observed = await _perform(context)
    except RunClosedError:
        # The writer of the end may have died before projecting it, or this step changed the record since.
        with suppress(GroundworkError):
            await project_run(context.run_id, context.services)
        observed = RunClosed()
    except StaleAttemptError:
        return await _result_of_other(context)
    except GroundworkError as failed:
        get_logger().warning(
            "step.failed", run_id=context.run_id, error_type=failed.code, step=context.action.step
        )
        await context.discard(failed.code)
        observed = step_failed(failed, context.remaining_s)
    return StepResult(observation=observed, tokens=context.meter.used)


def _completed(context: StepContext) -> StepResult | None:
    line = context.journal.completion(context.action.step)
    return None if line is None else StepResult.from_payload(line.result)


async def _perform(context: StepContext) -> Observation:
    match context.action:
        case Prepare():
            return await prepare.prepare(context, context.action)
        case TakeAnswer():
            return await prepare.take_answer(context, context.action)
        case TakeTurn():
            return await turn_step.take_turn(context, context.action)
        case CommitAnswer():
            return await commit_step(context, context.action)
        case ReportFailure():
            return await report_step(context, context.action)
        case _:
            assert_never(context.action)


async def _result_of_other(context: StepContext) -> StepResult:
    """Return the result of the attempt that took over, or a retryable failure if it takes too long."""
    until = time.monotonic() + _OTHER_ATTEMPT_S
    result = await result_of_other(
        context.journal,
        lambda: _completed(context),
        StepResult(observation=RunClosed()),
        lambda: until - time.monotonic(),
    )
    message = "Another attempt at this step started and did not finish."
    failed = StepFailed(error_type=StaleAttemptError.code, message=message, retryable=True)
    return result or StepResult(observation=failed, tokens=context.meter.used)
