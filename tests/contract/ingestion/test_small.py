"""Short texts go through in one step: the same end wherever it breaks off, and no event starts it in vain."""

import itertools
from dataclasses import replace
from typing import Any

import pytest

from shared.documents.state import DocumentState
from shared.ingestion.acceptance import MAX_SMALL_BYTES, is_duplicate_event, is_small
from shared.ingestion.rights import read_rights
from shared.platform.blobs import BlobProperties
from shared.platform.errors import DependencyError
from shared.platform.names import DOCUMENTS, WORK
from shared.wiring import Services
from tests.contract.ingestion.driving import blocks_of, documents_of, ingest, state_of
from tests.contract.ingestion.models import CountingChatModel
from tests.contract.ingestion.test_ingesting import GUIDE, drop

pytestmark = [pytest.mark.contract, pytest.mark.e2e]  # long: see `make e2e`
_numbers = itertools.count()


@pytest.fixture
def name() -> str:
    return f"small/guide-{next(_numbers)}.md"


class BreakingStore:
    """The store of states, that fails once, at its write number `at`."""

    def __init__(self, store: Any, at: int) -> None:
        self._store, self._left = store, at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def replace(self, state: DocumentState) -> DocumentState:
        self._left -= 1
        if self._left == -1:
            raise DependencyError("The table is busy.", "Try again.")
        stored: DocumentState = await self._store.replace(state)
        return stored

    @property
    def has_broken(self) -> bool:
        return self._left < 0


async def wherever_it_breaks(services: Services, name: str, at: int) -> bool:
    store = BreakingStore(services.documents, at)
    broken: Any = store
    result = await ingest(replace(services, documents=broken), name, f"break-{next(_numbers)}")
    assert result.outcome in {"ready", "current"}
    return store.has_broken


async def test_a_first_version_is_whole_wherever_its_step_broke_off(
    services: Services, chat_model: CountingChatModel
) -> None:
    for at in itertools.count():
        name, asked = f"small/new-{next(_numbers)}.md", len(chat_model.prompts)
        await drop(services, name, f"{GUIDE}\nNumber {at}.", {"acl": "sales"})
        has_broken = await wherever_it_breaks(services, name, at)
        state = await state_of(services, name)
        assert (state.status, state.holder, state.rights.acl) == ("ready", None, ("sales",))
        assert len(await blocks_of(services, name)) == state.block_count == 3
        assert len(await documents_of(services, name)) == 1
        assert len(chat_model.prompts) - asked <= 2
        left = [found.name async for found in services.blobs.list_blobs(WORK, f"ingest/{state.doc_id}")]
        assert left == []
        if not has_broken:
            return


async def test_a_second_version_is_whole_wherever_its_step_broke_off(services: Services) -> None:
    for at in itertools.count():
        name = f"small/second-{next(_numbers)}.md"
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


async def written(services: Services, name: str) -> BlobProperties:
    found = await services.blobs.properties(DOCUMENTS, name)
    assert found is not None
    return found


async def test_events_of_what_is_done_are_old_news(services: Services, name: str) -> None:
    sidecar = f"{name}.acl.json"
    await drop(services, sidecar, '["sales"]')
    assert await is_duplicate_event(
        await written(services, sidecar), services.settings, services.blobs, services.documents
    ), "its file is still to come"
    await drop(services, name)
    assert not await is_duplicate_event(
        await written(services, name), services.settings, services.blobs, services.documents
    )
    assert not await is_duplicate_event(
        await written(services, sidecar), services.settings, services.blobs, services.documents
    )
    await ingest(services, name)
    assert await is_duplicate_event(
        await written(services, name), services.settings, services.blobs, services.documents
    )
    assert await is_duplicate_event(
        await written(services, sidecar), services.settings, services.blobs, services.documents
    )


async def test_other_rights_or_another_version_are_news(services: Services, name: str) -> None:
    sidecar = f"{name}.acl.json"
    await drop(services, sidecar, '["sales", "board"]')
    await drop(services, name)
    await ingest(services, name)
    await drop(services, sidecar, '["board"]')
    assert not await is_duplicate_event(
        await written(services, sidecar), services.settings, services.blobs, services.documents
    )
    await drop(services, name, "Another text altogether.")
    assert not await is_duplicate_event(
        await written(services, name), services.settings, services.blobs, services.documents
    )


async def test_rights_that_a_dead_ingestion_read_and_did_not_write_are_news(
    services: Services, name: str
) -> None:
    sidecar = f"{name}.acl.json"
    await drop(services, sidecar, '["sales"]')
    await drop(services, name)
    await ingest(services, name)
    await drop(services, sidecar, '["board"]')
    rights, etag = await read_rights(services.settings, services.blobs, await written(services, name))
    state = await state_of(services, name)
    noted = {"wanted_rights": rights, "sidecar_etag": etag}
    await services.documents.replace(state.model_copy(update=noted))
    assert not await is_duplicate_event(
        await written(services, sidecar), services.settings, services.blobs, services.documents
    )


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
