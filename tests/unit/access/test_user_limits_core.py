"""Calls in a minute, and slots: which are admitted, when, and what is told of what is left."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from shared.access.limits import (
    LimitRules,
    Slot,
    UserLimits,
    allowance,
    charged,
    held_anyway,
    limit_headers,
    occupied,
    released,
    wait_s,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
UNLIMITED = LimitRules(calls_per_minute=0, concurrent_runs=0)


def rules(calls: int = 60, runs: int = 2) -> LimitRules:
    return LimitRules(calls_per_minute=calls, concurrent_runs=runs)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def used_up(limits: LimitRules, calls: int, at: datetime = NOW) -> UserLimits:
    state = UserLimits()
    for _ in range(calls):
        made = charged(state, 1, limits, at)
        assert made is not None
        state = made
    return state


@pytest.mark.parametrize("limit", [1, 7, 60, 999, 6000])
def test_a_minutes_calls_may_be_made_at_once_and_not_one_more(limit: int) -> None:
    state = used_up(rules(limit), limit)
    assert charged(state, 1, rules(limit), NOW) is None
    assert wait_s(state, 1, rules(limit), NOW) == pytest.approx(60 / limit, abs=0.01)


def test_one_call_comes_back_at_a_time() -> None:
    state = used_up(rules(60), 60)
    assert charged(state, 1, rules(60), after(0.9)) is None
    again = charged(state, 1, rules(60), after(1))
    assert again is not None
    assert charged(again, 1, rules(60), after(1)) is None
    whole = allowance(again, rules(60), after(61))
    assert whole is not None
    assert (whole.remaining, whole.reset_s) == (60, 0)


@pytest.mark.parametrize("seed", range(5))
def test_no_minute_ever_has_more_than_twice_the_limit(seed: int) -> None:
    chance, limits, state = random.Random(seed), rules(30), UserLimits()
    moments: list[float] = []
    at = 0.0
    for _ in range(2000):
        at += chance.choice([0.0, 0.01, 0.3, 5.0, 40.0]) * chance.random()
        made = charged(state, 1, limits, after(at))
        if made is not None:
            state = made
            moments.append(at)
    most = max(sum(begin <= one < begin + 60 for one in moments) for begin in moments)
    assert 30 <= most <= 60


def test_whoever_waits_as_long_as_told_is_let_in() -> None:
    limits = rules(7)
    state = used_up(limits, 7)
    for _ in range(50):
        told = wait_s(state, 1, limits, NOW)
        made = charged(state, 1, limits, after(told))
        assert made is not None
        state = made


def test_a_call_may_count_for_several_and_for_no_more_than_there_are() -> None:
    state = charged(UserLimits(), 20, rules(60), NOW)
    assert state is not None
    left = allowance(state, rules(60), NOW)
    assert left is not None
    assert (left.limit, left.remaining, left.reset_s) == (60, 40, 20)
    assert charged(state, 41, rules(60), NOW) is None
    assert wait_s(state, 41, rules(60), NOW) == pytest.approx(1)
    assert charged(UserLimits(), 20, rules(5), NOW) is not None


def test_headers_say_what_is_left() -> None:
    left = allowance(used_up(rules(60), 1), rules(60), NOW)
    assert limit_headers(left) == {
        "RateLimit-Limit": "60",
        "RateLimit-Remaining": "59",
        "RateLimit-Reset": "1",
    }
    assert limit_headers(allowance(UserLimits(), UNLIMITED, NOW)) == {}


def test_clocks_that_differ_never_give_more_than_there_is() -> None:
    state = used_up(rules(60), 1, after(30))  # of an instance whose clock is ahead
    left = allowance(state, rules(60), NOW)
    assert left is not None
    assert 0 <= left.remaining < 60
    assert charged(state, 1, rules(60), NOW) is not None


def slot(name: str, until: float = 60) -> Slot:
    return Slot(work_id=name, until=after(until))


def taken(state: UserLimits, name: str, limits: LimitRules) -> UserLimits:
    made = occupied(state, slot(name), limits, NOW)
    assert made is not None
    return made


def test_as_many_run_as_there_are_slots() -> None:
    state = taken(taken(UserLimits(), "a", rules()), "b", rules())
    assert occupied(state, slot("c"), rules(), NOW) is None
    assert occupied(state, slot("a"), rules(), NOW) == state  # it has one
    assert [one.work_id for one in taken(released(state, "a"), "c", rules()).slots] == ["b", "c"]
    assert released(state, "unknown") == state


def test_a_slot_that_nobody_gave_back_frees_itself() -> None:
    state = taken(taken(UserLimits(), "a", rules()), "b", rules())
    later = occupied(state, slot("c", until=200), rules(), after(61))
    assert later is not None
    assert [one.work_id for one in later.slots] == ["c"]


def test_work_that_goes_on_has_a_slot_whatever_the_limit() -> None:
    state = taken(taken(UserLimits(), "a", rules()), "b", rules())
    more = held_anyway(state, slot("c"), NOW)
    assert len(more.slots) == 3
    assert len(held_anyway(more, slot("c", until=90), NOW).slots) == 3
    assert occupied(released(more, "a"), slot("d"), rules(), NOW) is None


def test_without_limits_nothing_is_refused() -> None:
    state = UserLimits()
    for number in range(200):
        assert charged(state, 1, UNLIMITED, NOW) == state
        state = taken(state, f"{number}", UNLIMITED)
    assert wait_s(state, 1, UNLIMITED, NOW) == 0
