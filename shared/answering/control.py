"""Slots and circuit breaker of sub-agents, shared by all instances: read, decide, compare-and-swap.

A writer that loses the race for the row reads it again after a jittered wait, within a limit of tries and of
time. What an answer needs to know (`read_control`, `grant`) raises when the store fails, and the policy then
starts no sub-agent; what only books (`begin`, `settle`, `release`) never does: a slot that is not given back
expires.
"""

# For annotations alone: the start of the app need not build every model.
from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeVar

from pydantic import Field, ValidationError

from shared.answering.subagent_models import SubagentEnd
from shared.platform.errors import (
    CallTimeoutError,
    ConflictError,
    DependencyError,
    GroundworkError,
)
from shared.platform.models import Model
from shared.platform.names import SUBAGENT_CONTROL_TABLE
from shared.platform.settings import Settings, SubagentSettings
from shared.platform.tables import Entity, Table, joined_text, revision_of, split_text
from shared.platform.telemetry import get_logger
from shared.runs.models import ChildStatus, Count

Circuit = Literal["closed", "open", "half_open"]
Result = TypeVar("Result")

# Behind a sub-agent's deadline: its parent is called then, if need be by a host that has just restarted.
LEASE_GRACE = timedelta(seconds=30)

# The circuit does not open on fewer outcomes. When each tenth fails by chance, 1 in 80 windows of ten has the
# four failures that the contract's threshold asks for; of five, 1 in 12 would have two.
MIN_OUTCOMES = 10

_KEY = "subagents"
_MAX_TRIES = 12  # 40 instances that write at the same moment need 6 on average, and 1.5 s on two busy cores
_FIRST_WAIT_S = 0.01
_MAX_WAIT_S = 0.2
_ASK_LIMIT_S = 2.0  # an answer waits for it: rather no sub-agent than a long wait
_BOOK_LIMIT_S = 10.0  # runs in the background; a slot that is not given back is lost for a while


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


class ControlView(Model):
    """What the policy and operators see.

    Attributes:
        circuit: `open` = paused; `half_open` = one is tried, or the next one will be.
        circuit_closed: sub-agents may be started; also after the pause, for the one that is tried.
        outcomes, failures: of the window.
        active, waiting: slots whose sub-agent has begun, and those whose has not.
        free: how many more may be granted now: at most 1 while the circuit is tried.
    """

    circuit: Circuit = "closed"
    circuit_closed: bool = True
    opened_at: datetime | None = Field(
        default=None, description="When the circuit breaker opened; null while it is closed."
    )
    outcomes: Count = 0
    failures: Count = 0
    active: Count = 0
    waiting: Count = 0
    max_active: Count = Field(default=0, description="How many may work at the same time.")
    free: Count = 0


def succeeded(status: ChildStatus) -> bool:
    """Whether an end counts as a success for the circuit breaker.

    `partial` does: it has something to show, and its budget (of time, tokens, money or turns) worked as it is
    meant to. `failed` brought nothing, `late` did not even end; one still `running` was given up.
    """
    return status in ("done", "partial")


def view(state: ControlState, limits: SubagentSettings, now: datetime) -> ControlView:
    """How it stands at the instant `now`."""
    alive = _alive(state.leases, now)
    begun_count = sum(lease.begun for lease in alive)
    circuit: Circuit = "closed"
    if state.opened_at is not None:
        cooldown = timedelta(seconds=limits.circuit_breaker_cooldown_seconds)
        circuit = "open" if now < state.opened_at + cooldown else "half_open"
    is_shut = circuit == "open" or (circuit == "half_open" and any(lease.is_probe for lease in alive))
    slots = max(0, limits.max_active - len(alive))
    return ControlView(
        circuit=circuit,
        circuit_closed=not is_shut,
        opened_at=state.opened_at,
        outcomes=len(state.outcomes),
        failures=state.outcomes.count(False),
        active=begun_count,
        waiting=len(alive) - begun_count,
        max_active=limits.max_active,
        free=0 if is_shut else min(slots, 1) if circuit == "half_open" else slots,
    )


def granted(
    state: ControlState, deadlines: Mapping[str, datetime], limits: SubagentSettings, now: datetime
) -> ControlState | None:
    """The state with a slot for each sub-agent, all or none; None = they may not be started now.

    Those that have a slot keep it, so asking again takes no more.

    Args:
        deadlines: of the sub-agents, by id.
    """
    alive = _alive(state.leases, now)
    new = deadlines.keys() - {lease.child_id for lease in alive}
    if not new:
        return state
    if len(new) > view(state, limits, now).free:
        return None
    is_probe = state.opened_at is not None
    leases = tuple(
        Lease(child_id=child_id, expires_at=deadline + LEASE_GRACE, is_probe=is_probe)
        for child_id, deadline in deadlines.items()
        if child_id in new
    )
    return state.model_copy(update={"leases": (*alive, *leases)})


def begun(state: ControlState, child_id: str) -> ControlState:
    """The state with that sub-agent at work; unchanged when it has no slot (any more)."""
    leases = tuple(
        lease.model_copy(update={"begun": True}) if lease.child_id == child_id else lease
        for lease in state.leases
    )
    return state.model_copy(update={"leases": leases})


def settled(
    state: ControlState, ends: Iterable[SubagentEnd], limits: SubagentSettings, now: datetime
) -> ControlState:
    """The state with their slots free and their outcomes counted.

    An end counts once, with its slot: settling again changes nothing. While the circuit is not closed only
    the outcome of the one that tries it counts; the others tell of the time before.
    """
    for end in ends:
        lease = next((lease for lease in state.leases if lease.child_id == end.child_id), None)
        if lease is not None:
            state = _counted(released(state, [end.child_id]), lease, succeeded(end.status), limits, now)
    return state


def released(state: ControlState, child_ids: Iterable[str]) -> ControlState:
    """The state with their slots free and nothing counted: cancelled ones neither failed nor worked."""
    gone = set(child_ids)
    return state.model_copy(
        update={"leases": tuple(lease for lease in state.leases if lease.child_id not in gone)}
    )


def _counted(
    state: ControlState, lease: Lease, success: bool, limits: SubagentSettings, now: datetime
) -> ControlState:
    if state.opened_at is not None:
        if not lease.is_probe:
            return state
        closed_again = {"opened_at": None, "outcomes": ()}
        return state.model_copy(update=closed_again if success else {"opened_at": now})
    window = limits.circuit_breaker_window_requests
    outcomes = (*state.outcomes, success)[-window:]
    failure_rate = outcomes.count(False) / len(outcomes)
    opens = (
        len(outcomes) >= min(MIN_OUTCOMES, window)
        and failure_rate >= limits.circuit_breaker_failure_rate_threshold
    )
    return state.model_copy(update={"outcomes": outcomes, "opened_at": now if opens else None})


def _alive(leases: Sequence[Lease], now: datetime) -> tuple[Lease, ...]:
    return tuple(lease for lease in leases if now < lease.expires_at)


class ControlStore:
    """The one row that all instances share about sub-agents at work; its etag is the state's revision."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.turn = asyncio.Lock()  # one change at a time in this process: only processes race

    async def read(self) -> ControlState:
        """The state with its revision; an empty one without revision when there is no row yet.

        Raises:
            DependencyError: the row is damaged, or of a later version.
        """
        entity = await self._table.get(_KEY, _KEY)
        if entity is None:
            return ControlState()
        try:
            state = ControlState.from_stored(joined_text(entity))
        except ValidationError:
            # Not taken for an empty one: nobody knows how many are at work.
            raise DependencyError(
                "The record of running sub-agents cannot be read.",
                f"Delete the row of the table {SUBAGENT_CONTROL_TABLE}: the next sub-agent creates it again.",
            ) from None
        return state.model_copy(update={"revision": revision_of(entity)})

    async def write(self, state: ControlState) -> ControlState:
        """The state as stored. ConflictError when it changed, or went, since `state.revision` was read."""
        text = state.model_dump_json(exclude={"revision"})
        entity: Entity = {"PartitionKey": _KEY, "RowKey": _KEY, **split_text(text)}
        revision = await self._table.swap(entity, state.revision)
        return state.model_copy(update={"revision": revision})


async def read_control(settings: Settings, store: ControlStore, without: str | None = None) -> ControlView:
    """Return how busy sub-agents are, and whether any may start.

    Args:
        without: prefix of the ids of sub-agents that don't count; None = all count.

    Raises:
        GroundworkError: the store failed or was slow.
    """
    state = await _within(_ASK_LIMIT_S, store.read())
    if without is not None:
        ids = [lease.child_id for lease in state.leases if lease.child_id.startswith(without)]
        state = released(state, ids)
    return view(state, settings.subagents, datetime.now(UTC))


async def grant(
    settings: Settings, store: ControlStore, deadlines: Mapping[str, datetime], now: datetime
) -> bool:
    """Take a slot for each sub-agent, all or none; False when the limit is reached, or the circuit open, by
    now. At most `ControlView.free` can be granted. Asking again for the same ones takes no more slots.

    Raises:
        GroundworkError: the store failed, or too many wrote at the same time.
    """
    change = _swapped(store, lambda state: granted(state, deadlines, settings.subagents, now))
    return await _within(_ASK_LIMIT_S, change)


async def begin(store: ControlStore, child_id: str) -> None:
    """Note that this sub-agent is at work, and waits no more. Never raises; may run in the background."""
    await _booked(store, lambda state: begun(state, child_id), "begin")


async def settle(settings: Settings, store: ControlStore, ends: Sequence[SubagentEnd]) -> None:
    """Give their slots back, and tell the circuit breaker how they ended: each once. Never raises."""
    now = datetime.now(UTC)
    await _booked(store, lambda state: settled(state, ends, settings.subagents, now), "settle")


async def release(store: ControlStore, child_ids: Sequence[str]) -> None:
    """Give the slots of cancelled sub-agents back. Never raises."""
    if child_ids:
        await _booked(store, lambda state: released(state, child_ids), "release")


async def _booked(store: ControlStore, change: Callable[[ControlState], ControlState], action: str) -> None:
    try:
        await _within(_BOOK_LIMIT_S, _swapped(store, change))
    except GroundworkError as failed:
        get_logger().warning("sub_agent.control_failed", action=action, error_type=failed.code)


async def _swapped(store: ControlStore, change: Callable[[ControlState], ControlState | None]) -> bool:
    """Write what `change` makes of the state; False when that is None. Nothing to change is not written."""
    async with store.turn:
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
