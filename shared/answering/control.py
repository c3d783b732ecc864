"""Limits the number of concurrent sub-agents and pauses them after failures. All instances share one stored
row, updated by compare-and-swap.

A writer that loses the race for the row reads it again after a jittered wait, up to a limit of attempts and
time. Functions whose result an answer needs (`read_control`, `grant`) raise if the store fails, and the
policy then starts no sub-agent. Functions that only record (`begin`, `settle`, `release`) never raise: an
unreleased slot expires.
"""

# Deferred annotations speed up the start of the app, because pydantic then builds models on first use.
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
from shared.platform.settings import Settings
from shared.platform.settings_groups.answers import SubagentSettings
from shared.platform.tables import Entity, Table, joined_text, revision_of, split_text
from shared.platform.telemetry import get_logger
from shared.runs.models import Count, counts_as_success

Circuit = Literal["closed", "open", "half_open"]
Result = TypeVar("Result")

# Grace period after a sub-agent's deadline, so that a restarted host can still call its parent.
LEASE_GRACE = timedelta(seconds=30)

# Minimum outcomes before the circuit opens. At a random failure rate of 10 %, 1 in 80 windows of ten has the
# four failures that the default threshold requires; 1 in 12 windows of five would have two.
MIN_OUTCOMES = 10

_KEY = "subagents"
# Maximum number of attempts at a compare-and-swap. With 40 simultaneous writers, each needs 6 on average,
# which takes 1.5 s on two busy cores.
_MAX_TRIES = 12
_FIRST_WAIT_S = 0.01
_MAX_WAIT_S = 0.2
# Time limit for acquiring slots, during which the answer is delayed. After it, no sub-agent is started.
_ANSWER_LIMIT_S = 2.0
# Time limit of updates that nobody waits for. A slot that could not be released stays occupied until it
# expires.
_RECORD_LIMIT_S = 10.0


class Lease(Model):
    """The concurrency slot of one sub-agent, which is free again when the sub-agent ends or the lease
    expires.

    Attributes:
        begun: whether the sub-agent has started; before that it waits for its first turn.
        is_probe: whether it was admitted to a half-open circuit, to test whether sub-agents work again.
    """

    child_id: str
    expires_at: datetime
    begun: bool = False
    is_probe: bool = False


class ControlState(Model):
    """Contents of the row that all instances share: leased slots and recent outcomes of sub-agents.

    Attributes:
        outcomes: newest outcomes since the circuit was last closed, oldest first; True = success.
        opened_at: time when the circuit opened; None = closed.
        revision: the store's revision; None = the row doesn't exist yet.
    """

    leases: tuple[Lease, ...] = ()
    outcomes: tuple[bool, ...] = ()
    opened_at: datetime | None = None
    revision: str | None = None


class ControlView(Model):
    """Summary of the slots and the circuit breaker for the delegation policy and for operators.

    Attributes:
        circuit: `open` = paused; `half_open` = one sub-agent is allowed as a probe.
        circuit_closed: whether sub-agents may be started; also True after the pause until the probe starts.
        outcomes, failures: counts within the window.
        active, waiting: slots of sub-agents that have started, and of sub-agents that have not.
        free: how many more slots may be granted now; at most 1 while the circuit is half-open.
    """

    circuit: Circuit = "closed"
    circuit_closed: bool = True
    opened_at: datetime | None = Field(
        default=None, description="Time when the circuit breaker opened; null while it is closed."
    )
    outcomes: Count = 0
    failures: Count = 0
    active: Count = 0
    waiting: Count = 0
    max_active: Count = Field(default=0, description="Maximum number of concurrent sub-agents.")
    free: Count = 0


def view(state: ControlState, limits: SubagentSettings, now: datetime) -> ControlView:
    """Return a summary of the slots and the circuit breaker as of `now`."""
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


def with_leases(
    state: ControlState, deadlines: Mapping[str, datetime], limits: SubagentSettings, now: datetime
) -> ControlState | None:
    """Return the state with one more slot leased for each sub-agent, or None if not all of them can start
    now.

    Idempotent: sub-agents that have a slot keep it.

    Args:
        deadlines: deadlines by the sub-agent's id.
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


def with_begun_lease(state: ControlState, child_id: str) -> ControlState:
    """Return the state with the lease of this sub-agent marked as started. Without a lease, the state is
    unchanged.
    """
    leases = tuple(
        lease.model_copy(update={"begun": True}) if lease.child_id == child_id else lease
        for lease in state.leases
    )
    return state.model_copy(update={"leases": leases})


def with_outcomes(
    state: ControlState, ends: Iterable[SubagentEnd], limits: SubagentSettings, now: datetime
) -> ControlState:
    """Return the state without the slots of ended sub-agents, and with their outcomes recorded for the
    circuit breaker.

    Idempotent: an outcome counts once, with its slot. While the circuit is not closed, only the probe's
    outcome counts; the other sub-agents started earlier.
    """
    for end in ends:
        lease = next((lease for lease in state.leases if lease.child_id == end.child_id), None)
        if lease is not None:
            state = _with_outcome(
                without_leases(state, [end.child_id]), lease, counts_as_success(end.status), limits, now
            )
    return state


def without_leases(state: ControlState, child_ids: Iterable[str]) -> ControlState:
    """Return the state without the slots of these sub-agents. Their outcomes are not recorded, for example
    because they were cancelled.
    """
    ids = set(child_ids)
    return state.model_copy(
        update={"leases": tuple(lease for lease in state.leases if lease.child_id not in ids)}
    )


def _with_outcome(
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
    """Access to the row that all instances share. The row's etag serves as the revision of the state."""

    def __init__(self, table: Table) -> None:
        self._table = table
        # serialises changes within this process, so that only other processes can cause conflicts
        self.turn = asyncio.Lock()

    async def read(self) -> ControlState:
        """Read the state and its revision. If the row doesn't exist, return an empty state without a
        revision.

        Raises:
            DependencyError: the row is damaged or was written by a later version.
        """
        entity = await self._table.get(_KEY, _KEY)
        if entity is None:
            return ControlState()
        try:
            state = ControlState.from_stored(joined_text(entity))
        except ValidationError:
            # An unreadable row doesn't mean that no sub-agent is running, so an empty state would be wrong.
            raise DependencyError(
                "The record of running sub-agents cannot be read.",
                f"Delete the row in table {SUBAGENT_CONTROL_TABLE}; the next sub-agent creates a new one.",
            ) from None
        return state.model_copy(update={"revision": revision_of(entity)})

    async def write(self, state: ControlState) -> ControlState:
        """Write the state if its revision is still current, and return it with its new revision.

        Raises:
            ConflictError: the row was changed or deleted after `state.revision` was read.
        """
        text = state.model_dump_json(exclude={"revision"})
        entity: Entity = {"PartitionKey": _KEY, "RowKey": _KEY, **split_text(text)}
        revision = await self._table.swap(entity, state.revision)
        return state.model_copy(update={"revision": revision})


async def read_control(settings: Settings, store: ControlStore, without: str | None = None) -> ControlView:
    """Return how many sub-agents are running, how many are waiting, and how many more may start.

    Args:
        without: prefix of the ids of sub-agents to exclude; None excludes none.

    Raises:
        GroundworkError: the store failed or was slow.
    """
    state = await _within(_ANSWER_LIMIT_S, store.read())
    if without is not None:
        ids = [lease.child_id for lease in state.leases if lease.child_id.startswith(without)]
        state = without_leases(state, ids)
    return view(state, settings.subagents, datetime.now(UTC))


async def grant(
    settings: Settings, store: ControlStore, deadlines: Mapping[str, datetime], now: datetime
) -> bool:
    """Lease a slot for every sub-agent and return True, or lease none and return False. Idempotent.

    Return False if the limit is reached or the circuit is open. At most `ControlView.free` slots can be
    granted.

    Raises:
        GroundworkError: the store failed, or too many instances wrote at the same time.
    """
    change = _compare_and_swap(store, lambda state: with_leases(state, deadlines, settings.subagents, now))
    return await _within(_ANSWER_LIMIT_S, change)


async def begin(store: ControlStore, child_id: str) -> None:
    """Record that the sub-agent has started. Errors are logged, never raised."""
    await _update_quietly(store, lambda state: with_begun_lease(state, child_id), "begin")


async def settle(settings: Settings, store: ControlStore, ends: Sequence[SubagentEnd]) -> None:
    """Release the slots of ended sub-agents and record each outcome once for the circuit breaker. Errors are
    logged, never raised.
    """
    now = datetime.now(UTC)
    await _update_quietly(store, lambda state: with_outcomes(state, ends, settings.subagents, now), "settle")


async def release(store: ControlStore, child_ids: Sequence[str]) -> None:
    """Release the slots of cancelled sub-agents. Errors are logged, never raised."""
    if child_ids:
        await _update_quietly(store, lambda state: without_leases(state, child_ids), "release")


async def _update_quietly(
    store: ControlStore, change: Callable[[ControlState], ControlState], action: str
) -> None:
    try:
        await _within(_RECORD_LIMIT_S, _compare_and_swap(store, change))
    except GroundworkError as failed:
        get_logger().warning("sub_agent.control_failed", action=action, error_type=failed.code)


async def _compare_and_swap(
    store: ControlStore, change: Callable[[ControlState], ControlState | None]
) -> bool:
    """Apply `change` by compare-and-swap, retrying on conflicts. Return False if `change` returns None."""
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
    raise DependencyError(
        "Too many sub-agents are starting and ending at the same time.", "Try again in a moment."
    )


async def _within(limit_s: float, work: Awaitable[Result]) -> Result:
    try:
        async with asyncio.timeout(limit_s):
            return await work
    except TimeoutError:
        raise CallTimeoutError("The state of sub-agents could not be read or written in time.") from None
