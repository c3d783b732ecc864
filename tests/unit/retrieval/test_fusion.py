"""Tests for fused scores, the order of blocks, and the confidence of a search."""

import pytest

from shared.retrieval.fusion import (
    BlockPosition,
    calibrated,
    cosine_of_vector_score,
    documents_to_narrow_to,
    fuse_ranks,
    fuse_scores,
    naming_share,
    order_blocks,
    relevant_cosine,
    score_spread,
    top_score,
)
from tests.fakes.services import fake_settings


def test_an_id_high_in_both_rankings_wins() -> None:
    best, score = fuse_ranks([["a", "b"], ["a", "c"]])[0]
    assert (best, score) == ("a", 0.5)


def test_ties_keep_the_order_of_first_appearance() -> None:
    assert [item for item, _ in fuse_ranks([["b"], ["a"]])] == ["b", "a"]


def test_the_best_for_one_phrasing_comes_before_what_fits_all_of_them_a_little() -> None:
    rankings = [[f"{name}-{rank}" for rank in range(9)] + ["vague"] for name in ("first", "second", "third")]
    order = [item for item, _ in fuse_ranks(rankings)]
    assert order[:3] == ["first-0", "second-0", "third-0"]


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


def test_without_a_vector_search_the_keywords_alone_decide() -> None:
    assert fuse_scores({"best": 0.8, "half": 0.4}, {}) == [("best", 0.25), ("half", 0.125)]


def test_keyword_scores_of_zero_say_nothing() -> None:
    ((block_id, score),) = fuse_scores({"a": 0.0}, {"a": 0.4})
    assert block_id == "a"
    assert score == pytest.approx(0.3)


@pytest.mark.parametrize(("cosine", "score"), [(-0.7, 0.0), (1.2, 0.75)])
def test_cosines_count_from_zero_to_one(cosine: float, score: float) -> None:
    assert fuse_scores({}, {"a": cosine}) == [("a", score)]


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


def test_spread_is_the_lead_over_the_fifth_or_the_last_of_fewer() -> None:
    assert score_spread([0.9, 0.8, 0.7, 0.6, 0.5, 0.1]) == pytest.approx(0.4)
    assert score_spread([0.7, 0.9, 0.4]) == pytest.approx(0.5)
    assert score_spread([0.9, 0.7]) == pytest.approx(0.2)


def test_a_named_document_moves_its_blocks_before_better_ones_of_others() -> None:
    fused = {"other": 0.6, "named": 0.5}
    places = {"other": BlockPosition("a", 1), "named": BlockPosition("b", 1)}
    assert order_blocks(fused, places, {}) == ["other", "named"]
    assert order_blocks(fused, places, {"b": 4.0}) == ["named", "other"]


def test_a_name_that_says_little_moves_little() -> None:
    fused = {"other": 0.6, "named": 0.5}
    places = {"other": BlockPosition("a", 1), "named": BlockPosition("b", 1)}
    assert order_blocks(fused, places, {"b": 0.1}) == ["other", "named"]


def test_no_document_is_left_out_because_another_is_named() -> None:
    places = {"x": BlockPosition("a", None), "y": BlockPosition("b", None)}
    assert set(order_blocks({"x": 0.1, "y": 0.9}, places, {"b": 9.0})) == {"x", "y"}


def test_the_document_of_many_good_blocks_comes_before_one_lucky_block() -> None:
    fused = {"lucky": 0.71, "one": 0.7, "two": 0.69, "three": 0.68, "far": 0.2}
    places = {name: BlockPosition("many", page) for name, page in (("one", 1), ("two", 5), ("three", 9))}
    places |= {"lucky": BlockPosition("single", 1), "far": BlockPosition("other", 1)}
    assert order_blocks(fused, places, {})[0] == "one"


@pytest.mark.parametrize("page_number", [2, 4])
def test_a_page_beside_a_good_page_comes_before_a_lonely_one(page_number: int) -> None:
    fused = {"good": 0.9, "poor": 0.1, "beside": 0.5, "lonely": 0.51}
    places = {
        "good": BlockPosition("a", 3),
        "poor": BlockPosition("a", 3),
        "beside": BlockPosition("a", page_number),
        "lonely": BlockPosition("a", 40),
    }
    assert order_blocks(fused, places, {}) == ["good", "beside", "lonely", "poor"]
    places["beside"] = BlockPosition("a", 1)
    assert order_blocks(fused, places, {}) == ["good", "lonely", "beside", "poor"]


def test_a_document_weighs_what_its_blocks_have_above_the_worst_of_the_best() -> None:
    """Check that one good block and one fair block outweigh three that are fair or poor."""
    fused = {"a1": 0.7, "a2": 0.601, "b1": 0.61, "b2": 0.61, "b3": 0.51, "c": 0.5}
    places = {block: BlockPosition(block[0], None) for block in fused}
    assert order_blocks(fused, places, {}) == ["a1", "a2", "b1", "b2", "b3", "c"]


def test_a_single_block_is_its_own_order() -> None:
    assert order_blocks({"x": 0.5}, {"x": BlockPosition("a", 1)}, {}) == ["x"]


def test_a_page_of_two_good_blocks_comes_before_a_page_of_one() -> None:
    fused = {"first": 0.6, "second": 0.58, "lonely": 0.61}
    places = {
        "first": BlockPosition("a", 3),
        "second": BlockPosition("a", 3),
        "lonely": BlockPosition("a", 40),
    }
    assert order_blocks(fused, places, {})[0] == "first"


def test_blocks_without_a_page_have_no_neighbours() -> None:
    places = {"x": BlockPosition("a", None), "y": BlockPosition("a", None)}
    assert order_blocks({"x": 0.5, "y": 0.4}, places, {}) == ["x", "y"]


def test_nothing_found_is_nothing_ordered() -> None:
    assert order_blocks({}, {}, {"a": 1.0}) == []


def test_only_documents_named_nearly_as_well_as_the_best_are_searched_apart() -> None:
    assert documents_to_narrow_to({"a": 4.0, "b": 2.0, "c": 1.9}) == ("a", "b")
    assert documents_to_narrow_to({}) == ()


@pytest.mark.parametrize(("score", "share"), [(0.0, 0.0), (0.5, 0.2), (2.0, 0.5), (-1.0, 0.0)])
def test_a_name_is_surer_the_rarer_it_is(score: float, share: float) -> None:
    assert naming_share(score) == share


@pytest.mark.parametrize(("model", "cosine"), [("all-MiniLM-L6-v2", 0.70), ("text-embedding-3-large", 0.44)])
def test_what_answers_a_question_is_above_the_threshold_of_weak_scores_with_every_model(
    model: str, cosine: float
) -> None:
    on_scale = calibrated(cosine, relevant_cosine(model))
    ((_, score),) = fuse_scores({"block": 3.0}, {"block": on_scale})
    thresholds = fake_settings().thresholds
    assert score == pytest.approx(0.775)
    assert score > thresholds.low_retrieval_confidence_top_score
    ((_, unlike),) = fuse_scores({}, {"block": calibrated(cosine / 3, relevant_cosine(model))})
    assert unlike < thresholds.low_retrieval_confidence_top_score


def test_a_cosine_is_never_above_one_and_an_unknown_model_has_the_scale_as_it_is() -> None:
    assert calibrated(0.9, 0.44) == 1.0
    assert calibrated(0.5, relevant_cosine("another-model")) == 0.5
