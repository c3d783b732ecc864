"""Acting: performs one decided step and says what it saw. Both drivers run their steps through here."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from shared.agents.cancelling import keep_cancelled
from shared.agents.journal import RunClosedError, StaleAttemptError
from shared.agents.metering import TokenMeter, with_meter
from shared.agents.step_results import step_failed
from shared.agents.step_run import StepRun
from shared.errors import GroundworkError
from shared.models.steps import (
    AskUser,
    CommitAnswer,
    FindDocuments,
    MakePlan,
    Observation,
    RefineEvidence,
    ReportFailure,
    ResolveDocuments,
    RetrieveBlocks,
    RunClosed,
    StepAction,
    StepFailed,
    StepInput,
    StepResult,
    TakeAnswer,
    WriteAnswer,
)
from shared.services import Services
from shared.telemetry import get_logger

_LATER_ATTEMPT_POLL_S = 0.5
_LATER_ATTEMPT_TRIES = 240  # two minutes: longer than an answer may take


async def perform_metered(step_input: StepInput, services: Services) -> StepResult:
    """The same, with the tokens that it took; no call is made that the run has no tokens left for."""
    meter = TokenMeter(services.settings.max_total_tokens_per_request - step_input.tokens)
    observation = await perform(step_input, with_meter(services, meter))
    return StepResult(observation=observation, tokens=meter.used)


async def perform(step_input: StepInput, services: Services) -> Observation:
    """Perform one step of a run. Expected failures come back as `StepFailed`; defects are raised.

    May run twice for the same step after a crash: what the first attempt finished is not done again, what it
    left half done is marked in the run log and done anew.
    """
    run = StepRun(services, step_input)
    action = step_input.action
    try:
        return await run.known_result(action) or await _performers(run)[type(action)](action)
    except RunClosedError:
        # Somebody ended the run meanwhile; what this step wrote about it elsewhere must not say otherwise.
        with suppress(GroundworkError):
            await keep_cancelled(step_input.run_id, services)
        return RunClosed()
    except StaleAttemptError:
        return await _result_of_later_attempt(run, action)
    except GroundworkError as failed:
        get_logger().warning(
            "step.failed", run_id=step_input.run_id, error_type=failed.code, step=action.step
        )
        await run.discard(failed.code)
        return step_failed(failed, run.remaining_s)


def _performers(run: StepRun) -> Mapping[type, Callable[[Any], Awaitable[Observation]]]:
    return {
        MakePlan: run.make_plan,
        ResolveDocuments: run.resolve_documents,
        AskUser: run.ask_user,
        TakeAnswer: run.take_answer,
        FindDocuments: run.find_documents,
        RetrieveBlocks: run.retrieve_blocks,
        RefineEvidence: run.refine_evidence,
        WriteAnswer: run.write_answer,
        CommitAnswer: run.commit_answer,
        ReportFailure: run.report_failure,
    }


async def _result_of_later_attempt(run: StepRun, action: StepAction) -> Observation:
    """Wait for the attempt that took over: the first to answer ends the step, and this has nothing."""
    for _ in range(_LATER_ATTEMPT_TRIES):
        await asyncio.sleep(_LATER_ATTEMPT_POLL_S)
        try:
            known = await run.known_result(action)
        except RunClosedError:
            return RunClosed()
        if known is not None:
            return known
    message = "Another attempt at this step began and did not end."
    return StepFailed(error_type=StaleAttemptError.code, message=message, retryable=True)
