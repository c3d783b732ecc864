"""Full text through the real SDK: both syntaxes, fields, modes, facets, order, pages."""

from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError

from tests.contract.search_server.conftest import MadeIndex, MakeIndex


def ids(index: MadeIndex, text: str | None = None, **options: Any) -> list[str]:
    return [row["id"] for row in index.client.search(text, **options)]


@pytest.mark.parametrize(
    ("text", "expected_ids"),
    [
        ("valve", {"1"}),
        ("VALVES", {"1"}),
        ("wren herons", {"2", "3"}),
        (r"\-flow \"wren\"", {"1", "2", "3"}),
        ("AB-100", {"1"}),
        ("*", {"1", "2", "3", "4", "5"}),
        ("", {"1", "2", "3", "4", "5"}),
        ("!!", set()),
    ],
)
def test_words_in_the_simple_syntax(books: MadeIndex, text: str, expected_ids: set[str]) -> None:
    assert set(ids(books, text)) == expected_ids


@pytest.mark.parametrize(
    ("text", "expected_ids"),
    [
        ("wren herons", {"2", "3"}),
        ("title:birds", {"2", "3"}),
        ("+title:birds +content:river", {"3"}),
        ('"flow of a river"', {"3"}),
        ('"river of flow"', set()),
        ('"flow river"', set()),
        ('"flow river"~2^0.25', {"3"}),
        ("title:(garden valves)", {"1", "2"}),
        ("(+content:wren^0.001 +title:birds)", {"2"}),
        ("tags:birds^3 title:birds", {"2", "3"}),
        (r"AB\-100", {"1"}),
        ("mark*", {"4"}),
        ("valv~1", {"1"}),
        ("heran~1 herrons~2", {"3"}),
        ("*:*", {"1", "2", "3", "4", "5"}),
    ],
)
def test_full_syntax(books: MadeIndex, text: str, expected_ids: set[str]) -> None:
    assert set(ids(books, text, query_type="full")) == expected_ids


def test_a_boost_counts_in_the_score(books: MadeIndex) -> None:
    assert ids(books, "title:garden^9 title:valves", query_type="full") == ["2", "1"]
    assert ids(books, "(title:garden) (title:valves)^9", query_type="full") == ["1", "2"]


@pytest.mark.parametrize(
    "text",
    [
        "title:",
        "(birds",
        "birds)",
        '"open',
        "pages:3",
        "nowhere:x",
        "a AND b",
        "/x/",
        "x~7",
        "[a TO b]",
        "wr?n",
    ],
)
def test_what_the_full_syntax_has_no_meaning_for_is_a_400(books: MadeIndex, text: str) -> None:
    with pytest.raises(HttpResponseError) as refused:
        ids(books, text, query_type="full")
    assert refused.value.status_code == 400


@pytest.mark.parametrize("text", ["birds + water", "birds -water", '"a b"', "her*", "(wren | market)"])
def test_an_operator_of_the_simple_syntax_is_a_400(books: MadeIndex, text: str) -> None:
    with pytest.raises(HttpResponseError) as refused:
        ids(books, text)
    assert refused.value.status_code == 400


def test_fields_and_mode_narrow_a_search(books: MadeIndex) -> None:
    assert set(ids(books, "water", search_fields=["title"])) == {"3", "4"}
    assert set(ids(books, "water birds")) == {"1", "2", "3", "4"}
    assert set(ids(books, "water birds", search_mode="all")) == {"3"}
    with pytest.raises(HttpResponseError, match="not searchable"):
        ids(books, "x", search_fields=["pages"])


def test_orderby_sorts_with_absent_values_first(books: MadeIndex) -> None:
    assert ids(books, order_by=["pages"]) == ["5", "2", "3", "1", "4"]
    assert ids(books, order_by=["pages desc"]) == ["4", "1", "3", "2", "5"]
    assert ids(books, order_by=["genre desc", "price"]) == ["2", "3", "1", "4", "5"]
    assert ids(books, "water", order_by=["search.score() desc"]) == ids(books, "water")
    with pytest.raises(HttpResponseError, match="not a sortable"):
        ids(books, order_by=["tags"])


def test_select_returns_only_what_was_asked(books: MadeIndex) -> None:
    row = next(iter(books.client.search("valve", select=["id", "code"])))
    assert {key: value for key, value in row.items() if not key.startswith("@")} == {
        "id": "1",
        "code": "AB-100",
    }
    for field in ("secret_note", "nothing"):
        with pytest.raises(HttpResponseError) as refused:
            ids(books, select=[field])
        assert refused.value.status_code == 400


def test_facets_count_the_matches(books: MadeIndex) -> None:
    facets = books.client.search("*", facets=["tags,count:1", "genre,sort:value"]).get_facets()
    assert facets is not None
    assert facets["tags"] == [{"value": "birds", "count": 2}]
    assert [row["value"] for row in facets["genre"]] == ["economics", "engineering", "nature"]
    narrowed = books.client.search("*", facets=["genre"], filter="in_stock eq true").get_facets()
    assert narrowed == {"genre": [{"value": "engineering", "count": 1}, {"value": "nature", "count": 1}]}
    with pytest.raises(HttpResponseError, match="not facetable"):
        books.client.search("*", facets=["vector"]).get_facets()


def test_pages_follow_each_other_without_gap_or_repeat(make_index: MakeIndex) -> None:
    fields = [{"name": "id", "type": "Edm.String", "key": True}, {"name": "text", "type": "Edm.String"}]
    index = make_index(fields, [{"id": f"{number:04}", "text": "same words"} for number in range(1120)])
    for text in ("*", "words"):
        pages = [list(page) for page in index.client.search(text, include_total_count=True).by_page()]
        assert [len(page) for page in pages] == [50] * 22 + [20]
        assert len({row["id"] for page in pages for row in page}) == 1120
    assert len(ids(index, "words", top=1105)) == 1105
    assert ids(index, "words", top=2, skip=3) == ["0003", "0004"]
    answer = index.client.search("words", include_total_count=True, top=0)
    assert (answer.get_count(), list(answer)) == (1120, [])
