"""Blocks in the order that their documents and neighbours suggest."""

import pytest

from shared.retrieval.fusion import Place, documents_to_narrow_to, naming_share, order_blocks


def test_a_named_document_moves_its_blocks_before_better_ones_of_others() -> None:
    fused = {"other": 0.6, "named": 0.5}
    places = {"other": Place("a", 1), "named": Place("b", 1)}
    assert order_blocks(fused, places, {}) == ["other", "named"]
    assert order_blocks(fused, places, {"b": 4.0}) == ["named", "other"]


def test_a_name_that_says_little_moves_little() -> None:
    fused = {"other": 0.6, "named": 0.5}
    places = {"other": Place("a", 1), "named": Place("b", 1)}
    assert order_blocks(fused, places, {"b": 0.1}) == ["other", "named"]


def test_no_document_is_left_out_because_another_is_named() -> None:
    places = {"x": Place("a", None), "y": Place("b", None)}
    assert set(order_blocks({"x": 0.1, "y": 0.9}, places, {"b": 9.0})) == {"x", "y"}


def test_the_document_of_many_good_blocks_comes_before_one_lucky_block() -> None:
    fused = {"lucky": 0.71, "one": 0.7, "two": 0.69, "three": 0.68, "far": 0.2}
    places = {name: Place("many", page) for name, page in (("one", 1), ("two", 5), ("three", 9))}
    places |= {"lucky": Place("single", 1), "far": Place("other", 1)}
    assert order_blocks(fused, places, {})[0] == "one"


def test_a_page_beside_a_good_page_comes_before_a_lonely_one() -> None:
    fused = {"good": 0.9, "beside": 0.5, "lonely": 0.51}
    places = {"good": Place("a", 3), "beside": Place("a", 4), "lonely": Place("a", 40)}
    assert order_blocks(fused, places, {}) == ["good", "beside", "lonely"]


def test_a_page_of_two_good_blocks_comes_before_a_page_of_one() -> None:
    fused = {"first": 0.6, "second": 0.58, "lonely": 0.61}
    places = {"first": Place("a", 3), "second": Place("a", 3), "lonely": Place("a", 40)}
    assert order_blocks(fused, places, {})[0] == "first"


def test_blocks_without_a_page_have_no_neighbours() -> None:
    places = {"x": Place("a", None), "y": Place("a", None)}
    assert order_blocks({"x": 0.5, "y": 0.4}, places, {}) == ["x", "y"]


def test_nothing_found_is_nothing_ordered() -> None:
    assert order_blocks({}, {}, {"a": 1.0}) == []


def test_only_documents_named_nearly_as_well_as_the_best_are_searched_apart() -> None:
    assert documents_to_narrow_to({"a": 4.0, "b": 2.1, "c": 1.0}) == ("a", "b")
    assert documents_to_narrow_to({}) == ()


@pytest.mark.parametrize(("score", "share"), [(0.0, 0.0), (2.0, 0.5), (-1.0, 0.0)])
def test_a_name_is_surer_the_rarer_it_is(score: float, share: float) -> None:
    assert naming_share(score) == share
