"""Acting: performs one decided step and says what it saw. Both drivers run their steps through here."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import assert_never

from shared.answering import prepare, turn_step
from shared.answering.attempt import StepAttempt
from shared.answering.run_end import commit_step, keep_cancelled, report_step
from shared.answering.services import AnsweringServices
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
from shared.platform.concurrency import run_together
from shared.platform.errors import GroundworkError
from shared.platform.telemetry import get_logger
from shared.runs.event_log import RunClosedError, StaleAttemptError, is_closed
from shared.runs.metering import Charge, MeteredChatModel, TokenMeter, charge_to
from shared.runs.models import RunRequest
from shared.runs.working_memory import WorkingMemory

_LATER_ATTEMPT_POLL_S = 0.5
_LATER_ATTEMPT_TRIES = 240  # two minutes: longer than an answer may take


async def perform_metered(step_input: StepInput, services: AnsweringServices) -> StepResult:
    """Perform a step within the run's token budget, and charge its model calls to the person who asked.

    Tokens reserved for a call that was lost with its worker count as used.
    """
    memory = WorkingMemory(services.blobs, step_input.run_id)
    charge: Charge | None = None
    # A step whose request is missing says so itself.
    with suppress(GroundworkError):
        request = await memory.request()
        services = _services_of_agent(request, services)
        charge = charge_to(request.user.user_id, services.user_limits)
    meter = TokenMeter(services.settings.budgets.max_total_tokens_per_request - step_input.tokens)
    model = MeteredChatModel(services.chat_model, meter, memory, step_input.action.step, charge=charge)
    observation = await perform(step_input, services.using(chat_model=model), model.count_lost)
    return StepResult(observation=observation, tokens=meter.used)


def _services_of_agent(request: RunRequest, services: AnsweringServices) -> AnsweringServices:
    """Return services with the limits and the model of the agent that was asked, if one was."""
    agent = request.agent
    if agent is None:
        return services
    model = services.chat_model_named(agent.model) if agent.model else None
    return services.using(settings=agent.limited(services.settings), chat_model=model)


async def perform(
    step_input: StepInput,
    services: AnsweringServices,
    on_repeat: Callable[[], Awaitable[None]] | None = None,
) -> Observation:
    """Perform one step of a run. Expected failures come back as `StepFailed`; defects are raised.

    May run twice for the same step after a crash: what the first attempt finished is not done again, what it
    left half done is marked in the run log and done again.

    Args:
        on_repeat: awaited first when an earlier attempt may have been lost.
    """
    attempt = StepAttempt(services, step_input)
    try:
        known, _ = await run_together(_known(attempt), attempt.read_log())
        if on_repeat is not None and attempt.is_repeated:
            await on_repeat()
        is_last = isinstance(attempt.action, CommitAnswer | ReportFailure)
        if is_last and attempt.written and is_closed(attempt.written):
            return RunClosed()
        return known or await _perform(attempt)
    except RunClosedError:
        # Somebody ended the run meanwhile; what this step wrote about it elsewhere must not say otherwise.
        with suppress(GroundworkError):
            await keep_cancelled(step_input.run_id, services)
        return RunClosed()
    except StaleAttemptError:
        return await _result_of_later_attempt(attempt)
    except GroundworkError as failed:
        get_logger().warning(
            "step.failed", run_id=step_input.run_id, error_type=failed.code, step=step_input.action.step
        )
        await attempt.discard(failed.code)
        return step_failed(failed, attempt.remaining_s)


async def _known(attempt: StepAttempt) -> Observation | None:
    """What an earlier attempt brought, if one got to its end. RunClosedError: and the run has ended."""
    match attempt.action:
        case Prepare() | TakeAnswer():
            return await prepare.known(attempt)
        case TakeTurn():
            return await turn_step.known(attempt, attempt.action)
        case CommitAnswer() | ReportFailure():
            return None
        case _:
            assert_never(attempt.action)


async def _perform(attempt: StepAttempt) -> Observation:
    match attempt.action:
        case Prepare():
            return await prepare.prepare(attempt, attempt.action)
        case TakeAnswer():
            return await prepare.take_answer(attempt, attempt.action)
        case TakeTurn():
            return await turn_step.take_turn(attempt, attempt.action)
        case CommitAnswer():
            return await commit_step(attempt, attempt.action)
        case ReportFailure():
            return await report_step(attempt, attempt.action)
        case _:
            assert_never(attempt.action)


async def _result_of_later_attempt(attempt: StepAttempt) -> Observation:
    """Wait for the attempt that took over: the first to answer ends the step, and this has nothing."""
    for _ in range(_LATER_ATTEMPT_TRIES):
        await asyncio.sleep(_LATER_ATTEMPT_POLL_S)
        try:
            known = await _known(attempt)
        except RunClosedError:
            return RunClosed()
        if known is not None:
            return known
    message = "Another attempt at this step began and did not end."
    return StepFailed(error_type=StaleAttemptError.code, message=message, retryable=True)
