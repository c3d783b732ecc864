"""Short texts are ingested in one step: the same result wherever it is interrupted, and no superfluous
events.
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from shared.documents.state import DocumentState
from shared.ingestion.acceptance import is_duplicate_event
from shared.ingestion.rights import read_rights
from shared.ingestion.task import MAX_SMALL_BYTES, is_small
from shared.platform.blobs import BlobProperties
from shared.platform.errors import DependencyError
from shared.platform.names import DOCUMENTS
from shared.platform.search import SearchPage, SearchRequest
from shared.wiring import Services
from tests.contract.ingestion.driving import (
    GUIDE,
    blocks_of,
    documents_of,
    drop,
    ingest,
    state_of,
    unique,
    version_files,
)
from tests.contract.ingestion.models import CountingChatModel
from tests.fakes.replaced import Replaced

pytestmark = [pytest.mark.contract, pytest.mark.e2e]  # runs long, so it is part of `make e2e`


async def wherever_it_breaks(services: Services, name: str, at: int) -> bool:
    """Ingest with a state store that fails once, at write number `at`. Return whether that write occurred."""
    writes = itertools.count()

    async def write(state: DocumentState) -> DocumentState:
        if next(writes) == at:
            raise DependencyError("The table is busy.", "Try again.")
        return await services.documents.replace(state)

    store: Any = Replaced(services.documents, replace=write)
    result = await ingest(replace(services, documents=store), name, unique(""))
    assert result.outcome in {"ready", "current"}
    return next(writes) > at


async def test_a_first_version_is_whole_wherever_its_step_broke_off(
    services: Services, chat_model: CountingChatModel
) -> None:
    for at in itertools.count():
        name, prompts_before = unique(), len(chat_model.prompts)
        await drop(services, name, f"{GUIDE}\nNumber {at}.", {"acl": "sales"})
        has_broken = await wherever_it_breaks(services, name, at)
        state = await state_of(services, name)
        assert (state.status, state.is_open, state.rights.acl) == ("ready", False, ("sales",))
        assert len(await blocks_of(services, name)) == state.block_count == 3
        assert len(await documents_of(services, name)) == 1
        assert len(chat_model.prompts) - prompts_before <= 2
        assert await version_files(services, name) == ["manifest.json", "outline.json", "reading.json"]
        if not has_broken:
            return


async def test_a_second_version_is_whole_wherever_its_step_broke_off(services: Services) -> None:
    for at in itertools.count():
        name = unique()
        await drop(services, name)
        await ingest(services, name, "first")
        await drop(services, name, GUIDE.replace("16 bar", f"{20 + at} bar"))
        has_broken = await wherever_it_breaks(services, name, at)
        contents = " ".join(block["content"] for block in await blocks_of(services, name))
        assert f"{20 + at} bar" in contents
        assert "16 bar" not in contents
        assert (await state_of(services, name)).version == 2
        if not has_broken:
            return


async def test_a_repetition_removes_the_old_rows_that_a_broken_step_has_left(
    services: Services, name: str
) -> None:
    await drop(services, name)
    await ingest(services, name, "first")
    failures = [DependencyError("The index is busy.", "Try again.")]

    async def delete(keys: Sequence[str]) -> None:
        if failures:
            raise failures.pop()
        await services.content_index.delete(keys)

    index: Any = Replaced(services.content_index, delete=delete)
    await drop(services, name, GUIDE.replace("16 bar", "20 bar"))
    await ingest(replace(services, content_index=index), name, "second")
    assert not failures
    assert "16 bar" not in " ".join(block["content"] for block in await blocks_of(services, name))


async def test_for_the_first_bytes_of_a_name_no_rows_are_looked_for(services: Services, name: str) -> None:
    requests: list[SearchRequest] = []

    async def search(request: SearchRequest) -> SearchPage:
        requests.append(request)
        return await services.content_index.search(request)

    index: Any = Replaced(services.content_index, search=search)
    watched = replace(services, content_index=index)
    await drop(services, name)
    assert (await ingest(watched, name, "first")).outcome == "ready"
    assert requests == []
    await drop(services, name, GUIDE.replace("16 bar", "20 bar"))
    assert (await ingest(watched, name, "second")).gone_count == 1
    assert requests != []


async def is_old_news(services: Services, name: str) -> bool:
    properties = await read_properties(services, name)
    return await is_duplicate_event(properties, services)


async def read_properties(services: Services, name: str) -> BlobProperties:
    properties = await services.blobs.properties(DOCUMENTS, name)
    assert properties is not None
    return properties


async def test_events_of_what_is_done_are_old_news_and_others_are_not(services: Services, name: str) -> None:
    sidecar = f"{name}.acl.json"
    await drop(services, sidecar, '["sales"]')
    assert await is_old_news(services, sidecar), "its file is still to come"
    await drop(services, name)
    assert not await is_old_news(services, name)
    assert await is_old_news(services, sidecar), "the file's own event has it read"
    await ingest(services, name)
    assert await is_old_news(services, name)
    assert await is_old_news(services, sidecar)
    await drop(services, sidecar, '["board"]')
    assert not await is_old_news(services, sidecar)
    # The state of an ingestion that read the rights, and died before it wrote them to the blocks.
    rights, etag = await read_rights(await read_properties(services, name), services)
    changes = {"wanted_rights": rights, "sidecar_etag": etag}
    await services.documents.replace((await state_of(services, name)).model_copy(update=changes))
    assert not await is_old_news(services, sidecar)
    await drop(services, name, "Another text altogether.")
    assert not await is_old_news(services, name)


@pytest.mark.parametrize(
    ("name", "size", "small"),
    [
        ("a.txt", MAX_SMALL_BYTES, True),
        ("a.TXT", 1, True),
        ("a.txt", MAX_SMALL_BYTES + 1, False),
        ("a.pdf", 1, False),
    ],
)
def test_small_are_short_files_of_text_alone(name: str, size: int, *, small: bool) -> None:
    assert is_small(name, size) == small
