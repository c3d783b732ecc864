"""Tests for the sub-agents' slots and circuit breaker under concurrent changes by several instances."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from shared.answering.control_state import (
    LEASE_GRACE,
    MIN_OUTCOMES,
    ControlState,
    view,
    with_begun_lease,
    with_leases,
)
from shared.runs.models import ChildStatus
from tests.fakes.services import fake_settings
from tests.unit.subagents.test_control_state import NOW, after, end, start, tasks

INSTANCES = 4
SMALL = fake_settings(
    circuit_breaker_failure_rate_threshold=0.35,
    circuit_breaker_window_requests=12,
    circuit_breaker_cooldown_seconds=60,
    subagents_max_active=3,
).subagents


@dataclass
class Pending:
    """The state that an instance has read, and the state it has decided to write."""

    read: ControlState
    write: ControlState
    granted: tuple[str, ...] = ()


class SharedRow(RuleBasedStateMachine):
    """Interleaves instances that read, decide and write. The row accepts a write only if it is unchanged
    since the read.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.row = ControlState(revision="0")
        self.pending: dict[int, Pending] = {}
        self.at_work: dict[str, datetime] = {}  # deadlines of the granted children
        self.children = 0

    @initialize(failures=st.integers(0, MIN_OUTCOMES))
    def with_a_past(self, failures: int) -> None:
        self.row = after([True] * (MIN_OUTCOMES - failures) + [False] * failures)
        self.row = self.row.model_copy(update={"revision": "0"})

    @rule(instance=st.integers(0, INSTANCES - 1), count=st.integers(1, 3))
    def ask(self, instance: int, count: int) -> None:
        names = tuple(f"c{self.children + number}" for number in range(count))
        self.children += count
        decided = with_leases(self.row, tasks(*names, now=self.now), SMALL, self.now)
        if decided is not None:
            self.pending[instance] = Pending(self.row, decided, names)

    @precondition(lambda self: self.row.leases)
    @rule(
        instance=st.integers(0, INSTANCES - 1),
        which=st.integers(0, 9),
        status=st.sampled_from(["done", "partial", "failed", "late"]),
    )
    def end_one(self, instance: int, which: int, status: ChildStatus) -> None:
        child_id = self.row.leases[which % len(self.row.leases)].child_id
        decided = end(self.row, status, child_id, now=self.now, rules=SMALL)
        self.pending[instance] = Pending(self.row, decided)
        self.at_work.pop(child_id, None)

    @precondition(lambda self: self.row.leases)
    @rule(instance=st.integers(0, INSTANCES - 1), which=st.integers(0, 9))
    def begin_one(self, instance: int, which: int) -> None:
        child_id = self.row.leases[which % len(self.row.leases)].child_id
        self.pending[instance] = Pending(self.row, with_begun_lease(self.row, child_id))

    @rule(instance=st.integers(0, INSTANCES - 1))
    def write(self, instance: int) -> None:
        done = self.pending.pop(instance, None)
        if done is None or done.read.revision != self.row.revision:
            return  # another instance wrote first, so this one reads again
        self.row = done.write.model_copy(update={"revision": f"{int(self.row.revision or 0) + 1}"})
        deadlines = {lease.child_id: lease.expires_at - LEASE_GRACE for lease in self.row.leases}
        self.at_work |= {name: deadlines[name] for name in done.granted}

    @rule(instance=st.integers(0, INSTANCES - 1))
    def crash(self, instance: int) -> None:
        self.pending.pop(instance, None)

    @rule(seconds=st.sampled_from([1, 10, 46, 60, 300]))
    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @invariant()
    def never_more_at_work_than_there_are_slots(self) -> None:
        assert sum(self.now < deadline for deadline in self.at_work.values()) <= SMALL.max_active

    @invariant()
    def never_two_that_try_the_circuit(self) -> None:
        probes = [lease for lease in self.row.leases if lease.is_probe and self.now < lease.expires_at]
        assert len(probes) <= 1
        assert not probes or self.row.opened_at is not None

    @invariant()
    def whatever_happened_it_recovers_by_itself(self) -> None:
        later = self.now + timedelta(
            seconds=max(SMALL.circuit_breaker_cooldown_seconds, 15) + LEASE_GRACE.total_seconds()
        )
        control_view = view(self.row, SMALL, later)
        assert control_view.circuit_closed
        assert control_view.free >= 1
        probing = start(self.row, "last", now=later, rules=SMALL)
        assert (
            view(end(probing, "done", "last", now=later, rules=SMALL), SMALL, later).free == SMALL.max_active
        )


TestSharedRow = SharedRow.TestCase
TestSharedRow.settings = hypothesis_settings(max_examples=300, stateful_step_count=40, deadline=None)
