"""How many files are fetched at once for their pages."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.documents.ids import document_id
from shared.ingestion.claims import fresh_state
from shared.ingestion.page_pictures import page_picture, page_pool
from shared.platform.blobs import BlobProperties
from shared.platform.errors import DependencyError
from shared.platform.names import DOCUMENTS
from tests.fakes.services import fake_services
from tests.unit.ingestion.pdf_files import PdfMaker

PATH = "birds.pdf"


@pytest.fixture(autouse=True)
def workers_end() -> Iterator[None]:
    yield
    page_pool().close()


async def test_no_more_files_are_fetched_at_once_than_pages_may_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = fake_services()
    file = PdfMaker().page().paragraph("Herons.").write(tmp_path / PATH)
    await services.blobs.ensure_containers([DOCUMENTS])
    await services.blobs.write(DOCUMENTS, PATH, file.read_bytes())
    stored = await services.blobs.properties(DOCUMENTS, PATH)
    assert stored is not None
    state = fresh_state(PATH).model_copy(update={"blob_etag": stored.etag, "content_hash": "abc"})
    await services.documents.create(state)
    assert state.doc_id == document_id(PATH)
    download, fetched, go_on = services.blobs.download, 0, asyncio.Event()

    async def slow(container: str, name: str, target: Path) -> BlobProperties:
        nonlocal fetched
        fetched += 1
        await go_on.wait()
        return await download(container, name, target)

    monkeypatch.setattr(services.blobs, "download", slow)
    monkeypatch.setattr("shared.ingestion.page_pictures._MAX_WAITING", 2)
    asked = [
        asyncio.create_task(page_picture(state, 1, services.blobs, services.documents)) for _ in range(5)
    ]
    waiting = set(asked)
    while len(waiting) > 2:
        _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert fetched == 2
    go_on.set()
    ended = await asyncio.gather(*asked, return_exceptions=True)
    assert [isinstance(end, DependencyError) for end in ended].count(True) == 3
