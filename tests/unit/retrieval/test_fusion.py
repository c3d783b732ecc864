"""Fusing rankings."""

import pytest

from shared.retrieval.fusion import cosine_of_vector_score, fuse_ranks, fuse_scores, score_spread, top_score


def test_an_id_high_in_both_rankings_wins() -> None:
    best, score = fuse_ranks([["a", "b"], ["a", "c"]])[0]
    assert (best, round(score, 6)) == ("a", round(2 / 61, 6))


def test_ties_keep_the_order_of_first_appearance() -> None:
    assert [item for item, _ in fuse_ranks([["b"], ["a"]])] == ["b", "a"]


def test_k_must_be_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        fuse_ranks([["a"]], k=0)


def test_scores_fuse_on_a_scale_of_zero_to_one() -> None:
    fused = dict(fuse_scores({"a": 12.0, "b": 6.0}, {"a": 1.0, "c": 0.4}))
    assert fused == {
        "a": pytest.approx(1.0),
        "c": pytest.approx(0.3),
        "b": pytest.approx(0.125 + 0.75 * 0.4),
    }


def test_a_missing_cosine_counts_as_the_lowest_seen_not_as_zero() -> None:
    assert dict(fuse_scores({"only-keyword": 1.0}, {"x": 0.5}))["only-keyword"] == pytest.approx(0.625)


def test_without_keyword_hits_the_cosine_alone_decides() -> None:
    assert fuse_scores({}, {"far": 0.1, "near": 0.9})[0][0] == "near"


def test_negative_cosines_count_as_zero() -> None:
    assert dict(fuse_scores({}, {"opposite": -0.7}))["opposite"] == 0.0


@pytest.mark.parametrize("cosine", [1.0, 0.5, 0.0, -1.0])
def test_the_service_score_gives_back_its_cosine(cosine: float) -> None:
    assert cosine_of_vector_score(1 / (1 + (1 - cosine))) == pytest.approx(cosine)


def test_a_vector_score_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        cosine_of_vector_score(0.0)


def test_confidence_of_nothing_is_zero() -> None:
    assert top_score([]) == 0.0
    assert score_spread([]) == 0.0
    assert score_spread([0.9]) == 0.0


def test_spread_is_the_lead_over_the_fifth() -> None:
    assert score_spread([0.9, 0.8, 0.7, 0.6, 0.5, 0.1]) == pytest.approx(0.4)
