"""Measures of an answer's words."""

import math

import pytest

from evals.evaluation.answer_measures import answer_token_f1, percentile


@pytest.mark.parametrize(
    ("text", "reference", "f1"),
    [
        ("The tail is two metres long. [1]", "tail is two metres long", 1.0),
        ("**Two** metres", "two metres", 1.0),
        ("$1,577.00", "1577", 1.0),
        ("[manual](https://example.org/a)", "manual", 1.0),
        ("red", "blue", 0.0),
        ("", "blue", 0.0),
        ("the", "a", 0.0),
        ("two metres of tail", "two metres", 2 / 3),
        ("red red", "red", 2 / 3),
    ],
)
def test_words_in_common_make_the_f1(text: str, reference: str, f1: float) -> None:
    assert math.isclose(answer_token_f1(text, [reference]), f1)


def test_the_best_reference_counts() -> None:
    assert answer_token_f1("blue", ["red", "blue"]) == 1.0
    assert answer_token_f1("blue", []) == 0.0


def test_a_percentile_is_a_value_that_was_seen() -> None:
    assert percentile([3.0, 1.0, 2.0, 4.0], 0.5) == 2.0
    assert percentile([3.0, 1.0, 2.0, 4.0], 0.95) == 4.0
    assert percentile([7.0], 0.5) == 7.0
    assert percentile([], 0.5) is None


def test_a_picture_adds_no_words() -> None:
    shown = "It is blue.\n\n![A pump (2) curve](/api/documents/d/figures/0a.png) (Source: m (1).pdf, S. 3)"
    assert answer_token_f1(shown, ["it is blue"]) == 1.0
