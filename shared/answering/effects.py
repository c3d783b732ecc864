"""Performs a single step of a run, for both the durable and the inline driver."""

from contextlib import suppress
from typing import assert_never

from shared.answering import prepare, subagent_step, summary_merge, turn_step
from shared.answering.attempts import Attempt
from shared.answering.budget import Budget
from shared.answering.metering import Charge, MeteredChatModel, charge_to
from shared.answering.run_end import commit_step, project_run, report_step
from shared.answering.services import AnsweringServices
from shared.answering.step_context import StepContext
from shared.answering.steps import (
    CommitAnswer,
    CommitSummary,
    MergeSummary,
    Observation,
    OpenSummary,
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
from shared.answering.summary_document import perform_document_step
from shared.answering.summary_limits import merge_tokens
from shared.answering.summary_models import OpenDocument, ReadWindows, ReduceDocument
from shared.platform.errors import GroundworkError
from shared.platform.telemetry import get_logger
from shared.runs.event_log import StaleAttemptError
from shared.runs.models import RunRequest
from shared.runs.run_files import RunFiles


async def perform_metered(step_input: StepInput, services: AnsweringServices) -> StepResult:
    """Perform a step within the run's token budget, and charge its model calls to the owner of the run.

    Tokens reserved for a call that was lost with its worker count as used. Expected failures are returned as
    `StepFailed`; defects are raised.
    """
    match step_input.action:
        case ReadTask():
            return StepResult(observation=await subagent_step.read_task(step_input.place, services))
        case TakeSubagentTurn() as turn:
            result = await subagent_step.take_subagent_turn(step_input.place, turn, services)
            return StepResult(observation=result)
        case OpenDocument() | ReadWindows() | ReduceDocument() as action:
            return await perform_document_step(step_input.place, action, services)
    charge: Charge | None = None
    # If the request can't be read, the step itself reports the error.
    with suppress(GroundworkError):
        request = await RunFiles(services.blobs, step_input.run_id).request()
        services = _services_of_agent(request, services)
        charge = charge_to(request.user.user_id, services.user_limits)
    limit = services.settings.budgets.max_total_tokens_per_request
    if isinstance(step_input.action, MergeSummary):
        limit = merge_tokens(services.settings.summaries)
    budget = Budget(limit - step_input.tokens)
    context = StepContext(services, step_input, budget)
    model = MeteredChatModel(services.chat_model, budget, reserve=context.reserve, charge=charge)
    context.services = services.using(chat_model=model)
    return await _RunStep(context).result()


def _services_of_agent(request: RunRequest, services: AnsweringServices) -> AnsweringServices:
    """Return services with the model and limits of the run's agent. Without an agent, return them
    unchanged.
    """
    agent = request.agent
    if agent is None:
        return services
    model = services.chat_model_named(agent.model) if agent.model else None
    return services.using(settings=agent.limit_settings(services.settings), chat_model=model)


class _RunStep(Attempt[StepResult]):
    """An attempt at a step of a run itself. Its children have other attempts."""

    def __init__(self, context: StepContext) -> None:
        super().__init__(context.journal)
        self._context = context

    async def read(self) -> None:
        """Read the run's journal."""
        await self._context.read_journal()

    def stored_result(self) -> StepResult | None:
        """Return the stored result of the step, or None if no attempt has completed it."""
        line = self.journal.completion(self._context.action.step)
        return None if line is None else StepResult.from_payload(line.result)

    async def perform(self) -> StepResult:
        """Perform the step. Tokens that an earlier attempt reserved count as used."""
        context = self._context
        if context.is_repeated:
            context.budget.tokens += context.journal.reserved(context.action.step)
        return self._result(await _perform(context))

    async def result_after_end(self) -> StepResult:
        """Update the record of a run that has ended, and return RunClosed. The writer of the last event may
        have died before it could update the record.
        """
        with suppress(GroundworkError):
            await project_run(self._context.run_id, self._context.services)
        return self._result(RunClosed())

    async def result_after_error(self, error: GroundworkError) -> StepResult:
        """Tell clients to discard the events of this step, and return the error as the result."""
        context = self._context
        if isinstance(error, StaleAttemptError):
            message = "Another attempt at this step started and did not finish."
            return self._result(StepFailed(error_type=error.code, message=message, retryable=True))
        get_logger().warning(
            "step.failed", run_id=context.run_id, error_type=error.code, step=context.action.step
        )
        await context.discard(error.code)
        return self._result(step_failed(error, context.remaining_s))

    def _result(self, observed: Observation) -> StepResult:
        return StepResult(observation=observed, tokens=self._context.budget.tokens)


async def _perform(context: StepContext) -> Observation:
    match context.action:
        case Prepare():
            return await prepare.prepare(context, context.action)
        case TakeAnswer():
            return await prepare.take_answer(context, context.action)
        case TakeTurn():
            return await turn_step.take_turn(context, context.action)
        case CommitAnswer() | ReportFailure() as action:
            return await _close(context, action)
        case OpenSummary() | MergeSummary() | CommitSummary() as action:
            return await _summarise(context, action)
        case _:
            assert_never(context.action)


async def _close(context: StepContext, action: CommitAnswer | ReportFailure) -> Observation:
    if isinstance(action, CommitAnswer):
        return await commit_step(context, action)
    return await report_step(context, action)


async def _summarise(context: StepContext, action: OpenSummary | MergeSummary | CommitSummary) -> Observation:
    match action:
        case OpenSummary():
            return await summary_merge.open_summary(context)
        case MergeSummary():
            return await summary_merge.merge_summary(context)
        case CommitSummary():
            return await summary_merge.commit_summary(context, action)
