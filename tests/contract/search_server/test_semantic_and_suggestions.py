"""The semantic query type, suggest and autocomplete through the real SDK."""

from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.search.documents.models import VectorizedQuery

from tests.contract.search_server.conftest import MadeIndex


def test_semantic_hits_carry_the_scores_of_the_ranker(books: MadeIndex) -> None:
    hits = list(
        books.client.search(
            "where does a heron stand", query_type="semantic", semantic_configuration_name="books"
        )
    )
    assert hits[0]["id"] == "3"
    rerankers = [hit["@search.reranker_score"] for hit in hits]
    assert rerankers == sorted(rerankers, reverse=True)
    assert all(0 <= score <= 4 for score in rerankers)


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
        {"semantic_query": "birds"},
    ],
)
def test_a_semantic_query_that_cannot_be_ranked_is_a_400(books: MadeIndex, options: dict[str, Any]) -> None:
    with pytest.raises(HttpResponseError) as refused:
        list(books.client.search("birds", **options))
    assert refused.value.status_code == 400


def test_suggest_returns_whole_texts_and_the_key(books: MadeIndex) -> None:
    suggestions = books.client.suggest("bir", "sg")
    assert {row["id"]: row.text for row in suggestions} == {"2": "Garden birds", "3": "Water birds"}
    assert [row.text for row in books.client.suggest("garden bir", "sg", select=["title"])] == [
        "Garden birds"
    ]
    assert [row["id"] for row in books.client.suggest("bir", "sg", filter="in_stock eq true")] == ["3"]
    assert books.client.suggest("bjrd", "sg") == []


def test_autocomplete_completes_the_last_word_and_shows_nothing_of_filtered_documents(
    books: MadeIndex,
) -> None:
    assert {row.text for row in books.client.autocomplete("he", "sg")} == {"heron", "herons"}
    completed = books.client.autocomplete("small bi", "sg")
    assert {row.query_plus_text for row in completed} == {"small bird", "small birds"}
    assert books.client.autocomplete("her", "sg", filter="id eq '2'") == []


def test_an_unknown_suggester_is_a_400(books: MadeIndex) -> None:
    with pytest.raises(HttpResponseError) as refused:
        books.client.suggest("x", "other")
    assert refused.value.status_code == 400
