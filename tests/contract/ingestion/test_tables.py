"""The tables of a document change and are deleted with it, and only its readers find their cards."""

from pathlib import Path

import pytest

from shared.access.models import UserContext
from shared.documents.ids import EVERYTHING, document_of_blob
from shared.ingestion.acceptance import is_duplicate_event
from shared.ingestion.changes import delete
from shared.ingestion.inventory import compare, take_inventory
from shared.platform.names import DOCUMENTS, WORK
from shared.platform.search import SearchRequest
from shared.retrieval.block_reading import DocumentBlocks
from shared.retrieval.secured_index import SecuredIndex
from shared.tables.models import identifier
from shared.tables.table_files import get_catalog
from shared.wiring import Services
from tests.contract.ingestion.driving import drop, ingest, state_of, unique

pytestmark = pytest.mark.contract
SALES = "Region,Revenue\nNorth,120\nSouth,80\n"


async def cards(services: Services, user: str) -> list[str]:
    """Return the cards that a user's searches may find."""
    index = SecuredIndex(services.content_index, UserContext(user_id=user), services.documents)
    return [
        str(row["content"]) for row in (await index.search(SearchRequest(filter="block_type eq 'card'"))).rows
    ]


async def tables_of(services: Services, doc_id: str) -> list[str]:
    blobs = services.blobs.list_blobs(WORK, f"versions/{doc_id}/")
    return [blob.name.rpartition("/")[2] async for blob in blobs if "tables." in blob.name]


async def test_a_table_lives_as_long_as_its_version(services: Services) -> None:
    name = unique(".csv")
    await drop(services, name, SALES, {"acl": "anna"})
    await ingest(services, name, "first")
    state = await state_of(services, name)
    first = await get_catalog(services.blobs, state.folder)
    assert first is not None
    assert first.tables[0].row_count == 2
    assert await tables_of(services, state.doc_id) == ["tables.json", "tables.sqlite"]

    await drop(services, name, f"{SALES}East,10\n", {"acl": "anna"})
    await ingest(services, name, "second")
    state = await state_of(services, name)
    second = await get_catalog(services.blobs, state.folder)
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
    index = SecuredIndex(services.content_index, UserContext(user_id="anna"), services.documents)
    read = DocumentBlocks(index)
    passages = [*await read.pages(state.doc_id, 1, 1), *await read.whole(state.doc_id)]
    assert [hit.block_type for hit in passages] == ["text", "text"]


HINTS = """tables:
  - synonyms: [turnover]
    questions:
      - question: How much is it?
        sql: SELECT SUM(revenue) FROM %s
"""


async def test_hints_change_a_card_and_go_with_their_file(services: Services) -> None:
    name = unique(".csv")
    hints = f"{name}.tables.yaml"
    title = identifier(Path(name).stem, "")
    await drop(services, name, SALES, {"acl": "anna"})
    await ingest(services, name, "alone")
    assert ["turnover" in card for card in await cards(services, "anna")] == [False]

    await services.blobs.write(DOCUMENTS, hints, (HINTS % title).encode())
    await ingest(services, document_of_blob(hints), "with hints")
    state = await state_of(services, name)
    assert (state.status, state.warnings) == ("ready", ())
    assert ["turnover" in card for card in await cards(services, "anna")] == [True]
    assert await cards(services, "bob") == []
    properties = await services.blobs.properties(DOCUMENTS, hints)
    assert properties is not None
    assert await is_duplicate_event(properties, services)
    seen = (await take_inventory(services, EVERYTHING, EVERYTHING)).seen[state.doc_id]
    assert compare(seen, state.pipeline) is None

    await services.blobs.write(DOCUMENTS, hints, b"tables:\n  - columns: {Costs: {}}\n")
    seen = (await take_inventory(services, EVERYTHING, EVERYTHING)).seen[state.doc_id]
    difference = compare(seen, state.pipeline)
    assert difference is not None
    assert difference.kind == "outdated"
    await ingest(services, name, "wrong hints")
    state = await state_of(services, name)
    assert state.status == "ready"
    assert "line 2: there is no column 'Costs'" in state.warnings[0]

    await delete(state, services)
    assert await services.blobs.properties(DOCUMENTS, hints) is None
