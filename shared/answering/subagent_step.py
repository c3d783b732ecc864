"""Performs a turn of a sub-agent as a step of its script.

It ends before the deadline, whatever the model does. A turn whose completion is in the journal is not taken
again. Of two concurrent attempts the later counts, and the earlier returns its result. Expected failures are
results; only defects are raised.
"""

import asyncio
from datetime import UTC, datetime

from shared.answering import agent_turn, control
from shared.answering.attempts import Attempt
from shared.answering.budget import Budget
from shared.answering.children import completed_turn, delegation_with, find_state, turn_results
from shared.answering.metering import MeteredChatModel, charge_to
from shared.answering.profiles import profiles_for
from shared.answering.report_turn import ReportTurn, SearchFailedError
from shared.answering.services import SubagentServices
from shared.answering.steps import StepFailed, step_failed
from shared.answering.subagent_budget import MARGIN_S
from shared.answering.subagent_context import SubagentContext
from shared.answering.subagent_models import (
    SubagentPlace,
    SubagentState,
    TakeSubagentTurn,
    TaskRead,
    TurnResult,
    TurnStatus,
    WarningCode,
)
from shared.platform.errors import (
    CallTimeoutError,
    GroundworkError,
    ModelFixableError,
    NotFoundError,
)
from shared.platform.telemetry import get_logger
from shared.runs.event_log import RunClosedError, StaleAttemptError
from shared.runs.events import RunEvent
from shared.runs.journal import Journal, read_journal

# Time limit for storing the report. The rest of the margin is for notifying the parent.
_STORE_S = MARGIN_S / 2
# Maximum time that the end of a turn waits for the record of its start. Only very short turns wait.
_START_S = 0.1
_NOT_NEEDED = TurnResult(status="partial")
"""The run has ended, or the time is up, so the result is no longer needed."""


async def read_task(place: SubagentPlace, services: SubagentServices) -> TaskRead | StepFailed:
    """Return the limits of a sub-agent's task, and the profiles that may work on it, best first."""
    try:
        journal = await read_journal(services.run_log, services.blobs, place.run_id)
        _, task = await delegation_with(journal, place)
    except GroundworkError as failed:
        get_logger().warning("sub_agent.start_failed", run_id=place.run_id, error_type=failed.code)
        return step_failed(failed, None)
    settings = services.settings.subagents
    return TaskRead(
        deadline=task.deadline,
        max_turns=task.budget.max_child_turns,
        retry_count=settings.child_retry_count,
        retry_backoff_ms=settings.child_retry_backoff_ms,
        profiles=profiles_for(task.profile, task.tools, has_web_search=services.web_search is not None),
    )


async def take_subagent_turn(
    place: SubagentPlace, turn: TakeSubagentTurn, services: SubagentServices
) -> TurnResult:
    """Take a turn of a sub-agent, or return the stored result if it was taken before."""
    return await _TurnAttempt(place, turn, services).result()


class _TurnAttempt(Attempt[TurnResult]):
    """An attempt at one turn of a sub-agent."""

    def __init__(self, place: SubagentPlace, turn: TakeSubagentTurn, services: SubagentServices) -> None:
        super().__init__(Journal(services.run_log, services.blobs, place.run_id))
        self._place = place
        self._turn = turn
        self._services = services
        self._context: SubagentContext | None = None

    @property
    def patience_s(self) -> float:
        """Seconds to wait for another attempt, after which there is still time to store a result."""
        return self._context.remaining_s - _STORE_S if self._context else 0.0

    def stored_result(self) -> TurnResult | None:
        """Return the stored result of the turn, or None if no attempt has completed it."""
        return completed_turn(self.journal, self._place, self._turn)

    async def perform(self) -> TurnResult:
        """Take the turn. If it is the first one, record that the sub-agent has started."""
        self._context = context = await _turn_context(self._place, self._turn, self._services, self.journal)
        if context.state.started_at is not None:
            return await _take_turn(context, is_first=False)
        beginning = asyncio.create_task(control.begin(self._services.subagent_control, self._place.child_id))
        try:
            return await _take_turn(context, is_first=True)
        finally:
            await asyncio.wait([beginning], timeout=_START_S)
            beginning.cancel()

    async def result_after_end(self) -> TurnResult:
        """Return a placeholder result, because the run no longer waits for this turn."""
        return _NOT_NEEDED

    async def result_after_error(self, error: GroundworkError) -> TurnResult:
        """Return the error as the result of the turn, or a placeholder if the run was erased or another
        attempt took over.
        """
        if isinstance(error, NotFoundError | StaleAttemptError):
            return _NOT_NEEDED
        get_logger().warning("sub_agent.start_failed", run_id=self._place.run_id, error_type=error.code)
        return TurnResult(status="failed", retryable=error.retryable, warnings=("TOOL_FAILED",), tokens=0)


async def _turn_context(
    place: SubagentPlace, turn: TakeSubagentTurn, services: SubagentServices, journal: Journal
) -> SubagentContext:
    """Return the context of a turn, with the permissions and the model that apply to its run.

    Raises:
        NotFoundError: the run was erased, or has no such task.
    """
    delegation, task = await delegation_with(journal, place)
    request = (await journal.files.request()).with_rights_of(delegation.asker)
    state = await find_state(journal, place.step, place.index)
    state = state or SubagentState(child_id=place.child_id, profile=turn.profile)
    if request.agent is not None and request.agent.model:
        services = services.using(chat_model=services.chat_model_named(request.agent.model))
    # The context enforces the task's budget, so this model only charges the calls to the user.
    charge = charge_to(request.user.user_id, services.user_limits)
    metered = MeteredChatModel(services.chat_model, Budget(), charge=charge)
    return SubagentContext(
        services.using(chat_model=metered), journal, turn, task, request=request, state=state
    )


async def _take_turn(context: SubagentContext, *, is_first: bool) -> TurnResult:
    """Take the turn within its time limit, and append its completion to the journal. Failures of the turn
    become its result.
    """
    warned = _note_attempt(context)
    await context.open(*(("started", "turn") if is_first else ("turn",)))
    status: TurnStatus = "failed"
    error: GroundworkError | None = None
    try:
        async with asyncio.timeout(max(context.remaining_s - MARGIN_S, 0.0)):
            status = await agent_turn.take_turn(ReportTurn(context))
    except TimeoutError:
        context.add_warnings("TIME_OUT")
        status = "partial"
    except (RunClosedError, StaleAttemptError):
        raise
    except GroundworkError as failed:
        context.add_warnings(_warning_for(failed))
        error = failed
    state = context.state
    result = TurnResult(
        status=status,
        # A retry after a timeout would probably time out as well.
        retryable=error is not None and error.retryable and not isinstance(error, CallTimeoutError),
        warnings=tuple(code for code in state.warnings if code not in warned),
        tokens=state.tokens,
        cost_usd=round(state.cost_usd, 8),
        findings=len(state.findings),
        lost_s=context.lost_s,
    )
    return await _complete_turn(context, result, error)


def _note_attempt(context: SubagentContext) -> tuple[WarningCode, ...]:
    """Record the start of the attempt in the state, and return the warnings that earlier attempts added."""
    turn, state = context.turn, context.state
    warned = state.warnings
    results = turn_results(context.journal, context.place.step, context.place.index)
    before = results[-1][1] if results else None
    if turn.attempt and (before is None or before.status != "failed"):
        context.add_warnings("CRASHED")
    elif turn.attempt and before and turn.profile == state.profile and not turn.closing:
        # Drop the warnings of the failed attempt. If they still apply, this attempt adds them again.
        warned = tuple(code for code in state.warnings if code not in before.warnings)
        context.update_state(warnings=warned)
    if turn.profile != context.task.profile:
        context.add_warnings("PROFILE_REDUCED")
    context.update_state(
        profile=turn.profile,
        status="running",
        started_at=state.started_at or datetime.now(UTC),
        ended_at=None,
    )
    return warned


async def _complete_turn(
    context: SubagentContext, result: TurnResult, error: GroundworkError | None
) -> TurnResult:
    """Append the completion of a turn to the journal and return its result. If appending fails, the result is
    `failed`, unless the turn was the last.
    """
    turn, is_over = context.turn, result.status != "go_on"
    status = result.status if result.status != "partial" or context.state.findings else "failed"
    context.update_state(
        status=status if is_over else "running",
        turns_ended=context.state.turns_ended if result.status == "failed" else turn.turn,
        ended_at=datetime.now(UTC) if is_over else None,
    )
    _log(context, result)
    events: tuple[RunEvent, ...] = ()
    if result.status == "failed":
        events = (context.end_event("failed", error_type=error.code if error else None),)
    elif is_over:
        events = (context.end_event("ended", status=context.state.status),)
    try:
        async with asyncio.timeout(max(context.remaining_s - _STORE_S, _STORE_S)):
            await context.complete(result, *events)
    except (TimeoutError, GroundworkError) as failed:
        if isinstance(failed, RunClosedError | StaleAttemptError):
            raise
        # The next turn would need the state of this turn, which was lost. A report's findings are already
        # stored.
        if not is_over:
            return result.model_copy(update={"status": "failed", "retryable": True})
    return result


def _log(context: SubagentContext, result: TurnResult) -> None:
    turn = context.turn
    get_logger().info(
        "sub_agent.turn",
        run_id=context.place.run_id,
        child=context.place.index,
        profile=turn.profile,
        turn=turn.turn,
        attempt=turn.attempt,
        status=result.status,
        tokens=result.tokens,
        findings=result.findings,
        warnings=list(result.warnings),
    )


def _warning_for(error: GroundworkError) -> WarningCode:
    if isinstance(error, SearchFailedError):
        return "TOOL_FAILED"
    return "REPORT_UNREADABLE" if isinstance(error, ModelFixableError) else "MODEL_FAILED"
