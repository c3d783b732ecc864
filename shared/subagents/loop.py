"""The loop of one sub-agent as a reducer: turn after turn, until its report stands or its limits end it.

Pure: `next_move(state, now)` decides, `observe(state, result)` learns. A turn that failed is taken again
after a pause; then a smaller profile reports from what is there; then it is over. Nothing begins after the
deadline, and every path ends: turns count, attempts at a turn count.
"""

from datetime import datetime, timedelta

from shared.platform.models import Model
from shared.runs.models import ChildStatus
from shared.subagents.models import SubagentEnd, SubagentStart, TurnInput, TurnResult

CRASH_GRACE = timedelta(seconds=20)
"""How much of the time that it lost with a worker a sub-agent gets back. A worker is back within 2 to 8 s."""

CRASHED = TurnResult(status="failed", retryable=True, warnings=("CRASHED",))
"""A turn that ended without a result: a defect."""


class TakeTurn(Model):
    """Take this turn, after a pause of `delay_ms`."""

    turn: TurnInput
    delay_ms: int = 0


class ChildState(Model):
    """Where a sub-agent stands.

    Attributes:
        turn: the one to take, counted from 1.
        attempt: at this turn, counted from 0.
        place: of the profile in force among the start's profiles.
        closing: the report is due, whatever the number of the turn.
        result: of the newest turn that had one.
        status: of its end; None = it continues.
    """

    start: SubagentStart
    turn: int = 1
    attempt: int = 0
    place: int = 0
    closing: bool = False
    result: TurnResult = TurnResult(status="go_on")
    status: ChildStatus | None = None


def begin(start: SubagentStart) -> ChildState:
    """The state before the first turn."""
    if not start.profiles or start.max_turns < 1:
        return ChildState(start=start, status="failed")
    return ChildState(start=start)


def next_move(state: ChildState, now: datetime) -> TakeTurn | SubagentEnd:
    """What to do at the instant `now`; equal arguments give equal moves."""
    if state.status is not None:
        return _end(state, state.status)
    start = state.start
    is_retry = 0 < state.attempt <= start.retry_count
    delay_ms = start.retry_backoff_ms if is_retry else 0
    deadline = start.deadline + timedelta(seconds=state.result.lost_s)
    if now + timedelta(milliseconds=delay_ms) >= deadline:
        return _end(state, _status_of_what_is_there(state.result))
    turn = TurnInput(
        **start.place,
        turn=state.turn,
        attempt=state.attempt,
        profile=start.profiles[state.place],
        closing=state.closing or state.turn >= start.max_turns,
    )
    return TakeTurn(turn=turn, delay_ms=delay_ms)


def observe(state: ChildState, result: TurnResult) -> ChildState:
    """The state after a turn."""
    known = state.model_copy(update={"result": _added(state.result, result)})
    match result.status:
        case "done":
            return known.model_copy(update={"status": "done"})
        case "partial":
            return known.model_copy(update={"status": _status_of_what_is_there(known.result)})
        case "go_on" if state.turn < state.start.max_turns and not state.closing:
            return known.model_copy(update={"turn": state.turn + 1, "attempt": 0})
        case "go_on":  # a closing turn that did not close
            return known.model_copy(update={"status": _status_of_what_is_there(known.result)})
        case "failed":
            return _after_failure(known, result)


def _after_failure(state: ChildState, failed: TurnResult) -> ChildState:
    again = state.model_copy(update={"attempt": state.attempt + 1})
    if failed.retryable and state.attempt < state.start.retry_count:
        return again
    # From here on there is no more searching: the step that takes over reports from what is there.
    attempt = max(state.attempt, state.start.retry_count) + 1
    closing = again.model_copy(update={"attempt": attempt, "closing": True})
    if state.place + 1 < len(state.start.profiles):
        return closing.model_copy(update={"place": state.place + 1})
    if failed.retryable and not state.closing and state.turn < state.start.max_turns:
        return closing
    return state.model_copy(update={"status": _status_of_what_is_there(state.result)})


def _added(before: TurnResult, result: TurnResult) -> TurnResult:
    """What is known after a result; one that knows of no costs (a crash) takes none back."""
    return result.model_copy(
        update={
            "tokens": max(
                (tokens for tokens in (before.tokens, result.tokens) if tokens is not None), default=None
            ),
            "cost_usd": max(before.cost_usd, result.cost_usd),
            "findings": max(before.findings, result.findings),
            "lost_s": max(before.lost_s, result.lost_s),
        }
    )


def _status_of_what_is_there(result: TurnResult) -> ChildStatus:
    return "partial" if result.findings else "failed"


def _end(state: ChildState, status: ChildStatus) -> SubagentEnd:
    is_unfinished = state.result.status in ("go_on", "failed")
    return SubagentEnd(
        child_id=state.start.child_id,
        status=status,
        turns=state.turn - 1 if is_unfinished else state.turn,
        tokens=state.result.tokens,
        cost_usd=state.result.cost_usd,
    )
