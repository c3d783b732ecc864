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
from shared.subagents.child_events import open_events
from shared.subagents.models import (
    ChildTranscript,
    SubagentState,
    SubagentTask,
    TurnInput,
    TurnResult,
    WarningCode,
)
from shared.subagents.opening import open_task
from shared.subagents.passages import task_message
from shared.subagents.report_stream import write_report
from shared.subagents.services import SubagentServices
from shared.subagents.tools import ChildTools, Outcome
from shared.subagents.turn_context import Desk
from shared.tools.tool_calls import PlannedCall, plan_calls, signature

MAX_CALLS = 3  # of one turn: what the prompt says
_MAX_ARGUMENT_CHARS = 2_000  # longer ones are no search; they would be read again in every turn
_MAX_SAID_CHARS = 600  # of what a model says beside its calls


class SearchFailedError(DependencyError):
    """A search of a sub-agent failed, and may go better in a moment."""


async def look_further(desk: Desk) -> bool:
    """Let the model look for more. False when the report is due instead.

    Raises:
        SearchFailedError: a tool failed; what the others found is kept.
        DependencyError: the model could not be asked.
    """
    if not desk.transcript.planned and not await _plan(desk):
        return False
    await _carry_out(desk)
    return True


async def _plan(desk: Desk) -> bool:
    """Ask the model; whether it asked for calls that can be made."""
    turn = await _ask(desk)
    if turn is None:
        return False
    asked = [call for call in turn.tool_calls if len(call.arguments) <= _MAX_ARGUMENT_CHARS][:MAX_CALLS]
    planned = plan_calls(asked, desk.tools, desk.transcript.made, MAX_CALLS)
    for refused in planned:
        await _tell_refused(desk, refused)
    if not any(item.refused is None for item in planned) or not _result_room(desk):
        return False
    said = Message(role="assistant", text=turn.text[:_MAX_SAID_CHARS], tool_calls=tuple(asked))
    desk.transcript = desk.transcript.model_copy(
        update={"messages": (*desk.transcript.messages, said), "planned": planned, "results": ()}
    )
    await desk.keep_both()
    return True


async def _ask(desk: Desk) -> ModelTurn | None:
    """The model's turn; None when there is no room for one, or it brought nothing that could be read."""
    messages, tools = _messages(desk), ChildTools(desk).definitions
    prompt_tokens = tokens_of([*map(_text_of, messages), *(tool.model_dump_json() for tool in tools)])
    budget, spent, prices = desk.task.budget, desk.spent, desk.prices
    limit_s = work_limit_s(desk.remaining_s)
    if not tools or not limit_s:
        return None
    if not can_look_further(budget, spent, prompt_tokens, prompt_tokens, prices):
        return None
    allowed = allowed_work(budget, spent, prompt_tokens, prompt_tokens, prices)
    limits = CallLimits(timeout_s=limit_s, max_retries=0, max_output_tokens=allowed.output_tokens)
    try:
        turn = await desk.services.chat_model.converse(messages, tools, limits)
    except (CallTimeoutError, ModelFixableError):
        # It was paid for, as far as anybody knows; there is still the report.
        desk.book(ModelUsage(input_tokens=prompt_tokens, output_tokens=0))
        desk.warn("MODEL_FAILED")
        return None
    written = tokens_of([turn.text, *(call.arguments for call in turn.tool_calls)])
    desk.book(turn.usage or _estimated(turn, prompt_tokens, written))
    return turn


def _estimated(turn: ModelTurn, prompt_tokens: int, written: int) -> ModelUsage:
    if turn.tokens is None:
        return ModelUsage(input_tokens=prompt_tokens, output_tokens=written)
    return ModelUsage(input_tokens=max(turn.tokens - written, 0), output_tokens=min(written, turn.tokens))


async def _carry_out(desk: Desk) -> None:
    """Make the calls that have no result yet."""
    done = {message.call_id for message in desk.transcript.results}
    missing = [item for item in desk.transcript.planned if item.call.call_id not in done]
    tools = ChildTools(desk, _result_room(desk), len(missing))
    outcomes = await run_together(*(_call(desk, tools, item) for item in missing))
    for item, outcome in zip(missing, outcomes, strict=True):
        _note(desk, item, outcome)
    has_failed = any(outcome.may_pass for outcome in outcomes)
    if not has_failed:
        _fold(desk)
    await desk.keep_both()
    if has_failed:
        raise SearchFailedError("A search of a sub-agent failed.")


async def _call(desk: Desk, tools: ChildTools, item: PlannedCall) -> Outcome:
    if item.arguments is not None:
        await desk.events.tool_started(item.call.name, item.arguments)
    outcome = await tools.call(item)
    if outcome.use is not None and item.refused is None:
        await desk.events.tool_ended(outcome.use)
    return outcome


def _note(desk: Desk, item: PlannedCall, outcome: Outcome) -> None:
    found = outcome.found
    desk.add(found.hits, found.records)
    if outcome.use is not None and item.refused is None:
        desk.change(tool_uses=(*desk.state.tool_uses, outcome.use))
        if not outcome.use.success and outcome.use.error_type == CallTimeoutError.code:
            desk.warn("TOOL_FAILED")
    if outcome.may_pass:
        return
    known = {page.url for page in desk.transcript.pages}
    pages = [page for page in found.pages if page.url not in known]
    result = Message(role="tool", text=found.text, call_id=item.call.call_id)
    desk.transcript = desk.transcript.model_copy(
        update={
            "results": (*desk.transcript.results, result),
            "pages": (*desk.transcript.pages, *pages),
        }
    )


def _fold(desk: Desk) -> None:
    """All results are there: they become part of the conversation, in the order of their calls."""
    transcript = desk.transcript
    by_call = {message.call_id: message for message in transcript.results}
    made = [
        signature(item.call.name, item.arguments) for item in transcript.planned if item.arguments is not None
    ]
    desk.transcript = transcript.model_copy(
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


async def _tell_refused(desk: Desk, item: PlannedCall) -> None:
    """A refused call is seen by readers, too, unless it is for a tool that there is not."""
    if item.refused is None:
        return
    use = (await ChildTools(desk).call(item)).use
    if use is not None:
        desk.change(tool_uses=(*desk.state.tool_uses, use))
        await desk.events.tool_ended(use)


def _messages(desk: Desk) -> Sequence[Message]:
    opening = desk.state.hits[: desk.transcript.opening_count]
    task = task_message(desk.task.question, desk.targets, opening, desk.records, then="work")
    return (
        Message(role="system", text=desk.system),
        Message(role="user", text=task),
        *desk.transcript.messages,
    )


def _text_of(message: Message) -> str:
    return message.text + "".join(call.name + call.arguments for call in message.tool_calls)


def _result_room(desk: Desk) -> int:
    report_tokens = tokens_of(map(_text_of, _messages(desk)))
    return result_tokens(desk.task.budget, desk.spent, report_tokens)


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
        desk = await _desk(turn, services, (store, state or _beginning(turn)))
    except (RunClosedError, NotFoundError):
        return _STOPPED
    except GroundworkError as failed:
        get_logger().warning("sub_agent.not_begun", run_id=turn.run_id, error_type=failed.code)
        return TurnResult(status="failed", retryable=failed.retryable, warnings=("TOOL_FAILED",))
    return await _Turn(desk).take()


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


async def _desk(
    turn: TurnInput, services: SubagentServices, stored: tuple[ChildStore, SubagentState]
) -> Desk:
    """What the turn works at. RunClosedError, NotFoundError: the run has ended, or was erased."""
    delegation = await find_delegation(services.blobs, turn.run_id, turn.step)
    task = _task(delegation.tasks if delegation else (), turn)
    request = await WorkingMemory(services.blobs, turn.run_id).request()
    if delegation is not None:
        request = request.with_rights_of(delegation.asker)
    desk = Desk(services, turn, task, request, stored)
    desk.events = await open_events(services.run_log, turn)
    return desk


def _task(tasks: tuple[SubagentTask, ...], turn: TurnInput) -> SubagentTask:
    for task in tasks:
        if task.child_id == turn.child_id:
            return task
    raise NotFoundError("There is no such task.")


class _Turn:
    """One attempt at one turn."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._turn = desk.turn
        self._warned = desk.state.warnings
        self._is_first = desk.state.started_at is None

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
        await control.begin(self._desk.services.subagent_control, self._turn.child_id)

    def _note_attempt(self) -> None:
        desk, state = self._desk, self._desk.state
        before = state.last_result
        if self._turn.attempt and (before is None or before.status != "failed"):
            desk.warn("CRASHED")
        elif self._turn.attempt and before and self._turn.profile == state.profile and not self._turn.closing:
            # What a repetition mends is not worth a word; if it does not, this is said again.
            desk.change(warnings=tuple(code for code in state.warnings if code not in before.warnings))
            self._warned = desk.state.warnings
        if self._turn.profile != desk.task.profile:
            desk.warn("PROFILE_REDUCED")
        desk.change(
            profile=self._turn.profile,
            status="running",
            started_at=state.started_at or datetime.now(UTC),
            ended_at=None,
        )

    async def _ended_in_time(self) -> _Ending:
        try:
            async with asyncio.timeout(max(self._desk.remaining_s - MARGIN_S, 0.0)):
                return _Ending(await self._work())
        except TimeoutError:
            self._desk.warn("TIME_OUT")
            return _Ending("partial")
        except (RunClosedError, StaleAttemptError):
            raise
        except GroundworkError as failed:
            self._desk.warn(_warning_of(failed))
            return _Ending("failed", failed)

    async def _work(self) -> Status:
        desk = self._desk
        if self._is_first:
            await desk.events.phase("started", desk.state)
        await desk.events.phase("turn", desk.state)
        stored = await desk.store.transcript()
        if stored is None:
            await self._open()
        else:
            desk.transcript = stored
        may_look = not self._turn.closing and not desk.transcript.is_covered
        if may_look and await look_further(desk):
            return "go_on"
        ending = await write_report(desk)
        if ending == "done" and self._was_still_looking() and _is_open(desk):
            desk.warn("TURNS_SPENT")
        return ending

    def _was_still_looking(self) -> bool:
        """Whether only the number of turns ended the search, of a profile that is not done by it."""
        is_last = self._turn.turn >= self._desk.task.budget.max_child_turns
        stops_so = "max_turns" in self._desk.profile.stops_when
        return is_last and not stops_so and bool(self._desk.transcript.messages)

    async def _open(self) -> None:
        desk = self._desk
        desk.transcript = ChildTranscript()
        try:
            await open_task(desk)
        except GroundworkError as failed:
            raise _OpeningFailedError(failed) from None
        await desk.keep_both()

    def _result(self, ending: _Ending) -> TurnResult:
        state = self._desk.state
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
        desk, turn = self._desk, self._turn
        is_over = ending.status != "go_on"
        status = ending.status if ending.status != "partial" or desk.state.findings else "failed"
        desk.change(
            status=status if is_over else "running",
            turns_ended=desk.state.turns_ended if ending.status == "failed" else turn.turn,
            last_result=result,
            last_attempt=turn.attempt,
            ended_at=datetime.now(UTC) if is_over else None,
        )
        self._log(result)
        try:
            async with asyncio.timeout(max(desk.remaining_s - _STORE_S, _STORE_S)):
                await desk.keep()
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
        while self._desk.remaining_s > _STORE_S:
            await asyncio.sleep(_OTHER_POLL_S)
            with suppress(GroundworkError):
                state = await self._desk.store.state()
                if state is None:
                    return _STOPPED  # it was written before: the run was erased, and nobody writes it again
                known = _known_result(state, self._turn)
                if known is not None:
                    return known
        return _STOPPED

    async def _tell(self, ending: _Ending) -> None:
        desk = self._desk
        if ending.status == "failed":
            code = ending.error.code if ending.error else None
            await desk.events.phase("failed", desk.state, error_type=code)
        elif ending.status != "go_on":
            await desk.events.phase("ended", desk.state, status=desk.state.status)

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


def _is_open(desk: Desk) -> bool:
    """Whether the report itself says that something was not found. Notes on sources say no such thing."""
    says_so = bool(desk.state.uncertainty) and "trust_notes" not in desk.profile.artifacts
    return says_so or any(not finding.proofs for finding in desk.state.findings)


def _warning_of(failed: GroundworkError) -> WarningCode:
    readings: tuple[tuple[type[GroundworkError], WarningCode], ...] = (
        (SearchFailedError, "TOOL_FAILED"),
        (ModelFixableError, "REPORT_UNREADABLE"),
    )
    return next((code for kind, code in readings if isinstance(failed, kind)), "MODEL_FAILED")
