"""The tables of a document change and go with it, and only its readers find their cards."""

import pytest

from shared.access.models import UserContext
from shared.platform.names import DOCUMENTS, WORK
from shared.platform.search import SearchRequest
from shared.retrieval.blocks import DocumentBlocks
from shared.retrieval.secured_index import SecuredIndex
from shared.tables.table_files import get_catalog
from shared.wiring import Services
from tests.contract.ingestion.driving import drop, ingest, state_of, unique

pytestmark = pytest.mark.contract
SALES = "Region,Revenue\nNorth,120\nSouth,80\n"


async def cards(services: Services, user: str) -> list[str]:
    """The cards that a user's searches may find."""
    index = SecuredIndex(services.content_index, UserContext(user_id=user))
    return [
        str(row["content"]) for row in (await index.search(SearchRequest(filter="block_type eq 'card'"))).rows
    ]


async def tables_of(services: Services, doc_id: str) -> list[str]:
    found = services.blobs.list_blobs(WORK, f"views/{doc_id}/")
    return [blob.name.rpartition("/")[2] async for blob in found if "tables." in blob.name]


async def test_a_table_lives_as_long_as_its_version(services: Services) -> None:
    name = unique(".csv")
    await drop(services, name, SALES, {"acl": "anna"})
    await ingest(services, name, "first")
    state = await state_of(services, name)
    first = await get_catalog(services.blobs, state.doc_id, state.content_hash)
    assert first is not None
    assert first.tables[0].row_count == 2
    assert await tables_of(services, state.doc_id) == ["tables.json", "tables.sqlite"]

    await drop(services, name, f"{SALES}East,10\n", {"acl": "anna"})
    await ingest(services, name, "second")
    state = await state_of(services, name)
    second = await get_catalog(services.blobs, state.doc_id, state.content_hash)
    assert second is not None
    assert second.tables[0].row_count == 3
    assert await tables_of(services, state.doc_id) == ["tables.json", "tables.sqlite"]
    assert ["3 rows" in card for card in await cards(services, "anna")] == [True]

    await services.blobs.delete(DOCUMENTS, name)
    await ingest(services, name, "third")
    assert await tables_of(services, state.doc_id) == []
    assert await cards(services, "anna") == []


async def test_a_card_is_found_by_readers_alone_and_is_no_passage(services: Services) -> None:
    name = unique(".csv")
    await drop(services, name, SALES, {"acl": "anna"})
    await ingest(services, name)
    state = await state_of(services, name)
    assert len(await cards(services, "anna")) == 1
    assert await cards(services, "bob") == []
    index = SecuredIndex(services.content_index, UserContext(user_id="anna"))
    read = DocumentBlocks(index)
    passages = [*await read.pages(state.doc_id, 1, 1), *await read.whole(state.doc_id)]
    assert [hit.block_type for hit in passages] == ["text", "text"]
