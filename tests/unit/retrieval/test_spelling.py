"""Tests for typos between words."""

import pytest

from shared.retrieval.spelling import nearest, slips_between

KNOWN = ("harbour", "handbook", "plan", "wartungsbericht", "2024")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("habour", "harbour"),
        ("hadnbook", "handbook"),
        ("wartungsbreicth", "wartungsbericht"),
        ("arbour", None),  # the first letter must match
        ("plane", None),  # too short to be sure
        ("2023", None),  # a number is never a slip
        ("hbuor", None),
    ],
)
def test_a_slip_or_two_still_means_the_word(word: str, expected: str | None) -> None:
    assert nearest(word, KNOWN) == expected


def test_between_two_equally_near_words_nothing_is_chosen() -> None:
    assert nearest("statian", ("station", "statisn")) is None


@pytest.mark.parametrize(
    ("one", "other", "slips"),
    [("plan", "plan", 0), ("palns", "plans", 1), ("plan", "plans", 1), ("plan", "plot", 2), ("", "abc", 3)],
)
def test_neighbours_that_changed_places_are_one_slip(one: str, other: str, slips: int) -> None:
    assert slips_between(one, other) == slips
