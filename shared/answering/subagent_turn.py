"""One turn of a sub-agent: make the previous turn's calls, then let the model call tools or report.

It ends before the deadline, whatever the model does. A turn whose completion is in the journal is not taken
again. Of two concurrent attempts the later one counts, and the other one returns its result. A run that has
ended or continued ends its sub-agents at their next turn or event. Expected failures are results; only
defects are raised.
"""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from shared.answering import agent_turn, control
from shared.answering.agent_turn import Asked
from shared.answering.attempts import perform_once
from shared.answering.budget import (
    CHARS_PER_TOKEN,
    MARGIN_S,
    allowed_work,
    result_tokens,
    tokens_of,
    tool_limit_s,
    work_limit_s,
)
from shared.answering.calls import CallMaker, planned_calls
from shared.answering.children import completed_turn, delegation_with, find_state, turn_results
from shared.answering.opening import open_task
from shared.answering.profiles import SUBAGENT_CALLS, profiles_for
from shared.answering.report_stream import write_report
from shared.answering.services import SubagentServices
from shared.answering.steps import StepFailed, step_failed
from shared.answering.subagent_context import TurnContext
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
    DependencyError,
    GroundworkError,
    ModelFixableError,
    NotFoundError,
)
from shared.platform.language_models.models import CallLimits, ChatModel, Message, ModelTurn, ModelUsage
from shared.platform.telemetry import get_logger
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.secured_index import SecuredIndex
from shared.runs.event_log import RunClosedError, StaleAttemptError
from shared.runs.events import RunEvent
from shared.runs.journal import Journal, read_journal
from shared.runs.metering import MeteredChatModel, TokenMeter, charge_to
from shared.runs.models import ToolUse
from shared.tools.base import Found
from shared.tools.execution import Called
from shared.tools.registry import TOOLS
from shared.tools.tool_calls import PlannedCall

_LEAST_CHARS = 400  # minimum length of a rendered result
_PASSING = frozenset({"NetworkError", "RateLimitError"})  # errors for which a retry may succeed
_MAX_SAID_CHARS = 600  # of the text that accompanies a model's calls
_STORE_S = MARGIN_S / 2  # share of the margin; the rest is for notifying the parent
_BOOK_S = 0.1  # how long a very short turn waits until its start is recorded
_STOPPED = TurnResult(status="partial")
"""The run has ended, or the time is up, so the result is no longer needed."""


class SearchFailedError(DependencyError):
    """A sub-agent's search failed, and a retry may succeed."""

    def __init__(self, failed: GroundworkError | None = None) -> None:
        super().__init__(failed.detail if failed else "A search of a sub-agent failed.")
        if failed is not None:
            self.retryable = failed.retryable and not isinstance(failed, CallTimeoutError)
            self.code = failed.code


class ReportTurn:
    """A sub-agent during one attempt at one turn."""

    def __init__(self, context: TurnContext) -> None:
        self._context = context
        self._prompt_tokens = 0

    @property
    def chat_model(self) -> ChatModel:
        """The model, whose calls are charged to the run's user."""
        return self._context.services.chat_model

    async def begin(self) -> None:
        """Gather the first passages, and make the last turn's calls.

        Raises:
            SearchFailedError: a search or a call failed. After a first attempt, all calls are made again.
        """
        context = self._context
        if not context.state.is_opened:
            try:
                await open_task(context)
            except GroundworkError as failed:
                raise SearchFailedError(failed) from None
            context.change(is_opened=True)
            await context.keep()
        if context.state.planned:
            await self._make_calls()

    async def ask(self) -> Asked | None:
        """Return the prompt; None if the report is due, because no call is left or affordable."""
        context = self._context
        tools = [context.bind(name, Found()).definition for name in context.tools]
        if context.turn.closing or context.state.is_covered or self._calls_left <= 0 or not tools:
            return None
        messages = _messages(context)
        texts = [*map(_text_of, messages), *(tool.model_dump_json() for tool in tools)]
        self._prompt_tokens = tokens_of(texts)
        limit_s = work_limit_s(context.remaining_s)
        allowed = allowed_work(context.task.budget, context.spent, self._prompt_tokens, context.prices)
        if not limit_s or allowed.limit is not None:
            return None
        limits = CallLimits(timeout_s=limit_s, max_retries=0, max_output_tokens=allowed.output_tokens)
        return Asked(messages, tools, limits)

    async def hear(self, text: str) -> None:
        """Ignore the text: only the report and the calls count."""

    async def go_on(self, said: ModelTurn) -> TurnStatus | None:
        """Plan the model's calls; return None if the report is due instead."""
        context, state = self._context, self._context.state
        output_tokens = tokens_of([said.text, *(call.arguments for call in said.tool_calls)])
        read = self._prompt_tokens if said.tokens is None else max(said.tokens - output_tokens, 0)
        context.book(said.usage or ModelUsage(input_tokens=read, output_tokens=output_tokens))
        planned = planned_calls(SUBAGENT_CALLS, said.tool_calls, context.tools, state.made, self._calls_left)
        for refused in planned:
            await _tell_refused(context, refused)
        if not any(item.refused is None for item in planned) or not _result_room(context):
            return None
        calls = tuple(item.call for item in planned)
        message = Message(role="assistant", text=said.text[:_MAX_SAID_CHARS], tool_calls=calls)
        context.change(messages=(*state.messages, message), planned=planned)
        return "go_on"

    async def finish(self, said: ModelTurn | None) -> TurnStatus:
        """Have the model write the report."""
        return await write_report(self._context)

    async def recover(self, failed: GroundworkError) -> TurnStatus:
        """Have the model write the report, unless it can't be reached."""
        if not isinstance(failed, CallTimeoutError | ModelFixableError):
            raise failed
        # Assume that the call was billed. The report is still possible.
        self._context.book(ModelUsage(input_tokens=self._prompt_tokens, output_tokens=0))
        self._context.warn("MODEL_FAILED")
        return await self.finish(None)

    @property
    def _calls_left(self) -> int:
        context = self._context
        return context.services.settings.subagents.child_max_tool_calls - len(context.state.made)

    async def _make_calls(self) -> None:
        context = self._context
        maker = _maker(context)
        called, _ = await maker.make(context.state.planned)
        uses = [_use(context, one) for one in called if one.planned.refused is None]
        context.change(tool_uses=(*context.state.tool_uses, *uses))
        has_failed = any(one.result.get("type") in _PASSING for one in called)
        if has_failed and not context.turn.attempt:
            raise SearchFailedError
        if any(one.result.get("type") == CallTimeoutError.code for one in called):
            context.warn("TOOL_FAILED")
        context.learn(await maker.render(called))
        await context.keep()
        if has_failed:
            raise SearchFailedError


def _maker(context: TurnContext) -> CallMaker:
    state, services = context.state, context.services
    limit_s = tool_limit_s(context.remaining_s, services.settings.answering.retrieval_timeout_s)
    room = _result_room(context) // max(len(state.planned), 1)
    return CallMaker(
        SUBAGENT_CALLS,
        bind=context.bind,
        tell=context.tell,
        limit_s=lambda _: limit_s,
        documents=DocumentSearch(
            SecuredIndex(services.documents_index, context.request.user, services.documents)
        ),
        describe_s=limit_s,
        max_chars=max(room * CHARS_PER_TOKEN, _LEAST_CHARS),
        shown={hit.block_id for hit in state.hits},
        records=context.records,
    )


def _use(context: TurnContext, called: Called) -> ToolUse:
    result = called.result
    return ToolUse(
        turn=context.turn.turn,
        tool=called.planned.call.name,
        success=result["success"],
        result_count=called.count or 0,
        duration_ms=called.duration_ms,
        error_type=None if result["success"] else result["type"],
    )


async def _tell_refused(context: TurnContext, item: PlannedCall) -> None:
    """Show a refused call to readers, unless the model invented the tool's name."""
    if item.refused is None or item.call.name not in TOOLS:
        return
    called = Called(item, item.refused.result)
    context.change(tool_uses=(*context.state.tool_uses, _use(context, called)))
    await context.tell([called.event])


def _messages(context: TurnContext) -> Sequence[Message]:
    opening = context.state.hits[: context.state.opening_count]
    return (
        Message(role="system", text=context.system),
        Message(role="user", text=context.message(opening)),
        *context.state.messages,
    )


def _text_of(message: Message) -> str:
    return message.text + "".join(call.name + call.arguments for call in message.tool_calls)


def _result_room(context: TurnContext) -> int:
    report_tokens = tokens_of(map(_text_of, _messages(context)))
    return result_tokens(context.task.budget, context.spent, report_tokens)


async def read_task(place: SubagentPlace, services: SubagentServices) -> TaskRead | StepFailed:
    """Return the limits of a sub-agent's task, and the profiles that may work on it."""
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


async def take_turn(place: SubagentPlace, turn: TakeSubagentTurn, services: SubagentServices) -> TurnResult:
    """Take a turn, or return the result of a completed one."""
    return await perform_once(_TurnAttempt(place, turn, services))


class _TurnAttempt:
    """An attempt at a turn of a sub-agent."""

    def __init__(self, place: SubagentPlace, turn: TakeSubagentTurn, services: SubagentServices) -> None:
        self._place = place
        self._turn = turn
        self._services = services
        self._context: TurnContext | None = None
        self.journal = Journal(services.run_log, services.blobs, place.run_id)

    @property
    def patience_s(self) -> float:
        """Seconds left of the turn's time."""
        return self._context.remaining_s - _STORE_S if self._context else 0.0

    async def read(self) -> None:
        """Read the journal."""
        await self.journal.read()

    def completed(self) -> TurnResult | None:
        """Return the result of the turn if the journal contains its completion."""
        return completed_turn(self.journal, self._place, self._turn)

    async def perform(self) -> TurnResult:
        """Take the turn, and record the start of the sub-agent if it is the first."""
        self._context = context = await _turn_context(self._place, self._turn, self._services, self.journal)
        if context.state.started_at is not None:
            return await _taken(context, is_first=False)
        beginning = asyncio.create_task(control.begin(self._services.subagent_control, self._place.child_id))
        try:
            return await _taken(context, is_first=True)
        finally:
            await asyncio.wait([beginning], timeout=_BOOK_S)
            beginning.cancel()

    async def stopped(self) -> TurnResult:
        """Return that the result is no longer needed."""
        return _STOPPED

    async def failed(self, error: GroundworkError) -> TurnResult:
        """Return that the turn has not begun; an erased run or an overtaken turn needs no result."""
        if isinstance(error, NotFoundError | StaleAttemptError):
            return _STOPPED
        get_logger().warning("sub_agent.start_failed", run_id=self._place.run_id, error_type=error.code)
        return TurnResult(status="failed", retryable=error.retryable, warnings=("TOOL_FAILED",), tokens=0)


async def _turn_context(
    place: SubagentPlace, turn: TakeSubagentTurn, services: SubagentServices, journal: Journal
) -> TurnContext:
    """Return the context of a turn.

    Raises:
        NotFoundError: the run was erased, or has no such task.
    """
    delegation, task = await delegation_with(journal, place)
    request = (await journal.files.request()).with_rights_of(delegation.asker)
    state = await find_state(journal, place.step, place.index)
    state = state or SubagentState(child_id=place.child_id, profile=turn.profile)
    if request.agent is not None and request.agent.model:
        services = services.using(chat_model=services.chat_model_named(request.agent.model))
    # The task's own budget limits the calls; the meter only charges them to the user.
    charge = charge_to(request.user.user_id, services.user_limits)
    metered = MeteredChatModel(services.chat_model, TokenMeter(), charge=charge)
    services = services.using(chat_model=metered)
    context = TurnContext(services, place, turn, task, request, journal, state)
    context.note_losses()
    return context


async def _taken(context: TurnContext, *, is_first: bool) -> TurnResult:
    """Make one attempt at the turn, and complete it."""
    warned = _note_attempt(context)
    await context.open(*(("started", "turn") if is_first else ("turn",)))
    status: TurnStatus = "failed"
    error: GroundworkError | None = None
    try:
        async with asyncio.timeout(max(context.remaining_s - MARGIN_S, 0.0)):
            status = await agent_turn.take_turn(ReportTurn(context))
    except TimeoutError:
        context.warn("TIME_OUT")
        status = "partial"
    except (RunClosedError, StaleAttemptError):
        raise
    except GroundworkError as failed:
        context.warn(_warning_of(failed))
        error = failed
    state = context.state
    result = TurnResult(
        status=status,
        # A retry would probably use up its whole timeout again.
        retryable=error is not None and error.retryable and not isinstance(error, CallTimeoutError),
        warnings=tuple(code for code in state.warnings if code not in warned),
        tokens=state.tokens,
        cost_usd=round(state.cost_usd, 8),
        findings=len(state.findings),
        lost_s=context.lost_s,
    )
    return await _stored(context, result, error)


def _note_attempt(context: TurnContext) -> tuple[WarningCode, ...]:
    """Record the attempt in the state; return the warnings of earlier attempts."""
    turn, state = context.turn, context.state
    warned = state.warnings
    results = turn_results(context.journal, context.place.step, context.place.index)
    before = results[-1][1] if results else None
    if turn.attempt and (before is None or before.status != "failed"):
        context.warn("CRASHED")
    elif turn.attempt and before and turn.profile == state.profile and not turn.closing:
        # Drop the failed attempt's warnings; if the retry fails as well, it adds them again.
        warned = tuple(code for code in state.warnings if code not in before.warnings)
        context.change(warnings=warned)
    if turn.profile != context.task.profile:
        context.warn("PROFILE_REDUCED")
    context.change(
        profile=turn.profile,
        status="running",
        started_at=state.started_at or datetime.now(UTC),
        ended_at=None,
    )
    return warned


async def _stored(context: TurnContext, result: TurnResult, error: GroundworkError | None) -> TurnResult:
    turn, is_over = context.turn, result.status != "go_on"
    status = result.status if result.status != "partial" or context.state.findings else "failed"
    context.change(
        status=status if is_over else "running",
        turns_ended=context.state.turns_ended if result.status == "failed" else turn.turn,
        ended_at=datetime.now(UTC) if is_over else None,
    )
    _log(context, result)
    events: tuple[RunEvent, ...] = ()
    if result.status == "failed":
        events = (context.end("failed", error_type=error.code if error else None),)
    elif is_over:
        events = (context.end("ended", status=context.state.status),)
    try:
        async with asyncio.timeout(max(context.remaining_s - _STORE_S, _STORE_S)):
            await context.complete(result, *events)
    except (TimeoutError, GroundworkError) as failed:
        if isinstance(failed, RunClosedError | StaleAttemptError):
            raise
        # The stored findings count, but the next turn needs the state of this one.
        if not is_over:
            return result.model_copy(update={"status": "failed", "retryable": True})
    return result


def _log(context: TurnContext, result: TurnResult) -> None:
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


def _warning_of(failed: GroundworkError) -> WarningCode:
    if isinstance(failed, SearchFailedError):
        return "TOOL_FAILED"
    return "REPORT_UNREADABLE" if isinstance(failed, ModelFixableError) else "MODEL_FAILED"
