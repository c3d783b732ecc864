"""Vectors and fusion through the real SDK, with scores that can be computed by hand."""

from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.search.documents.models import VectorizableTextQuery, VectorizedQuery

from tests.contract.search_server.conftest import MadeIndex
from tests.contract.search_server.library import DIMENSIONS


def near(vector: list[float], k: int = 3, **options: Any) -> VectorizedQuery:
    return VectorizedQuery(vector=vector, k_nearest_neighbors=k, fields="vector", **options)


def scores(index: MadeIndex, text: str | None = None, **options: Any) -> dict[str, float]:
    return {row["id"]: row["@search.score"] for row in index.client.search(text, **options)}


def test_the_score_of_a_vector_comes_from_its_cosine(books: MadeIndex) -> None:
    score_by_id = scores(books, vector_queries=[near([0.0, 2.0, 0.0, 0.0], k=2)])
    assert score_by_id == {"2": pytest.approx(1.0), "1": pytest.approx(0.5)}


def test_a_filter_is_applied_before_the_neighbours_are_counted(books: MadeIndex) -> None:
    query = [near([1.0, 0.2, 0.1, 0.0], k=1)]
    assert list(scores(books, vector_queries=query, filter="genre eq 'nature'")) == ["2"]


def test_the_best_of_two_rankings_scores_two_sixtieths(books: MadeIndex) -> None:
    score_by_id = scores(books, "wren", vector_queries=[near([0.0, 1.0, 0.0, 0.0])])
    assert next(iter(score_by_id)) == "2"
    assert score_by_id["2"] == pytest.approx(2 / 60)
    assert len(score_by_id) == 3


def test_a_weight_counts_in_the_fusion(books: MadeIndex) -> None:
    queries = [near([1.0, 0, 0, 0], k=1, weight=3.0), near([0, 0, 1.0, 0], k=1)]
    assert scores(books, vector_queries=queries) == {"1": pytest.approx(3 / 60), "3": pytest.approx(1 / 60)}


def test_hybrid_respects_the_security_filter_in_both_halves(books: MadeIndex) -> None:
    acl = "access_control_list/any(acl: search.in(acl, 'u123,*', ','))"
    answer = books.client.search(
        "water birds", vector_queries=[near([1, 1, 1, 1], k=5)], filter=acl, include_total_count=True
    )
    assert {row["id"] for row in answer} == {"1", "2", "4"}
    assert answer.get_count() == 3


def test_documents_without_a_vector_are_never_neighbours(books: MadeIndex) -> None:
    books.client.upload_documents([{"id": "6", "title": "No vector"}])
    assert "6" not in scores(books, vector_queries=[near([1, 1, 1, 1], k=10)])


@pytest.mark.parametrize(
    "query",
    [
        near([1.0] * (DIMENSIONS + 1)),
        near([1.0], k=1),
        VectorizedQuery(vector=[1.0] * DIMENSIONS, k_nearest_neighbors=1, fields="title"),
        VectorizedQuery(vector=[1.0] * DIMENSIONS, k_nearest_neighbors=1, fields="nothing"),
        VectorizableTextQuery(text="birds", k_nearest_neighbors=1, fields="vector"),
    ],
)
def test_a_vector_query_that_does_not_fit_is_a_400(books: MadeIndex, query: VectorizedQuery) -> None:
    with pytest.raises(HttpResponseError) as refused:
        scores(books, vector_queries=[query])
    assert refused.value.status_code == 400
