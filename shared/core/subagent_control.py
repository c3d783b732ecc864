"""How many sub-agents may work, and whether any may: leases and a circuit breaker over one shared state.

Each function takes the state as it was read and gives what is to be written, so that instances agree by
compare-and-swap. A lease that nobody settles (its parent crashed) expires: it frees its
slot, and says nothing about whether sub-agents work. Clocks of instances may differ by `LEASE_GRACE`.

The circuit is closed; opens when too many of the newest outcomes are failures; is tried by exactly one
sub-agent after its pause (half open); closes when that one works, else pauses again.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from shared.models.subagent_control import (
    Circuit,
    ControlReport,
    ControlRules,
    ControlState,
    ControlView,
    Lease,
)
from shared.models.subagents import ChildStatus

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
