"""Tests for drawing page images: queued pages, shared downloads and the daily limit."""

import asyncio
from datetime import timedelta
from pathlib import Path
from threading import BoundedSemaphore

import pytest

from shared.access.models import UserContext
from shared.documents.ids import document_id
from shared.documents.state import DocumentState
from shared.ingestion import page_pictures
from shared.ingestion.page_pictures import page_picture
from shared.ingestion.task import fresh_state
from shared.platform.blobs import BlobProperties
from shared.platform.errors import BadDocumentError, DailyLimitError, DependencyError
from shared.platform.names import DOCUMENTS, WORK
from shared.wiring import Services
from tests.fakes.services import fake_services, fake_settings
from tests.unit.ingestion.pdf_files import PdfMaker

PATH = "birds.pdf"
VERSION = {"content_hash": "abc", "version_key": "abc-1"}
ANNA = UserContext(user_id="anna")


async def uploaded(services: Services, content: bytes) -> DocumentState:
    """Store a file and its document row."""
    await services.blobs.ensure_containers([DOCUMENTS, WORK])
    await services.blobs.write(DOCUMENTS, PATH, content)
    stored = await services.blobs.properties(DOCUMENTS, PATH)
    assert stored is not None
    state = fresh_state(PATH).model_copy(update={"blob_etag": stored.etag, **VERSION})
    await services.documents.create(state)
    return state


async def test_pages_wait_without_their_file_and_not_too_many_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = fake_services()
    file = PdfMaker().page().paragraph("Herons.").write(tmp_path / PATH)
    state = await uploaded(services, file.read_bytes())
    assert state.doc_id == document_id(PATH)
    download, fetched, go_on = services.blobs.download, 0, asyncio.Event()

    async def slow(container: str, name: str, target: Path) -> BlobProperties:
        nonlocal fetched
        fetched += 1
        await go_on.wait()
        return await download(container, name, target)

    monkeypatch.setattr(services.blobs, "download", slow)
    monkeypatch.setattr("shared.ingestion.page_pictures._places", BoundedSemaphore(2))
    people = [UserContext(user_id=f"reader-{number}") for number in range(5)]
    requests = [asyncio.create_task(page_picture(state, 1, user, services)) for user in people]
    waiting = set(requests)
    while len(waiting) > 2:
        _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert fetched <= 1
    go_on.set()
    ended = await asyncio.gather(*requests, return_exceptions=True)
    assert [isinstance(end, DependencyError) for end in ended].count(True) == 3


async def test_a_page_that_cannot_be_drawn_is_not_tried_again_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    services = fake_services()
    state = await uploaded(services, b"%PDF-1.7 and nothing else")
    download, fetched = services.blobs.download, 0

    async def counting(container: str, name: str, target: Path) -> BlobProperties:
        nonlocal fetched
        fetched += 1
        return await download(container, name, target)

    monkeypatch.setattr(services.blobs, "download", counting)
    for tries in (1, 1, 2):
        if tries == 2:
            monkeypatch.setattr(page_pictures, "FAILURE_KEPT", timedelta(0))
        with pytest.raises(BadDocumentError):
            await page_picture(state, 1, ANNA, services)
        assert fetched == tries


async def test_pages_beyond_the_days_limit_are_not_drawn(tmp_path: Path) -> None:
    services = fake_services(settings=fake_settings(max_daily_page_images=1))
    file = PdfMaker().page().paragraph("Herons.").page().paragraph("Gulls.").write(tmp_path / PATH)
    state = await uploaded(services, file.read_bytes())
    for _ in range(2):  # images already drawn don't count towards the limit
        assert await page_picture(state, 1, ANNA, services)
    with pytest.raises(DailyLimitError):
        await page_picture(state, 2, ANNA, services)
