"""Tests for each rule of the sub-agents' slots and circuit breaker."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest

from shared.answering.control_state import (
    LEASE_GRACE,
    MIN_OUTCOMES,
    ControlState,
    view,
    with_begun_lease,
    with_leases,
    with_outcomes,
    without_leases,
)
from shared.answering.subagent_models import SubagentEnd
from shared.platform.settings_groups.answers import SubagentSettings
from shared.runs.models import ChildStatus, counts_as_success
from tests.fakes.services import fake_settings

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
RULES = fake_settings(
    circuit_breaker_failure_rate_threshold=0.35,
    circuit_breaker_window_requests=50,
    circuit_breaker_cooldown_seconds=300,
    subagents_max_active=4,
).subagents
COOLED = NOW + timedelta(seconds=300)


def tasks(*child_ids: str, now: datetime = NOW) -> dict[str, datetime]:
    return dict.fromkeys(child_ids, now + timedelta(seconds=15))


def start(
    state: ControlState, *child_ids: str, now: datetime = NOW, rules: SubagentSettings = RULES
) -> ControlState:
    after = with_leases(state, tasks(*child_ids, now=now), rules, now)
    assert after is not None
    return after


def end(
    state: ControlState,
    status: ChildStatus,
    *child_ids: str,
    now: datetime = NOW,
    rules: SubagentSettings = RULES,
) -> ControlState:
    return with_outcomes(state, [SubagentEnd(child_id=one, status=status) for one in child_ids], rules, now)


def after(outcomes: Iterable[bool], state: ControlState | None = None) -> ControlState:
    """Return the state after sub-agents with these outcomes, started and ended one after the other."""
    state = state or ControlState()
    for number, success in enumerate(outcomes):
        state = start(state, f"past{number}")
        state = end(state, "done" if success else "failed", f"past{number}")
    return state


OPEN = after([False] * MIN_OUTCOMES)


def test_a_slot_is_waited_for_until_it_is_begun() -> None:
    state = start(ControlState(), "a", "b")
    waiting = view(state, RULES, NOW)
    assert (waiting.active, waiting.waiting, waiting.free) == (0, 2, 2)
    at_work = view(with_begun_lease(state, "a"), RULES, NOW)
    assert (at_work.active, at_work.waiting, at_work.free) == (1, 1, 2)


def test_no_more_slots_than_there_are_and_all_or_none() -> None:
    state = start(ControlState(), "a", "b", "c")
    assert with_leases(state, tasks("d", "e"), RULES, NOW) is None
    full = start(state, "d")
    assert with_leases(full, tasks("e"), RULES, NOW) is None
    assert view(full, RULES, NOW).circuit_closed
    assert with_leases(end(full, "done", "a"), tasks("e"), RULES, NOW) is not None


def test_who_has_a_slot_gets_no_second_one() -> None:
    state = with_begun_lease(start(ControlState(), "a", "b", "c", "d"), "a")
    assert with_leases(state, tasks("a", "b"), RULES, NOW) == state


def test_a_slot_that_nobody_gives_back_is_free_again_after_its_deadline() -> None:
    state = with_begun_lease(start(ControlState(), "a", "b", "c", "d"), "a")
    last_moment = NOW + timedelta(seconds=15) + LEASE_GRACE - timedelta(milliseconds=1)
    assert view(state, RULES, last_moment).free == 0
    expired = last_moment + timedelta(milliseconds=1)
    assert view(state, RULES, expired).free == 4
    assert [lease.child_id for lease in start(state, "e", now=expired).leases] == ["e"]
    assert with_leases(start(state, "e", now=expired), tasks("f"), RULES, expired) is not None


def test_beginning_or_ending_without_a_slot_changes_nothing() -> None:
    state = start(ControlState(), "a")
    assert with_begun_lease(state, "b") == state
    assert end(state, "failed", "b") == state
    assert with_begun_lease(with_begun_lease(state, "a"), "a") == with_begun_lease(state, "a")


def test_an_end_counts_once() -> None:
    once = end(start(ControlState(), "a", "b"), "failed", "a")
    assert once.outcomes == (False,)
    assert end(once, "failed", "a") == once


def test_a_cancelled_one_frees_its_slot_and_counts_for_nothing() -> None:
    state = with_begun_lease(start(ControlState(), "a", "b", "c", "d"), "a")
    free = without_leases(state, ["a", "nobody"])
    assert view(free, RULES, NOW).free == 1
    assert free.outcomes == ()
    assert end(free, "failed", "a") == free


def test_a_cancelled_one_that_tried_the_circuit_is_followed_by_another() -> None:
    probing = start(OPEN, "probe", now=COOLED)
    assert with_leases(probing, tasks("next"), RULES, COOLED) is None
    assert with_leases(without_leases(probing, ["probe"]), tasks("next"), RULES, COOLED) is not None


@pytest.mark.parametrize(
    ("status", "success"),
    [("done", True), ("partial", True), ("failed", False), ("late", False), ("running", False)],
)
def test_what_counts_as_a_failure(status: ChildStatus, success: bool) -> None:
    assert counts_as_success(status) is success
    assert end(start(ControlState(), "a"), status, "a").outcomes == (success,)


@pytest.mark.parametrize(
    ("failures", "outcomes", "opens"),
    [(9, 9, False), (3, 10, False), (4, 10, True), (10, 10, True), (7, 20, True)],
)
def test_the_circuit_opens_at_the_threshold_over_enough_outcomes(
    failures: int, outcomes: int, opens: bool
) -> None:
    state = after([True] * (outcomes - failures) + [False] * failures)
    assert (view(state, RULES, NOW).circuit == "open") is opens
    assert view(state, RULES, NOW).circuit_closed is not opens


def test_failures_that_left_the_window_are_forgotten() -> None:
    # 17 of the newest 50 are 0.34; the three older ones would make 20 of 53.
    state = after([False] * 3 + [True] * 33 + [False] * 17)
    assert len(state.outcomes) == RULES.circuit_breaker_window_requests
    assert view(state, RULES, NOW).circuit == "closed"
    assert view(after([False], state), RULES, NOW).circuit == "open"


def test_a_window_shorter_than_the_usual_minimum_is_enough() -> None:
    short = RULES.model_copy(update={"circuit_breaker_window_requests": 2})
    state = end(start(ControlState(), "a", "b", rules=short), "late", "a", "b", rules=short)
    assert view(state, short, NOW).circuit == "open"


def test_an_open_circuit_lets_nobody_through_until_it_has_cooled_down() -> None:
    early = COOLED - timedelta(milliseconds=1)
    assert with_leases(OPEN, tasks("a"), RULES, early) is None
    assert view(OPEN, RULES, early).free == 0
    assert not view(OPEN, RULES, early).circuit_closed
    assert view(OPEN, RULES, COOLED).circuit_closed
    assert view(OPEN, RULES, COOLED).free == 1


def test_exactly_one_tries_it() -> None:
    assert with_leases(OPEN, tasks("a", "b"), RULES, COOLED) is None
    probing = start(OPEN, "a", now=COOLED)
    assert with_leases(probing, tasks("b"), RULES, COOLED) is None
    assert not view(probing, RULES, COOLED).circuit_closed
    assert view(probing, RULES, COOLED).circuit == "half_open"


def test_the_circuit_closes_when_that_one_works_and_forgets_what_was() -> None:
    closed = end(start(OPEN, "a", now=COOLED), "partial", "a", now=COOLED)
    assert view(closed, RULES, COOLED).circuit == "closed"
    assert closed.outcomes == ()
    assert view(closed, RULES, COOLED).free == 4


def test_the_pause_begins_anew_when_that_one_fails() -> None:
    at = COOLED + timedelta(seconds=9)
    again = end(start(OPEN, "a", now=COOLED), "late", "a", now=at)
    assert view(again, RULES, COOLED + timedelta(seconds=300)).circuit == "open"
    assert view(again, RULES, at + timedelta(seconds=300)).circuit == "half_open"


def test_one_that_never_reports_is_followed_by_another() -> None:
    probing = start(OPEN, "a", now=COOLED)
    expired = COOLED + timedelta(seconds=15) + LEASE_GRACE
    second = start(probing, "b", now=expired)
    assert [lease.child_id for lease in second.leases] == ["b"]
    assert end(second, "done", "a", now=expired) == second  # too late: another attempt now holds the lease


def test_those_from_before_the_pause_neither_close_the_circuit_nor_prolong_it() -> None:
    busy = start(ControlState(), "old1", "old2")
    opened = after([False] * MIN_OUTCOMES, busy)
    assert opened.opened_at == NOW
    later = NOW + timedelta(seconds=5)
    assert end(opened, "failed", "old1", now=later).opened_at == NOW
    assert end(opened, "done", "old2", now=later).opened_at == NOW
    assert end(opened, "done", "old2", now=later).outcomes == opened.outcomes


def test_no_slots_at_all_is_no_open_circuit() -> None:
    none = RULES.model_copy(update={"max_active": 0})
    assert view(ControlState(), none, NOW).circuit_closed
    assert view(ControlState(), none, NOW).free == 0


def test_an_operator_is_told_how_it_stands() -> None:
    control_view = view(with_begun_lease(start(after([True, False]), "a", "b"), "b"), RULES, NOW)
    assert (control_view.circuit, control_view.outcomes, control_view.failures) == ("closed", 2, 1)
    assert (control_view.active, control_view.waiting, control_view.max_active) == (1, 1, 4)
