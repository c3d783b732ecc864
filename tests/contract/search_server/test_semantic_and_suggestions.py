"""The semantic query type, suggest and autocomplete through the real SDK."""

from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.search.documents.models import VectorizedQuery

from tests.contract.search_server.conftest import MadeIndex


def test_semantic_hits_carry_scores_captions_and_an_answer(books: MadeIndex) -> None:
    answer = books.client.search(
        "where does a heron stand",
        query_type="semantic",
        semantic_configuration_name="books",
        query_caption="extractive",
        query_answer="extractive",
        query_answer_count=2,
    )
    hits = list(answer)
    assert hits[0]["id"] == "3"
    rerankers = [hit["@search.reranker_score"] for hit in hits]
    assert rerankers == sorted(rerankers, reverse=True)
    assert all(0 <= score <= 4 for score in rerankers)
    (caption,) = hits[0]["@search.captions"]
    assert caption.text == "A heron stands in the flow of a river."
    assert caption.highlights == "A <em>heron</em> <em>stands</em> in the flow of a river."
    (found,) = answer.get_answers() or []
    assert (found.key, found.text, found.score) == ("3", caption.text, 1.0)


def test_semantic_reranks_what_vectors_found(books: MadeIndex) -> None:
    query = VectorizedQuery(vector=[1.0, 0.9, 0.8, 0.7], k_nearest_neighbors=4, fields="vector")
    hits = list(
        books.client.search(
            "small singing bird",
            vector_queries=[query],
            query_type="semantic",
            semantic_configuration_name="books",
        )
    )
    assert hits[0]["id"] == "2"
    assert len(hits) == 4


@pytest.mark.parametrize(
    "options",
    [
        {"query_type": "semantic"},
        {"query_type": "semantic", "semantic_configuration_name": "other"},
        {"query_type": "semantic", "semantic_configuration_name": "books", "order_by": ["pages"]},
        {"query_answer": "extractive"},
    ],
)
def test_a_semantic_query_that_cannot_be_ranked_is_a_400(books: MadeIndex, options: dict[str, Any]) -> None:
    with pytest.raises(HttpResponseError) as refused:
        list(books.client.search("birds", **options))
    assert refused.value.status_code == 400


def test_suggest_returns_whole_texts_and_the_key(books: MadeIndex) -> None:
    suggestions = books.client.suggest("bir", "sg")
    assert {row["id"]: row.text for row in suggestions} == {"2": "Garden birds", "3": "Water birds"}
    marked = books.client.suggest("garden bir", "sg", highlight_pre_tag="<b>", highlight_post_tag="</b>")
    assert [row.text for row in marked] == ["<b>Garden</b> <b>birds</b>"]
    selected = books.client.suggest("bir", "sg", select=["title", "pages"], order_by=["pages desc"], top=1)
    assert (selected[0]["title"], selected[0]["pages"]) == ("Water birds", 240)


def test_suggest_respects_filter_and_tolerates_a_typo(books: MadeIndex) -> None:
    assert [row["id"] for row in books.client.suggest("bir", "sg", filter="in_stock eq true")] == ["3"]
    assert books.client.suggest("bjrd", "sg") == []
    assert {row["id"] for row in books.client.suggest("bjrd", "sg", use_fuzzy_matching=True)} == {"2", "3"}


@pytest.mark.parametrize(
    ("typed", "mode", "texts"),
    [
        ("he", "oneTerm", {"heron", "herons"}),
        ("small bi", "oneTerm", {"bird", "birds"}),
        ("flow o", "oneTermWithContext", {"of"}),
        ("garden bi", "oneTermWithContext", {"garden birds"}),
        ("heron s", "twoTerms", {"stands in", "sings loudly", "safety comes", "small bird"}),
    ],
)
def test_autocomplete(books: MadeIndex, typed: str, mode: str, texts: set[str]) -> None:
    completed = books.client.autocomplete(typed, "sg", mode=mode)
    if typed == "flow o":
        texts = {"flow of"}
    assert {row.text for row in completed} == texts


def test_autocomplete_shows_nothing_of_filtered_documents(books: MadeIndex) -> None:
    (only,) = books.client.autocomplete("her", "sg", filter="id eq '3'", top=1)
    assert only.query_plus_text in ("heron", "herons")
    assert books.client.autocomplete("her", "sg", filter="id eq '2'") == []


def test_an_unknown_suggester_is_a_400(books: MadeIndex) -> None:
    with pytest.raises(HttpResponseError) as refused:
        books.client.suggest("x", "other")
    assert refused.value.status_code == 400
