"""The adapters' handling of limits and failures of the search service, which the in-memory index lacks."""

import asyncio
from typing import Any

import pytest

from shared.platform.azure_search import AzureSearchIndex
from shared.platform.errors import (
    AuthenticationError,
    ConfigurationError,
    DependencyError,
    IndexNotFoundError,
)
from shared.platform.search import SearchRequest
from shared.retrieval.index_admin import AzureSearchAdmin
from shared.wiring import Connections
from tests.contract.clients.conftest import NOWHERE, Connect
from tests.contract.clients.test_search_index import definition
from tests.servers import SearchServer, unique_name

pytestmark = pytest.mark.contract


def index_of(connections: Connections, name: str) -> AzureSearchIndex:
    return AzureSearchIndex(connections.search_index(name), name, timeout_s=30, key_field="block_id")


def admin_of(connections: Connections) -> AzureSearchAdmin:
    return AzureSearchAdmin(connections.search_admin, timeout_s=30)


@pytest.fixture
async def index(to_search: Connections) -> AzureSearchIndex:
    name = unique_name("limits")
    await admin_of(to_search).ensure_index(definition(name))
    return index_of(to_search, name)


async def test_more_rows_than_a_batch_and_a_page_hold_come_back_whole(index: AzureSearchIndex) -> None:
    await index.upload([{"block_id": f"r{n:04d}", "page_number": n} for n in range(1100)])
    # The service returns at most 1,000 rows, with a token for the remaining rows.
    request = SearchRequest(order_by=("page_number",), select=("page_number",), top=1100, count=True)
    page = await index.search(request)
    assert [row["page_number"] for row in page.rows] == list(range(1100))
    assert page.count == 1100


async def test_more_than_a_megabyte_goes_in_several_batches(
    index: AzureSearchIndex,
) -> None:
    text = "x" * 600_000
    await index.upload([{"block_id": f"big{n}", "content": text} for n in range(4)])
    page = await index.search(SearchRequest(select=("block_id",), count=True))
    assert page.count == 4


async def test_rows_that_do_not_fit_the_schema_point_to_the_index(index: AzureSearchIndex) -> None:
    with pytest.raises(ConfigurationError, match="rejected the rows") as refused:
        await index.upload([{"block_id": "a", "colour": "red"}])
    assert "EMBEDDING_DIMENSIONS" in refused.value.hints[0]


async def test_a_missing_index_is_named(to_search: Connections) -> None:
    with pytest.raises(IndexNotFoundError, match="no-such-index") as missing:
        await index_of(to_search, "no-such-index").search(SearchRequest(text="valve"))
    assert "AZURE_SEARCH_ENDPOINT" in missing.value.hints[0]
    with pytest.raises(IndexNotFoundError, match="no-such-index"):
        await index_of(to_search, "no-such-index").upload([{"block_id": "a"}])


async def test_a_wrong_key_names_the_variable_and_not_the_key(
    search_server: SearchServer, connect: Connect
) -> None:
    wrong = connect(azure_search_endpoint=search_server.endpoint, azure_search_api_key="wrong-key")
    with pytest.raises(AuthenticationError) as refused:
        await index_of(wrong, "any").search(SearchRequest())
    assert "AZURE_SEARCH_API_KEY" in refused.value.hints[0]
    assert "wrong-key" not in repr(refused.value)


async def test_a_service_out_of_reach_names_the_endpoints_setting(connect: Connect) -> None:
    with pytest.raises(DependencyError) as unreachable:
        await index_of(connect(azure_search_endpoint=NOWHERE), "any").search(SearchRequest())
    assert "AZURE_SEARCH_ENDPOINT" in unreachable.value.hints[0]
    assert unreachable.value.retryable


async def test_ensuring_an_index_twice_changes_nothing_the_second_time(to_search: Connections) -> None:
    index_definition = definition(unique_name("ensured"))
    assert await admin_of(to_search).ensure_index(index_definition) is True
    assert await admin_of(to_search).ensure_index(index_definition) is False


async def test_a_new_field_is_added_and_rows_keep_what_they_have(
    to_search: Connections, index: AzureSearchIndex
) -> None:
    name = unique_name("grown")
    await admin_of(to_search).ensure_index(definition(name))
    grown = index_of(to_search, name)
    await grown.upload([{"block_id": "a", "kind": "manual"}])
    index_definition: dict[str, Any] = definition(name)
    index_definition["fields"].append({"name": "language", "type": "Edm.String", "filterable": True})
    assert await admin_of(to_search).ensure_index(index_definition) is True
    await grown.merge([{"block_id": "a", "language": "de"}])
    page = await grown.search(SearchRequest(filter="language eq 'de' and kind eq 'manual'"))
    assert len(page.rows) == 1


async def test_processes_that_extend_an_index_at_the_same_moment_all_succeed(to_search: Connections) -> None:
    name = unique_name("raced")
    await admin_of(to_search).ensure_index(definition(name))
    index_definition: dict[str, Any] = definition(name)
    index_definition["fields"].append({"name": "language", "type": "Edm.String", "filterable": True})
    changed = await asyncio.gather(*(admin_of(to_search).ensure_index(index_definition) for _ in range(6)))
    assert True in changed
    assert await admin_of(to_search).ensure_index(index_definition) is False


async def test_processes_that_create_an_index_at_the_same_moment_all_succeed(to_search: Connections) -> None:
    index_definition = definition(unique_name("raced"))
    changed = await asyncio.gather(*(admin_of(to_search).ensure_index(index_definition) for _ in range(6)))
    assert changed.count(True) == 1


async def test_other_vector_dimensions_need_a_new_index_and_the_message_says_so(
    to_search: Connections,
) -> None:
    name = unique_name("dimensions")
    await admin_of(to_search).ensure_index(definition(name))
    with pytest.raises(ConfigurationError, match="content_vector: dimensions 3, not 5") as changed:
        await admin_of(to_search).ensure_index(definition(name, dimensions=5))
    assert any("EMBEDDING_DIMENSIONS" in hint for hint in changed.value.hints)


async def test_a_definition_that_makes_no_sense_is_a_configuration_error(to_search: Connections) -> None:
    nonsense = {"name": unique_name("bad"), "fields": [{"name": "a", "type": "Edm.Colour"}]}
    with pytest.raises(ConfigurationError, match="refused the index definition"):
        await admin_of(to_search).ensure_index(nonsense)
