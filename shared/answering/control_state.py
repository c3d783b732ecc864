"""The slots of sub-agents and their circuit breaker, as a value and its changes. Pure.

Each change returns a new state. `control` stores it.
"""

# Deferred annotations speed up the start of the app, because pydantic then builds models on first use.
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

from pydantic import Field

from shared.answering.subagent_models import SubagentEnd
from shared.platform.models import Model
from shared.platform.settings_groups.answers import SubagentSettings
from shared.runs.models import Count, counts_as_success

Circuit = Literal["closed", "open", "half_open"]

# Grace period after a sub-agent's deadline, so that a restarted host can still call its parent.
LEASE_GRACE = timedelta(seconds=30)

# Minimum outcomes before the circuit opens. At a random failure rate of 10 %, 1 in 80 windows of ten has the
# four failures that the default threshold requires; 1 in 12 windows of five would have two.
MIN_OUTCOMES = 10


class Lease(Model):
    """The concurrency slot of one sub-agent, which is free again when the sub-agent ends or the lease
    expires.

    Attributes:
        has_begun: whether the sub-agent has started; before that it waits for its first turn.
        is_probe: whether it was admitted to a half-open circuit, to test whether sub-agents work again.
    """

    child_id: str
    expires_at: datetime
    has_begun: bool = False
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
    begun_count = sum(lease.has_begun for lease in alive)
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
        lease.model_copy(update={"has_begun": True}) if lease.child_id == child_id else lease
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
