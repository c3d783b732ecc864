"""Full text through the real SDK: both syntaxes, fields, modes, facets, order, pages."""

from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError

from tests.contract.search_server.conftest import MadeIndex, MakeIndex


def ids(made: MadeIndex, text: str | None = None, **options: Any) -> list[str]:
    return [row["id"] for row in made.client.search(text, **options)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("valve", {"1"}),
        ("VALVES", {"1"}),
        ("runs", {"1"}),
        ("wren heron", {"2", "3"}),
        ("wren + heron", set()),
        ("birds + water", {"3"}),
        ("birds + -water", {"2"}),
        ('"flow of a river"', {"3"}),
        ('"river of flow"', set()),
        ("her*", {"3"}),
        ("(wren | market) + (garden | water)", {"2", "4"}),
        ("the of a", set()),
        ("AB-100", {"1"}),
        ("*", {"1", "2", "3", "4", "5"}),
        ("", {"1", "2", "3", "4", "5"}),
        ("oslo", {"1"}),
        ('"unclosed (and + odd | ', set()),
    ],
)
def test_simple_syntax(books: MadeIndex, text: str, found: set[str]) -> None:
    assert set(ids(books, text)) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("title:birds", {"2", "3"}),
        ("title:birds AND content:river", {"3"}),
        ("birds NOT water", {"2"}),
        ("+birds -water", {"2"}),
        ("wren OR market", {"2", "4"}),
        ("valc~1", {"1"}),
        ("heran~1", {"3"}),
        ("wr?n", {"2"}),
        ("mark*", {"4"}),
        ("/he(ro|n)n/", {"3"}),
        ('"garden wren"~1', {"2"}),
        ('"garden wren"', set()),
        ("title:(garden OR valves)", {"1", "2"}),
        ("tags:birds^3 title:birds", {"2", "3"}),
        ("birds && river || markets", {"3"}),
        ("*:*", {"1", "2", "3", "4", "5"}),
        ("publisher/city:oslo", {"1"}),
    ],
)
def test_full_syntax(books: MadeIndex, text: str, found: set[str]) -> None:
    assert set(ids(books, text, query_type="full")) == found


@pytest.mark.parametrize(
    "text", ["title:", "(birds", "birds)", '"open', "pages:3", "nowhere:x", "a AND", "/(/", "x~7", "[a TO b]"]
)
def test_a_broken_full_query_is_a_400(books: MadeIndex, text: str) -> None:
    with pytest.raises(HttpResponseError) as refused:
        ids(books, text, query_type="full")
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
    row = next(iter(books.client.search("valve", select=["id", "publisher/name"])))
    assert {key for key in row if not key.startswith("@")} == {"id", "publisher"}
    assert row["publisher"] == {"name": "North Press"}
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
    made = make_index(fields, [{"id": f"{number:04}", "text": "same words"} for number in range(1120)])
    for text in ("*", "words"):
        pages = [list(page) for page in made.client.search(text, include_total_count=True).by_page()]
        assert [len(page) for page in pages] == [50] * 22 + [20]
        assert len({row["id"] for page in pages for row in page}) == 1120
    assert len(ids(made, "words", top=1105)) == 1105
    assert ids(made, "words", top=2, skip=3) == ["0003", "0004"]
    answer = made.client.search("words", include_total_count=True, top=0)
    assert (answer.get_count(), list(answer)) == (1120, [])
