"""Measures of rankings, on rankings small enough to reckon by hand."""

import math

from evals.retrieval.metrics import documents_of, first_of_each, hit_at, mean, ndcg_at, recall_at

RANKING = [("a.pdf", 3), ("b.pdf", 1), ("a.pdf", 4)]


def test_recall_counts_the_share_found() -> None:
    assert recall_at(RANKING, [("a.pdf", 4), ("c.pdf", 1)], 3) == 0.5
    assert recall_at(RANKING, [("a.pdf", 4)], 2) == 0.0
    assert recall_at(RANKING, [], 3) == 0.0


def test_a_hit_is_any_relevant_target() -> None:
    assert hit_at(RANKING, [("b.pdf", 1)], 1) == 0.0
    assert hit_at(RANKING, [("b.pdf", 1)], 2) == 1.0


def test_gain_is_discounted_by_rank() -> None:
    assert ndcg_at(RANKING, [("a.pdf", 3)], 10) == 1.0
    assert math.isclose(ndcg_at(RANKING, [("b.pdf", 1)], 10), 1 / math.log2(3))
    assert ndcg_at(RANKING, [], 10) == 0.0


def test_pages_imply_a_ranking_of_documents() -> None:
    assert documents_of(RANKING) == [("a.pdf", None), ("b.pdf", None)]
    assert first_of_each([("a", 1), ("a", 1), ("b", 1)]) == [("a", 1), ("b", 1)]


def test_nothing_has_no_mean() -> None:
    assert mean([]) is None
    assert mean([0.5, 1.0]) == 0.75
