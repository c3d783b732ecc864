"""Tests for dividing a run's time: no part exceeds the remaining time, and the final step keeps a reserve."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.answering.script import Phase, retry_delay_s
from shared.answering.steps import StepFailed
from shared.runs.step_time import SHARES, Part, TimeLeft

PARTS: list[Part] = list(SHARES)
TOTAL_S = 25.0


def left(remaining_s: float, total_s: float = TOTAL_S) -> TimeLeft:
    return TimeLeft(remaining_s=remaining_s, total_s=total_s)


def test_a_setting_that_is_short_is_kept() -> None:
    assert left(TOTAL_S).allowed_s("plan", 2.0) == 2.0


def test_a_setting_that_is_longer_than_its_share_is_cut() -> None:
    assert left(TOTAL_S).allowed_s("plan", 600.0) == pytest.approx(0.3 * 23.5)
    assert left(TOTAL_S).allowed_s("write", 90.0) == pytest.approx(23.5 - 0.25)


def test_with_everything_hanging_half_of_the_time_is_left_for_writing() -> None:
    remaining_s = TOTAL_S
    hanging: tuple[Part, ...] = ("plan", "embed")
    for part in hanging:
        remaining_s -= left(remaining_s).allowed_s(part, 600.0)
    assert left(remaining_s).allowed_s("write", 600.0) > 9


@given(st.floats(0, 60), st.floats(1, 60), st.sampled_from(PARTS))
def test_no_part_reaches_into_what_is_kept_for_the_end(
    remaining_s: float, total_s: float, part: Part
) -> None:
    time = left(min(remaining_s, total_s), total_s)
    allowed_s = time.allowed_s(part, 600.0)
    assert allowed_s > 0
    if part not in ("resolve", "gather"):  # an answer requires a search
        assert allowed_s <= max(time.usable_s, 0.05)


def test_a_run_that_is_late_asks_no_model_and_still_searches() -> None:
    late = left(-10.0)
    assert not late.may_write
    assert late.is_short
    assert late.allowed_s("gather", 60.0) == 2.0
    assert late.allowed_s("plan", 60.0) < 0.1


@pytest.mark.parametrize(
    ("remaining_s", "total_s", "allowed_s"),
    [(25, 25, 9.4), (12, 25, 5.0), (6, 25, 4.5), (3, 25, 2.0), (6, 12, 2.4), (4, 12, 2.4)],
)
def test_a_late_run_gives_its_search_what_is_left_before_it_cuts_it_below_what_is_fair(
    remaining_s: float, total_s: float, allowed_s: float
) -> None:
    assert left(remaining_s, total_s).allowed_s("gather", 60.0) == pytest.approx(allowed_s)
    assert left(remaining_s, total_s).allowed_s("gather", 1.0) == 1.0


@pytest.mark.parametrize(
    ("remaining_s", "total_s", "is_short"), [(25, 25, False), (7, 25, True), (4, 5, False), (1, 5, True)]
)
def test_nothing_optional_is_begun_when_little_is_left(
    remaining_s: float, total_s: float, is_short: bool
) -> None:
    assert left(remaining_s, total_s).is_short is is_short


@pytest.mark.parametrize(
    ("phase", "delay_s", "remaining_s", "has_time"),
    [
        ("prepare", 2.0, 20.0, True),
        ("prepare", 2.0, 9.0, False),
        ("turn", 2.0, 5.5, True),
        ("turn", 2.0, 4.5, False),
        ("turn", 60.0, 20.0, False),
        ("delegate", 2.0, 3.0, False),
        ("turn", 60.0, None, True),
    ],
)
def test_a_step_is_tried_again_only_if_what_follows_fits_too(
    phase: Phase, delay_s: float, remaining_s: float | None, has_time: bool
) -> None:
    failed = StepFailed(
        error_type="NetworkError",
        message="away",
        retryable=True,
        retry_after_s=delay_s,
        remaining_s=remaining_s,
    )
    assert retry_delay_s(phase, 0, failed) == (delay_s if has_time else None)
