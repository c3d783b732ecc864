"""The contract of `SearchIndex`, in memory and with the local search server."""

from typing import Any

import pytest

from shared.access.models import UserContext
from shared.access.security_filter import security_filter
from shared.platform.azure_search import AzureSearchIndex
from shared.platform.errors import DependencyError, InvalidQueryError
from shared.platform.search import FacetValue, SearchIndex, SearchRequest, VectorQuery
from shared.retrieval.index_admin import AzureSearchAdmin
from tests.contract.clients.conftest import Connect, connect_search
from tests.fakes.local_engine import LocalSearchIndex
from tests.fakes.search_index import InMemorySearchIndex
from tests.servers import unique_name

ROWS: list[dict[str, Any]] = [
    {
        "block_id": "b1",
        "content": "The relief valve opens at twelve bar.",
        "kind": "manual",
        "page_number": 4,
        "content_vector": [1.0, 0.0, 0.0],
        "access_control_list": ["engineering"],
    },
    {
        "block_id": "b2",
        "content": "Holiday requests go to the team lead.",
        "kind": "policy",
        "page_number": 1,
        "content_vector": [0.0, 1.0, 0.0],
        "access_control_list": ["*"],
    },
    {
        "block_id": "b3",
        "content": "Check the valve seat every year.",
        "kind": "manual",
        "page_number": 9,
        "content_vector": [0.8, 0.6, 0.0],
        "access_control_list": ["engineering", "o'brien"],
    },
]


def definition(name: str, dimensions: int = 3) -> dict[str, Any]:
    return {
        "name": name,
        "fields": [
            {"name": "block_id", "type": "Edm.String", "key": True, "filterable": True, "sortable": True},
            {"name": "content", "type": "Edm.String", "searchable": True},
            {"name": "kind", "type": "Edm.String", "filterable": True, "facetable": True},
            {"name": "page_number", "type": "Edm.Int32", "filterable": True, "sortable": True},
            {"name": "access_control_list", "type": "Collection(Edm.String)", "filterable": True},
            {"name": "thread_id", "type": "Edm.String", "filterable": True},
            {
                "name": "content_vector",
                "type": "Collection(Edm.Single)",
                "searchable": True,
                "dimensions": dimensions,
                "vectorSearchProfile": "near",
            },
        ],
        "vectorSearch": {
            "algorithms": [{"name": "hnsw", "kind": "hnsw"}],
            "profiles": [{"name": "near", "algorithm": "hnsw"}],
        },
    }


@pytest.fixture(params=["in memory", "engine", pytest.param("search server", marks=pytest.mark.contract)])
async def index(request: pytest.FixtureRequest, connect: Connect) -> SearchIndex:
    if request.param == "in memory":
        search_index: SearchIndex = InMemorySearchIndex("block_id")
    elif request.param == "engine":
        search_index = LocalSearchIndex(definition("blocks"))
    else:
        connections = connect_search(request.getfixturevalue("search_server"), connect)
        name = unique_name("blocks")
        await AzureSearchAdmin(connections.search_admin, timeout_s=30).ensure_index(definition(name))
        search_index = AzureSearchIndex(
            connections.search_index(name), name, timeout_s=30, key_field="block_id"
        )
    await search_index.upload(ROWS)
    return search_index


def ids(rows: tuple[dict[str, Any], ...]) -> list[str]:
    return [row["block_id"] for row in rows]


async def test_words_find_the_rows_that_hold_them_with_a_score(index: SearchIndex) -> None:
    page = await index.search(SearchRequest(text="valve", search_fields=("content",)))
    assert sorted(ids(page.rows)) == ["b1", "b3"]
    assert all(row["@search.score"] > 0 for row in page.rows)


async def test_mode_all_wants_every_word(index: SearchIndex) -> None:
    page = await index.search(SearchRequest(text="valve seat", search_mode="all"))
    assert ids(page.rows) == ["b3"]


async def test_a_vector_finds_its_nearest_rows_scored_by_distance(index: SearchIndex) -> None:
    nearest = VectorQuery(vector=(1.0, 0.0, 0.0), field="content_vector", k=2)
    page = await index.search(SearchRequest(vectors=(nearest,)))
    assert ids(page.rows) == ["b1", "b3"]
    assert [row["@search.score"] for row in page.rows] == pytest.approx([1.0, 1 / 1.2], abs=1e-4)


async def test_words_and_a_vector_together_rank_first_what_both_find(index: SearchIndex) -> None:
    nearest = VectorQuery(vector=(0.9, 0.4, 0.0), field="content_vector", k=3)
    page = await index.search(SearchRequest(text="yearly seat", vectors=(nearest,)))
    assert ids(page.rows)[0] == "b3"
    assert len(page.rows) == 3


async def test_the_filter_limits_the_neighbours_before_they_are_chosen(index: SearchIndex) -> None:
    nearest = VectorQuery(vector=(1.0, 0.0, 0.0), field="content_vector", k=1)
    page = await index.search(SearchRequest(vectors=(nearest,), filter="kind eq 'policy'"))
    assert ids(page.rows) == ["b2"]


@pytest.mark.parametrize(
    ("user", "visible"),
    [
        (UserContext(user_id="u1"), ["b2"]),
        (UserContext(user_id="u1", department="engineering"), ["b1", "b2", "b3"]),
        (UserContext(user_id="o'brien"), ["b2", "b3"]),
    ],
    ids=["a stranger", "an engineer", "a name with a quote"],
)
async def test_the_security_filter_shows_a_user_only_what_is_theirs(
    index: SearchIndex, user: UserContext, visible: list[str]
) -> None:
    page = await index.search(SearchRequest(filter=security_filter(user), order_by=("block_id",)))
    assert ids(page.rows) == visible


async def test_rows_carry_the_chosen_fields_and_the_score_and_nothing_else(index: SearchIndex) -> None:
    page = await index.search(SearchRequest(filter="block_id eq 'b1'", select=("block_id", "page_number")))
    assert page.rows == ({"block_id": "b1", "page_number": 4, "@search.score": 1.0},)


async def test_order_top_and_skip_page_through_the_rows(index: SearchIndex) -> None:
    order = ("page_number desc",)
    first = await index.search(SearchRequest(order_by=order, top=2, count=True))
    second = await index.search(SearchRequest(order_by=order, top=2, skip=2))
    assert (ids(first.rows), ids(second.rows)) == (["b3", "b1"], ["b2"])
    assert (first.count, second.count) == (3, None)


async def test_facets_count_the_values_of_a_field(index: SearchIndex) -> None:
    page = await index.search(SearchRequest(facets=("kind",)))
    assert page.facets == {"kind": (FacetValue(value="manual", count=2), FacetValue(value="policy", count=1))}


async def test_a_merge_changes_the_named_fields_and_leaves_the_others(index: SearchIndex) -> None:
    await index.merge([{"block_id": "b1", "page_number": 5}])
    page = await index.search(SearchRequest(filter="block_id eq 'b1'"))
    assert (page.rows[0]["page_number"], page.rows[0]["kind"]) == (5, "manual")


async def test_a_merge_into_a_missing_row_says_how_many_failed_and_why(index: SearchIndex) -> None:
    with pytest.raises(DependencyError, match=r"1 of 2 rows were not written.*not found"):
        await index.merge([{"block_id": "b1", "page_number": 5}, {"block_id": "gone", "page_number": 1}])


async def test_deleted_rows_are_gone_and_deleting_them_again_is_no_error(index: SearchIndex) -> None:
    await index.delete(["b1", "never-there"])
    await index.delete(["b1"])
    assert sorted(ids((await index.search(SearchRequest())).rows)) == ["b2", "b3"]


async def test_an_upload_replaces_the_whole_row(index: SearchIndex) -> None:
    await index.upload([{"block_id": "b2", "content": "New."}])
    page = await index.search(SearchRequest(filter="block_id eq 'b2'"))
    assert page.rows[0].get("page_number") is None


async def test_a_filter_that_is_not_well_formed_is_the_callers_error(index: SearchIndex) -> None:
    with pytest.raises(InvalidQueryError):
        await index.search(SearchRequest(filter="kind eq"))


async def test_nothing_to_write_writes_nothing(index: SearchIndex) -> None:
    await index.upload([])
    await index.delete([])
    assert len((await index.search(SearchRequest())).rows) == 3
