"""Which files wait for which, and when: a short text for no scan, and no file that is already fetched."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.ingestion import parse_document
from shared.ingestion.claims import Claim
from shared.ingestion.models import IngestFailure, IngestReply, IngestStep, Layout, Parsed
from shared.ingestion.parser_process import NoWorkerFreeError, ParserPool, text_pool
from shared.ingestion.parser_services import LayoutReader, ParserServices
from shared.ingestion.steps import perform
from shared.platform.blobs import BlobProperties
from shared.platform.language_models.models import CallLimits
from shared.platform.names import DOCUMENTS
from shared.wiring import Services
from tests.fakes.blob_store import InMemoryBlobStore
from tests.fakes.services import fake_services

LONG = b"A sentence. " * 9000


@pytest.fixture(autouse=True)
def workers_end() -> Iterator[None]:
    yield
    text_pool().close()


class Busy(ParserPool):
    """All of its workers are at work."""

    async def _wait(self, patience_s: float) -> None:
        raise NoWorkerFreeError("Other files are being read.")


class CountingService(LayoutReader):
    name = "the service"
    suffixes = frozenset({".pdf"})
    calls = 0

    async def read_layout(self, source: Path, filename: str, limits: CallLimits) -> Layout:
        self.calls += 1
        return Layout(pieces=(), page_count=1, service=self.name)


class CountingBlobs(InMemoryBlobStore):
    downloads = 0

    async def download(self, container: str, name: str, target: Path) -> BlobProperties:
        self.downloads += 1
        return await super().download(container, name, target)


async def parsed(services: Services, name: str, content: bytes) -> IngestReply:
    await services.blobs.write(DOCUMENTS, name, content)
    step = IngestStep(blob_name=name, instance_id="one")
    await Claim(services.documents, step).take()
    return await perform("parse", step, services)


async def test_a_short_text_waits_for_no_other_file(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = Busy()
    monkeypatch.setattr(parse_document, "parser_pool", lambda: busy)
    services = fake_services()
    assert isinstance(await parsed(services, "note.md", b"# Pumps\n\nA sentence."), Parsed)
    for filename, content in (("long.md", LONG), ("scan.pdf", b"%PDF-1.7")):
        reply = await parsed(services, filename, content)
        assert isinstance(reply, IngestFailure)
        assert reply.waits


async def test_a_file_that_waits_for_its_turn_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = Busy()
    monkeypatch.setattr(parse_document, "parser_pool", lambda: busy)
    blobs = CountingBlobs()
    services = fake_services(blobs=blobs)
    for _ in range(3):
        await parsed(services, "long.md", LONG)
    assert blobs.downloads == 0


async def test_a_file_needs_one_turn_and_gives_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = ParserPool(workers=1)
    monkeypatch.setattr(parse_document, "parser_pool", lambda: pool)
    services = fake_services()
    damaged = await parsed(services, "broken.pdf", b"%PDF-1.7")
    assert isinstance(damaged, IngestFailure)
    assert not damaged.waits
    for name in ("one.md", "two.md"):  # a second turn within one, or one that is kept, would never come
        assert isinstance(await asyncio.wait_for(parsed(services, name, LONG), timeout=40), Parsed)
    pool.close()


async def test_a_parser_service_is_paid_once_however_long_a_worker_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    busy, service = Busy(), CountingService()
    monkeypatch.setattr(parse_document, "parser_pool", lambda: busy)
    services = fake_services(parser_services=ParserServices(layout=service))
    for _ in range(3):
        reply = await parsed(services, "scan.pdf", b"%PDF-1.7")
        assert isinstance(reply, IngestFailure)
        assert reply.waits
    assert service.calls == 1
    await parsed(services, "scan.pdf", b"%PDF-1.7 other bytes")
    assert service.calls == 2
