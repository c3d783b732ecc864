"""Slots and circuit breaker of sub-agents, shared by all instances: read, decide (core), compare-and-swap.

Whoever loses the race for the row reads it again after a jittered wait, within a limit of tries and of time.
What an answer needs to know (`read_control`, `grant`) raises when the store fails, and the policy then starts
no sub-agent; what only books (`begin`, `settle`) never does: a slot that is not given back expires.
"""

# For annotations alone: the start of the app need not build every model.
from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, Protocol, TypeVar
from weakref import WeakKeyDictionary

from pydantic import Field

from shared.platform.errors import CallTimeoutError, ConflictError, DependencyError, GroundworkError
from shared.platform.models import Model
from shared.platform.settings import Settings
from shared.platform.telemetry import get_logger
from shared.runs.models import ChildStatus

Count = Annotated[int, Field(ge=0)]
Circuit = Literal["closed", "open", "half_open"]


class Lease(Model):
    """A slot that one sub-agent holds until it is settled, at the longest until it expires.

    Attributes:
        begun: it is at work; until then it waits for its first turn.
        is_probe: it was let through a paused circuit, to see whether sub-agents work again.
    """

    child_id: str
    expires_at: datetime
    begun: bool = False
    is_probe: bool = False


class ControlState(Model):
    """The row.

    Attributes:
        outcomes: of the newest sub-agents since the circuit was last closed, oldest first; True = it worked.
        opened_at: since when the circuit is open; None = closed.
        revision: the store's; None = there is no row yet.
    """

    leases: tuple[Lease, ...] = ()
    outcomes: tuple[bool, ...] = ()
    opened_at: datetime | None = None
    revision: str | None = None


class ControlRules(Model):
    """Limits, from the settings of the same names.

    Attributes:
        failure_share: from this share of failures on the circuit opens, over `window` outcomes at most.
        cooldown_s: how long it is open before one sub-agent is tried.
        max_active: slots.
    """

    failure_share: float
    window: int
    cooldown_s: float
    max_active: int


class ControlView(Model):
    """What the policy is told.

    Attributes:
        circuit_closed: sub-agents may be started; also after the pause, for the one that is tried.
        active, waiting: slots whose sub-agent has begun, and those whose has not.
        free: how many more may be granted now: at most 1 while the circuit is tried.
    """

    circuit_closed: bool
    active: Count
    waiting: Count
    free: Count


class ControlReport(Model):
    """What an operator is told.

    Attributes:
        circuit: `open` = paused; `half_open` = one is tried, or the next one will be.
        outcomes, failures: of the window.
    """

    circuit: Circuit
    opened_at: datetime | None
    outcomes: Count
    failures: Count
    active: Count
    waiting: Count
    max_active: Count


# Behind a sub-agent's deadline: its parent is called then, if need be by a host that was just started anew.
LEASE_GRACE = timedelta(seconds=30)

# The circuit does not open on fewer outcomes. When each tenth fails by chance, 1 in 80 windows of ten has the
# four failures that the contract's threshold asks for; of five, 1 in 12 would have two.
MIN_OUTCOMES = 10


class Task(Protocol):
    """What a slot is taken for."""

    @property
    def child_id(self) -> str: ...
    @property
    def deadline(self) -> datetime: ...


class Ended(Protocol):
    """A sub-agent that came to its end."""

    @property
    def child_id(self) -> str: ...
    @property
    def status(self) -> ChildStatus: ...


def succeeded(status: ChildStatus) -> bool:
    """Whether an end counts as a success for the circuit breaker.

    `partial` does: it has something to show, and its budget (of time, tokens, money or turns) worked as it is
    meant to. `failed` brought nothing, `late` did not even end; one still said to be `running` was given up.
    """
    return status in ("done", "partial")


def phase(state: ControlState, rules: ControlRules, now: datetime) -> Circuit:
    """Where the circuit breaker is."""
    if state.opened_at is None:
        return "closed"
    paused_until = state.opened_at + timedelta(seconds=rules.cooldown_s)
    return "open" if now < paused_until else "half_open"


def view(state: ControlState, rules: ControlRules, now: datetime) -> ControlView:
    """What the policy is told."""
    alive = _alive(state.leases, now)
    begun = sum(lease.begun for lease in alive)
    return ControlView(
        circuit_closed=not _is_shut(state, alive, rules, now),
        active=begun,
        waiting=len(alive) - begun,
        free=_free(state, alive, rules, now),
    )


def report(state: ControlState, rules: ControlRules, now: datetime) -> ControlReport:
    """What an operator is told."""
    seen = view(state, rules, now)
    return ControlReport(
        circuit=phase(state, rules, now),
        opened_at=state.opened_at,
        outcomes=len(state.outcomes),
        failures=state.outcomes.count(False),
        active=seen.active,
        waiting=seen.waiting,
        max_active=rules.max_active,
    )


def granted(
    state: ControlState, tasks: Sequence[Task], rules: ControlRules, now: datetime
) -> ControlState | None:
    """The state with a slot for each task, all or none; None = they may not be started now.

    Tasks that have a slot keep it, so asking again takes no more.
    """
    alive = _alive(state.leases, now)
    held = {lease.child_id for lease in alive}
    new = [task for task in tasks if task.child_id not in held]
    is_probe = state.opened_at is not None
    if not new:
        return state
    if len(new) > _free(state, alive, rules, now):
        return None
    leases = tuple(
        Lease(child_id=task.child_id, expires_at=task.deadline + LEASE_GRACE, is_probe=is_probe)
        for task in new
    )
    return state.model_copy(update={"leases": (*alive, *leases)})


def begun(state: ControlState, child_id: str) -> ControlState:
    """The state with that sub-agent at work; unchanged when it has no slot (any more), or is known to be."""
    if not any(lease.child_id == child_id and not lease.begun for lease in state.leases):
        return state
    leases = tuple(
        lease.model_copy(update={"begun": True}) if lease.child_id == child_id else lease
        for lease in state.leases
    )
    return state.model_copy(update={"leases": leases})


def settled(state: ControlState, ends: Iterable[Ended], rules: ControlRules, now: datetime) -> ControlState:
    """The state with their slots free and their outcomes counted.

    An end counts once, with its slot: settling again changes nothing. While the circuit is not closed only
    the outcome of the one that tries it counts; the others tell of the time before.
    """
    for end in ends:
        lease = next((lease for lease in state.leases if lease.child_id == end.child_id), None)
        if lease is not None:
            leases = tuple(other for other in state.leases if other is not lease)
            freed = state.model_copy(update={"leases": leases})
            state = _counted(freed, lease, succeeded(end.status), rules, now)
    return state


def released(state: ControlState, child_ids: Iterable[str]) -> ControlState:
    """The state with their slots free and nothing counted: cancelled ones neither failed nor worked."""
    gone = set(child_ids)
    leases = tuple(lease for lease in state.leases if lease.child_id not in gone)
    return state if leases == state.leases else state.model_copy(update={"leases": leases})


def _counted(
    state: ControlState, lease: Lease, success: bool, rules: ControlRules, now: datetime
) -> ControlState:
    if state.opened_at is not None:
        if not lease.is_probe:
            return state
        closed_again = {"opened_at": None, "outcomes": ()}
        return state.model_copy(update=closed_again if success else {"opened_at": now})
    outcomes = (*state.outcomes, success)[-rules.window :]
    opens = _is_too_bad(outcomes, rules)
    return state.model_copy(update={"outcomes": outcomes, "opened_at": now if opens else None})


def _is_too_bad(outcomes: Sequence[bool], rules: ControlRules) -> bool:
    if len(outcomes) < min(MIN_OUTCOMES, rules.window):
        return False
    return outcomes.count(False) / len(outcomes) >= rules.failure_share


def _is_shut(state: ControlState, alive: Sequence[Lease], rules: ControlRules, now: datetime) -> bool:
    """Whether the circuit lets nobody through: it is open, or being tried."""
    match phase(state, rules, now):
        case "closed":
            return False
        case "open":
            return True
        case "half_open":
            return any(lease.is_probe for lease in alive)


def _free(state: ControlState, alive: Sequence[Lease], rules: ControlRules, now: datetime) -> int:
    if _is_shut(state, alive, rules, now):
        return 0
    slots = max(0, rules.max_active - len(alive))
    return slots if state.opened_at is None else min(slots, 1)


def _alive(leases: Sequence[Lease], now: datetime) -> tuple[Lease, ...]:
    return tuple(lease for lease in leases if now < lease.expires_at)


class ControlStore(Protocol):
    """The one row that all instances share about sub-agents at work."""

    async def read(self) -> ControlState:
        """The state with its revision; an empty one without revision when there is none yet."""

    async def write(self, state: ControlState) -> ControlState:
        """The state as stored. ConflictError when it changed since `state.revision` was read."""


_MAX_TRIES = 12  # 40 instances that write at the same moment need 6 on average, and 1.5 s on two busy cores
_FIRST_WAIT_S = 0.01
_MAX_WAIT_S = 0.2
_ASK_LIMIT_S = 2.0  # an answer waits for it: rather no sub-agent than a long wait
_BOOK_LIMIT_S = 10.0  # beside other work; longer, since a slot that is not given back is lost for a while
Result = TypeVar("Result")
_turns: WeakKeyDictionary[ControlStore, asyncio.Lock] = WeakKeyDictionary()
Change = Callable[[ControlState], ControlState | None]


def control_rules(settings: Settings) -> ControlRules:
    """The limits, as this deployment sets them."""
    return ControlRules(
        failure_share=settings.subagents.circuit_breaker_failure_rate_threshold,
        window=settings.subagents.circuit_breaker_window_requests,
        cooldown_s=settings.subagents.circuit_breaker_cooldown_seconds,
        max_active=settings.subagents.max_active,
    )


async def read_control(settings: Settings, subagent_control: ControlStore) -> ControlView:
    """How busy sub-agents are, and whether any may start. GroundworkError when the store fails or is slow."""
    rules = control_rules(settings)
    state = await _within(_ASK_LIMIT_S, subagent_control.read())
    return view(state, rules, datetime.now(UTC))


async def report_control(settings: Settings, subagent_control: ControlStore) -> ControlReport:
    """The same for an operator."""
    rules = control_rules(settings)
    state = await _within(_ASK_LIMIT_S, subagent_control.read())
    return report(state, rules, datetime.now(UTC))


async def grant(
    settings: Settings, subagent_control: ControlStore, tasks: Sequence[Task], now: datetime
) -> bool:
    """Take a slot for each task, all or none; False when the limit is reached, or the circuit open, by now.

    At most `ControlView.free` tasks can be granted. Asking again for the same tasks takes no more slots.

    Raises:
        GroundworkError: the store failed, or too many wrote at the same time.
    """
    rules = control_rules(settings)
    return await _changed(subagent_control, lambda state: granted(state, tasks, rules, now), _ASK_LIMIT_S)


async def begin(subagent_control: ControlStore, child_id: str) -> None:
    """Note that this sub-agent is at work, and waits no more. Never raises; may run beside its work."""
    await _booked(subagent_control, lambda state: begun(state, child_id), "begin")


async def settle(settings: Settings, subagent_control: ControlStore, ends: Sequence[Ended]) -> None:
    """Give their slots back, and tell the circuit breaker how they ended: each once. Never raises."""
    rules = control_rules(settings)
    now = datetime.now(UTC)
    await _booked(subagent_control, lambda state: settled(state, ends, rules, now), "settle")


async def release(subagent_control: ControlStore, child_ids: Sequence[str]) -> None:
    """Give the slots of cancelled sub-agents back. Never raises."""
    if child_ids:
        await _booked(subagent_control, lambda state: released(state, child_ids), "release")


async def _booked(subagent_control: ControlStore, change: Change, action: str) -> None:
    try:
        await _changed(subagent_control, change, _BOOK_LIMIT_S)
    except GroundworkError as failed:
        get_logger().warning("subagent_control.failed", action=action, error_type=failed.code)


async def _changed(subagent_control: ControlStore, change: Change, limit_s: float) -> bool:
    """Write what `change` makes of the state; False when that is None. Nothing to change is not written."""
    return await _within(limit_s, _swapped(subagent_control, change))


async def _swapped(subagent_control: ControlStore, change: Change) -> bool:
    store = subagent_control
    # One at a time of this process: only processes race.
    async with _turns.setdefault(store, asyncio.Lock()):
        for tries in range(_MAX_TRIES):
            state = await store.read()
            changed = change(state)
            if changed is None:
                return False
            if changed == state:
                return True
            try:
                await store.write(changed)
            except ConflictError:
                await asyncio.sleep(random.uniform(0, min(_MAX_WAIT_S, _FIRST_WAIT_S * 2.0**tries)))
            else:
                return True
    raise DependencyError("Too many sub-agents begin and end at the same time.", "Try again in a moment.")


async def _within(limit_s: float, work: Awaitable[Result]) -> Result:
    try:
        async with asyncio.timeout(limit_s):
            return await work
    except TimeoutError:
        raise CallTimeoutError("The state of sub-agents could not be read or written in time.") from None
