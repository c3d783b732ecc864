"""Tests for ranking and answer metrics, on cases small enough to calculate by hand."""

import math

import pytest

from evals.evaluation.answer_measures import answer_token_f1, percentile
from evals.evaluation.question_set import Target
from evals.evaluation.ranking_measures import (
    documents_of,
    first_of_each,
    hit_at,
    ndcg_at,
    rank_of_first,
    recall_at,
)

RANKING: list[Target] = [("a.pdf", 3), ("b.pdf", 1), ("a.pdf", 4)]


def test_recall_counts_the_share_found() -> None:
    assert recall_at(RANKING, [("a.pdf", 4), ("c.pdf", 1)], 3) == 0.5
    assert recall_at(RANKING, [("a.pdf", 4)], 2) == 0.0
    assert recall_at(RANKING, [], 3) == 0.0


def test_an_acceptable_page_stands_for_a_missing_one_and_never_counts_on_top() -> None:
    assert recall_at(RANKING, [("a.pdf", 5)], 3, [("a.pdf", 4)]) == 1.0
    assert recall_at(RANKING, [("a.pdf", 3)], 3, [("a.pdf", 4)]) == 1.0
    assert recall_at(RANKING, [("a.pdf", 5), ("c.pdf", 1)], 3, [("a.pdf", 4)]) == 0.5


def test_a_hit_is_any_relevant_target() -> None:
    assert hit_at(RANKING, [("b.pdf", 1)], 1) == 0.0
    assert hit_at(RANKING, [("b.pdf", 1)], 2) == 1.0


def test_gain_is_discounted_by_rank_and_weighed_by_grade() -> None:
    assert ndcg_at(RANKING, {("a.pdf", 3): 1.0}, 10) == 1.0
    assert math.isclose(ndcg_at(RANKING, {("b.pdf", 1): 2.0}, 10), 1 / math.log2(3))
    graded: dict[Target, float] = {("a.pdf", 3): 1.0, ("b.pdf", 1): 2.0}
    assert math.isclose(ndcg_at(RANKING, graded, 10), (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3)))
    assert ndcg_at(RANKING, {("a.pdf", 4): 1.0}, 2) == 0.0
    assert ndcg_at(RANKING, {}, 10) == 0.0


def test_pages_imply_a_ranking_of_documents() -> None:
    assert documents_of(RANKING) == [("a.pdf", None), ("b.pdf", None)]
    assert first_of_each([("a", 1), ("a", 1), ("b", 1)]) == [("a", 1), ("b", 1)]


def test_the_first_rank_counts_from_one() -> None:
    assert rank_of_first(RANKING, [("b.pdf", 1), ("a.pdf", 4)]) == 2
    assert rank_of_first(RANKING, [("c.pdf", 1)]) is None


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
    answer_text = (
        "It is blue.\n\n![A pump (2) curve](/api/documents/d/figures/0a.png) (Source: m (1).pdf, S. 3)"
    )
    assert answer_token_f1(answer_text, ["it is blue"]) == 1.0
