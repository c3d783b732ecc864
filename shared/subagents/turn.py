"""One turn of a sub-agent: look further, or report. It ends before the deadline, whatever the model does.

A turn whose result is stored is not taken again; of two attempts at once the first to store counts, and the
other one gives its result. A run that has ended ends its sub-agents at their next turn,
or the next time they tell of themselves. Expected failures are results; only defects are raised.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from shared.platform.concurrency import run_together
from shared.platform.errors import (
    CallTimeoutError,
    DependencyError,
    GroundworkError,
    ModelFixableError,
    NotFoundError,
)
from shared.platform.language_models.models import CallLimits, Message, ModelTurn, ModelUsage
from shared.platform.telemetry import get_logger
from shared.runs.event_log import RunClosedError, StaleAttemptError
from shared.runs.working_memory import WorkingMemory
from shared.subagents import control
from shared.subagents.artifacts import ChildStore, find_delegation
from shared.subagents.budget import (
    MARGIN_S,
    allowed_work,
    can_look_further,
    result_tokens,
    tokens_of,
    work_limit_s,
)
from shared.subagents.initial_retrieval import open_task
from shared.subagents.models import (
    ChildTranscript,
    SubagentState,
    SubagentTask,
    TurnInput,
    TurnResult,
    WarningCode,
)
from shared.subagents.passages import task_message
from shared.subagents.report_stream import write_report
from shared.subagents.services import SubagentServices
from shared.subagents.tools import ChildTools, Outcome
from shared.subagents.turn_context import TurnContext, open_events
from shared.tools.tool_calls import PlannedCall, plan_calls, signature

MAX_CALLS = 3  # of one turn: what the prompt says
_MAX_ARGUMENT_CHARS = 2_000  # longer ones are no search; they would be read again in every turn
_MAX_SAID_CHARS = 600  # of what a model says beside its calls


class SearchFailedError(DependencyError):
    """A search of a sub-agent failed, and may go better in a moment."""


async def look_further(context: TurnContext) -> bool:
    """Let the model look for more. False when the report is due instead.

    Raises:
        SearchFailedError: a tool failed; what the others found is kept.
        DependencyError: the model could not be asked.
    """
    if not context.transcript.planned and not await _plan(context):
        return False
    await _carry_out(context)
    return True


async def _plan(context: TurnContext) -> bool:
    """Ask the model; whether it asked for calls that can be made."""
    turn = await _ask(context)
    if turn is None:
        return False
    asked = [call for call in turn.tool_calls if len(call.arguments) <= _MAX_ARGUMENT_CHARS][:MAX_CALLS]
    planned = plan_calls(asked, context.tools, context.transcript.made, MAX_CALLS)
    for refused in planned:
        await _tell_refused(context, refused)
    if not any(item.refused is None for item in planned) or not _result_room(context):
        return False
    said = Message(role="assistant", text=turn.text[:_MAX_SAID_CHARS], tool_calls=tuple(asked))
    context.transcript = context.transcript.model_copy(
        update={"messages": (*context.transcript.messages, said), "planned": planned, "results": ()}
    )
    await context.keep_both()
    return True


async def _ask(context: TurnContext) -> ModelTurn | None:
    """The model's turn; None when there is no room for one, or it brought nothing that could be read."""
    messages, tools = _messages(context), ChildTools(context).definitions
    prompt_tokens = tokens_of([*map(_text_of, messages), *(tool.model_dump_json() for tool in tools)])
    budget, spent, prices = context.task.budget, context.spent, context.prices
    limit_s = work_limit_s(context.remaining_s)
    if not tools or not limit_s:
        return None
    if not can_look_further(budget, spent, prompt_tokens, prompt_tokens, prices):
        return None
    allowed = allowed_work(budget, spent, prompt_tokens, prompt_tokens, prices)
    limits = CallLimits(timeout_s=limit_s, max_retries=0, max_output_tokens=allowed.output_tokens)
    try:
        turn = await context.services.chat_model.converse(messages, tools, limits)
    except (CallTimeoutError, ModelFixableError):
        # It was paid for, as far as anybody knows; there is still the report.
        context.book(ModelUsage(input_tokens=prompt_tokens, output_tokens=0))
        context.warn("MODEL_FAILED")
        return None
    written = tokens_of([turn.text, *(call.arguments for call in turn.tool_calls)])
    context.book(turn.usage or _estimated(turn, prompt_tokens, written))
    return turn


def _estimated(turn: ModelTurn, prompt_tokens: int, written: int) -> ModelUsage:
    if turn.tokens is None:
        return ModelUsage(input_tokens=prompt_tokens, output_tokens=written)
    return ModelUsage(input_tokens=max(turn.tokens - written, 0), output_tokens=min(written, turn.tokens))


async def _carry_out(context: TurnContext) -> None:
    """Make the calls that have no result yet."""
    done = {message.call_id for message in context.transcript.results}
    missing = [item for item in context.transcript.planned if item.call.call_id not in done]
    tools = ChildTools(context, _result_room(context), len(missing))
    outcomes = await run_together(*(_call(context, tools, item) for item in missing))
    for item, outcome in zip(missing, outcomes, strict=True):
        _note(context, item, outcome)
    has_failed = any(outcome.may_pass for outcome in outcomes)
    if not has_failed:
        _fold(context)
    await context.keep_both()
    if has_failed:
        raise SearchFailedError("A search of a sub-agent failed.")


async def _call(context: TurnContext, tools: ChildTools, item: PlannedCall) -> Outcome:
    if item.arguments is not None:
        await context.events.tool_started(item.call.name, item.arguments)
    outcome = await tools.call(item)
    if outcome.use is not None and item.refused is None:
        await context.events.tool_ended(outcome.use)
    return outcome


def _note(context: TurnContext, item: PlannedCall, outcome: Outcome) -> None:
    found = outcome.found
    context.add(found.hits, found.records)
    if outcome.use is not None and item.refused is None:
        context.change(tool_uses=(*context.state.tool_uses, outcome.use))
        if not outcome.use.success and outcome.use.error_type == CallTimeoutError.code:
            context.warn("TOOL_FAILED")
    if outcome.may_pass:
        return
    known = {page.url for page in context.transcript.pages}
    pages = [page for page in found.pages if page.url not in known]
    result = Message(role="tool", text=found.text, call_id=item.call.call_id)
    context.transcript = context.transcript.model_copy(
        update={
            "results": (*context.transcript.results, result),
            "pages": (*context.transcript.pages, *pages),
        }
    )


def _fold(context: TurnContext) -> None:
    """All results are there: they become part of the conversation, in the order of their calls."""
    transcript = context.transcript
    by_call = {message.call_id: message for message in transcript.results}
    made = [
        signature(item.call.name, item.arguments) for item in transcript.planned if item.arguments is not None
    ]
    context.transcript = transcript.model_copy(
        update={
            "messages": (
                *transcript.messages,
                *(by_call[item.call.call_id] for item in transcript.planned),
            ),
            "made": (*transcript.made, *made),
            "planned": (),
            "results": (),
        }
    )


async def _tell_refused(context: TurnContext, item: PlannedCall) -> None:
    """A refused call is seen by readers, too, unless it is for a tool that there is not."""
    if item.refused is None:
        return
    use = (await ChildTools(context).call(item)).use
    if use is not None:
        context.change(tool_uses=(*context.state.tool_uses, use))
        await context.events.tool_ended(use)


def _messages(context: TurnContext) -> Sequence[Message]:
    opening = context.state.hits[: context.transcript.opening_count]
    task = task_message(context.task.question, context.targets, opening, context.records, then="work")
    return (
        Message(role="system", text=context.system),
        Message(role="user", text=task),
        *context.transcript.messages,
    )


def _text_of(message: Message) -> str:
    return message.text + "".join(call.name + call.arguments for call in message.tool_calls)


def _result_room(context: TurnContext) -> int:
    report_tokens = tokens_of(map(_text_of, _messages(context)))
    return result_tokens(context.task.budget, context.spent, report_tokens)


_STORE_S = MARGIN_S / 2  # of the margin; the rest is for the parent to hear of the end
_BOOK_S = 0.1  # a turn that was over at once waits so long for the note that it began
_OTHER_POLL_S = 0.2
_STOPPED = TurnResult(status="partial")
"""The run has ended, or the time is over: nobody waits for this sub-agent any more."""

Status = Literal["go_on", "done", "partial", "failed"]


@dataclass(frozen=True)
class _Ending:
    """How a turn ended."""

    status: Status
    error: GroundworkError | None = None


async def take_turn(turn: TurnInput, services: SubagentServices) -> TurnResult:
    """Take a turn, or give the result of one that was taken already."""
    store = ChildStore(services.blobs, turn)
    try:
        state = await store.state()
        known = _known_result(state, turn)
        if known is not None:
            return known
        context = await _turn_context(turn, services, (store, state or _beginning(turn)))
    except (RunClosedError, NotFoundError):
        return _STOPPED
    except GroundworkError as failed:
        get_logger().warning("sub_agent.not_begun", run_id=turn.run_id, error_type=failed.code)
        return TurnResult(status="failed", retryable=failed.retryable, warnings=("TOOL_FAILED",))
    return await _Turn(context).take()


def _known_result(state: SubagentState | None, turn: TurnInput) -> TurnResult | None:
    """What this very attempt, or a later one, brought; None when it has not come to its end."""
    if state is None or state.last_result is None:
        return None
    if state.turns_ended >= turn.turn:
        return state.last_result
    is_ours = state.turns_ended == turn.turn - 1 and state.last_result.status == "failed"
    return state.last_result if is_ours and state.last_attempt >= turn.attempt else None


def _beginning(turn: TurnInput) -> SubagentState:
    return SubagentState(child_id=turn.child_id, profile=turn.profile)


async def _turn_context(
    turn: TurnInput, services: SubagentServices, stored: tuple[ChildStore, SubagentState]
) -> TurnContext:
    """What the turn works at. RunClosedError, NotFoundError: the run has ended, or was erased."""
    delegation = await find_delegation(services.blobs, turn.run_id, turn.step)
    task = _task(delegation.tasks if delegation else (), turn)
    request = await WorkingMemory(services.blobs, turn.run_id).request()
    if delegation is not None:
        request = request.with_rights_of(delegation.asker)
    context = TurnContext(services, turn, task, request, stored)
    context.events = await open_events(services.run_log, turn)
    return context


def _task(tasks: tuple[SubagentTask, ...], turn: TurnInput) -> SubagentTask:
    for task in tasks:
        if task.child_id == turn.child_id:
            return task
    raise NotFoundError("There is no such task.")


class _Turn:
    """One attempt at one turn."""

    def __init__(self, context: TurnContext) -> None:
        self._context = context
        self._turn = context.turn
        self._warned = context.state.warnings
        self._is_first = context.state.started_at is None

    async def take(self) -> TurnResult:
        beginning = asyncio.create_task(self._begin()) if self._is_first else None
        self._note_attempt()
        try:
            ending = await self._ended_in_time()
            result = self._result(ending)
            return await self._stored(ending, result)
        except RunClosedError:
            return _STOPPED
        except StaleAttemptError:
            return await self._result_of_other()
        finally:
            if beginning is not None:
                await asyncio.wait([beginning], timeout=_BOOK_S)
                beginning.cancel()

    async def _begin(self) -> None:
        await control.begin(self._context.services.subagent_control, self._turn.child_id)

    def _note_attempt(self) -> None:
        context, state = self._context, self._context.state
        before = state.last_result
        if self._turn.attempt and (before is None or before.status != "failed"):
            context.warn("CRASHED")
        elif self._turn.attempt and before and self._turn.profile == state.profile and not self._turn.closing:
            # What a repetition mends is not worth a word; if it does not, this is said again.
            context.change(warnings=tuple(code for code in state.warnings if code not in before.warnings))
            self._warned = context.state.warnings
        if self._turn.profile != context.task.profile:
            context.warn("PROFILE_REDUCED")
        context.change(
            profile=self._turn.profile,
            status="running",
            started_at=state.started_at or datetime.now(UTC),
            ended_at=None,
        )

    async def _ended_in_time(self) -> _Ending:
        try:
            async with asyncio.timeout(max(self._context.remaining_s - MARGIN_S, 0.0)):
                return _Ending(await self._work())
        except TimeoutError:
            self._context.warn("TIME_OUT")
            return _Ending("partial")
        except (RunClosedError, StaleAttemptError):
            raise
        except GroundworkError as failed:
            self._context.warn(_warning_of(failed))
            return _Ending("failed", failed)

    async def _work(self) -> Status:
        context = self._context
        if self._is_first:
            await context.events.phase("started", context.state)
        await context.events.phase("turn", context.state)
        stored = await context.store.transcript()
        if stored is None:
            await self._open()
        else:
            context.transcript = stored
        may_look = not self._turn.closing and not context.transcript.is_covered
        if may_look and await look_further(context):
            return "go_on"
        ending = await write_report(context)
        if ending == "done" and self._was_still_looking() and _is_open(context):
            context.warn("TURNS_SPENT")
        return ending

    def _was_still_looking(self) -> bool:
        """Whether only the number of turns ended the search, of a profile that is not done by it."""
        is_last = self._turn.turn >= self._context.task.budget.max_child_turns
        stops_so = "max_turns" in self._context.profile.stops_when
        return is_last and not stops_so and bool(self._context.transcript.messages)

    async def _open(self) -> None:
        context = self._context
        context.transcript = ChildTranscript()
        try:
            await open_task(context)
        except GroundworkError as failed:
            raise _OpeningFailedError(failed) from None
        await context.keep_both()

    def _result(self, ending: _Ending) -> TurnResult:
        state = self._context.state
        error = ending.error
        return TurnResult(
            status=ending.status,
            # What took too long once would take its whole time again.
            retryable=error is not None and error.retryable and not isinstance(error, CallTimeoutError),
            warnings=tuple(code for code in state.warnings if code not in self._warned),
            tokens=state.tokens,
            cost_usd=round(state.cost_usd, 8),
            findings=len(state.findings),
        )

    async def _stored(self, ending: _Ending, result: TurnResult) -> TurnResult:
        context, turn = self._context, self._turn
        is_over = ending.status != "go_on"
        status = ending.status if ending.status != "partial" or context.state.findings else "failed"
        context.change(
            status=status if is_over else "running",
            turns_ended=context.state.turns_ended if ending.status == "failed" else turn.turn,
            last_result=result,
            last_attempt=turn.attempt,
            ended_at=datetime.now(UTC) if is_over else None,
        )
        self._log(result)
        try:
            async with asyncio.timeout(max(context.remaining_s - _STORE_S, _STORE_S)):
                await context.keep()
                await self._tell(ending)
        except (TimeoutError, GroundworkError) as failed:
            if isinstance(failed, RunClosedError | StaleAttemptError):
                raise
            # The report stands as far as it was stored; the next turn needs what this one found.
            if not is_over:
                return result.model_copy(update={"status": "failed", "retryable": True})
        return result

    async def _result_of_other(self) -> TurnResult:
        """What the attempt brings that was quicker: it is waited for as long as it may take."""
        while self._context.remaining_s > _STORE_S:
            await asyncio.sleep(_OTHER_POLL_S)
            with suppress(GroundworkError):
                state = await self._context.store.state()
                if state is None:
                    return _STOPPED  # it was written before: the run was erased, and nobody writes it again
                known = _known_result(state, self._turn)
                if known is not None:
                    return known
        return _STOPPED

    async def _tell(self, ending: _Ending) -> None:
        context = self._context
        if ending.status == "failed":
            code = ending.error.code if ending.error else None
            await context.events.phase("failed", context.state, error_type=code)
        elif ending.status != "go_on":
            await context.events.phase("ended", context.state, status=context.state.status)

    def _log(self, result: TurnResult) -> None:
        get_logger().info(
            "sub_agent.turn",
            run_id=self._turn.run_id,
            child=self._turn.index,
            profile=self._turn.profile,
            turn=self._turn.turn,
            attempt=self._turn.attempt,
            status=result.status,
            tokens=result.tokens,
            findings=result.findings,
            warnings=list(result.warnings),
        )


class _OpeningFailedError(SearchFailedError):
    """The first passages could not be looked for."""

    def __init__(self, failed: GroundworkError) -> None:
        super().__init__(failed.detail)
        self.retryable = failed.retryable and not isinstance(failed, CallTimeoutError)
        self.code = failed.code


def _is_open(context: TurnContext) -> bool:
    """Whether the report itself says that something was not found. Notes on sources say no such thing."""
    says_so = bool(context.state.uncertainty) and "trust_notes" not in context.profile.artifacts
    return says_so or any(not finding.proofs for finding in context.state.findings)


def _warning_of(failed: GroundworkError) -> WarningCode:
    readings: tuple[tuple[type[GroundworkError], WarningCode], ...] = (
        (SearchFailedError, "TOOL_FAILED"),
        (ModelFixableError, "REPORT_UNREADABLE"),
    )
    return next((code for kind, code in readings if isinstance(failed, kind)), "MODEL_FAILED")
