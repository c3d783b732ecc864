"""Access to a document is withdrawn, and no read that starts afterwards shows it, in any process.

The indexes keep the old access list during the tests, so that only the document's row withdraws the access.
"""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from typing import Any

import pytest

from shared.documents.state import Rights
from shared.wiring import Services
from tests.contract.narrowing.reader import KINDS, documents_seen, reading_services
from tests.servers import Azurite, SearchServer, unique_name
from tests.world import add_document

pytestmark = [pytest.mark.contract, pytest.mark.attack("access matrix")]
DOCUMENTS = 8
OPEN, CLOSED = Rights(acl=("anna",)), Rights(acl=("ben",))


@pytest.fixture
async def settings(azurite: Azurite, search_server: SearchServer) -> dict[str, str]:
    return {
        "azure_search_endpoint": search_server.endpoint,
        "azure_search_api_key": search_server.api_key,
        "azure_search_content_index": unique_name("blocks"),
        "azure_search_documents_index": unique_name("documents"),
        "azure_search_memory_index": unique_name("memory"),
        "DocumentsStorage": azurite.connection_string,
    }


@pytest.fixture
async def services(settings: dict[str, str]) -> AsyncIterator[Services]:
    built = reading_services(settings)
    await built.prepare()
    yield built
    await built.close()


@pytest.fixture
async def reader(settings: dict[str, str]) -> AsyncIterator[Process]:
    """Yield a separate process that reads with the given settings."""
    environment = {**os.environ, "READER_SETTINGS": json.dumps(settings)}
    module = "tests.contract.narrowing.reader"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, stdin=PIPE, stdout=PIPE, env=environment
    )
    yield process
    assert process.stdin is not None
    process.stdin.close()
    assert await process.wait() == 0


async def seen_there(reader: Process, kind: str, doc_id: str) -> set[str]:
    """Return the ids of the documents that the other process can read."""
    assert reader.stdin is not None
    assert reader.stdout is not None
    reader.stdin.write(json.dumps([kind, doc_id]).encode() + b"\n")
    await reader.stdin.drain()
    return set(json.loads(await reader.stdout.readline()))


async def write_row(services: Services, doc_id: str, rights: Rights) -> None:
    state = await services.documents.get(doc_id)
    assert state is not None
    await services.documents.replace(state.model_copy(update={"rights": rights, "wanted_rights": rights}))


@pytest.mark.parametrize("probes", [12, pytest.param(1000, marks=[pytest.mark.e2e, pytest.mark.nightly])])
@pytest.mark.timeout(1800)
async def test_no_read_that_starts_after_the_row_was_written_shows_a_closed_document(
    services: Services, reader: Process, probes: int
) -> None:
    doc_ids = [unique_name("doc") for _ in range(DOCUMENTS)]
    for doc_id in doc_ids:
        record: dict[str, Any] = {"title": f"Pump {doc_id}"}
        await add_document(services, doc_id, "The pump pressure is 15 bar.", readers=("anna",), **record)
    shown_count = 0
    for probe in range(probes):
        doc_id, kind = doc_ids[probe % DOCUMENTS], KINDS[probe % len(KINDS)]
        shown_count += doc_id in await seen_there(reader, kind, doc_id)
        await write_row(services, doc_id, CLOSED)
        here, there = await asyncio.gather(
            documents_seen(kind, doc_id, services), seen_there(reader, kind, doc_id)
        )
        assert doc_id not in here | there, (probe, kind)
        await write_row(services, doc_id, OPEN)
    # Before the change, every probe must show the document, or the test proves nothing.
    assert shown_count == probes
