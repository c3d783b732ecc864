"""Tests for scheduling of parsing: short texts wait for no other file, and waiting files are not fetched."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from shared.documents.ids import document_id
from shared.ingestion import large_files, parse_document
from shared.ingestion.fair_turns import NoPlaceFreeError
from shared.ingestion.models import CloseRequest, IngestFailure, IngestReply, IngestStep, Layout, Parsed
from shared.ingestion.parser_process import ParserPool, RunJob, parsers
from shared.ingestion.parser_services import LayoutReader, ParserServices
from shared.ingestion.parser_worker import Job
from shared.ingestion.steps import close, perform
from shared.ingestion.task import MAX_TRIES, IngestTask, is_quarantined
from shared.platform.blobs import BlobProperties
from shared.platform.language_models.models import CallLimits
from shared.platform.names import DOCUMENTS
from shared.wiring import Services
from tests.fakes.blob_store import InMemoryBlobStore
from tests.fakes.services import fake_services

LONG = b"A sentence. " * 9000


class Busy(ParserPool):
    """A parser pool without a free worker."""

    async def _free_worker(self, whose: str, patience_s: float) -> NoReturn:
        raise NoPlaceFreeError


def use_pool(monkeypatch: pytest.MonkeyPatch, pool: ParserPool) -> None:
    """Parse all but small files with `pool`."""
    usual = parsers(2048)
    pools = replace(usual, files=pool)
    monkeypatch.setattr(parse_document, "parsers", lambda _: pools)


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
    step = IngestStep(blob_name=name, fence="one")
    await IngestTask(step, services).acquire()
    return await perform(large_files.parse, IngestTask(step, services))


async def test_a_short_text_waits_for_no_other_file(monkeypatch: pytest.MonkeyPatch) -> None:
    use_pool(monkeypatch, Busy(1, 384))
    services = fake_services()
    assert isinstance(await parsed(services, "note.md", b"# Pumps\n\nA sentence."), Parsed)
    for filename, content in (("long.md", LONG), ("scan.pdf", b"%PDF-1.7")):
        reply = await parsed(services, filename, content)
        assert isinstance(reply, IngestFailure)
        assert reply.waits


async def test_a_file_that_waits_for_its_turn_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    use_pool(monkeypatch, Busy(1, 384))
    blobs = CountingBlobs()
    services = fake_services(blobs=blobs)
    for _ in range(3):
        await parsed(services, "long.md", LONG)
    assert blobs.downloads == 0


async def test_a_file_needs_one_turn_and_gives_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = ParserPool(workers=1, memory_mb=384)
    use_pool(monkeypatch, pool)
    services = fake_services()
    damaged = await parsed(services, "broken.pdf", b"%PDF-1.7")
    assert isinstance(damaged, IngestFailure)
    assert not damaged.waits
    for name in ("one.md", "two.md"):  # blocks forever if the slot is acquired twice or never released
        assert isinstance(await asyncio.wait_for(parsed(services, name, LONG), timeout=40), Parsed)
    pool.close()


async def test_a_parser_service_is_paid_once_however_long_a_worker_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = CountingService()
    use_pool(monkeypatch, Busy(1, 384))
    services = fake_services(parser_services=ParserServices(layout=service))
    for _ in range(3):
        reply = await parsed(services, "scan.pdf", b"%PDF-1.7")
        assert isinstance(reply, IngestFailure)
        assert reply.waits
    assert service.calls == 1
    await parsed(services, "scan.pdf", b"%PDF-1.7 other bytes")
    assert service.calls == 2


class Ending(ParserPool):
    """A pool whose host ends whenever a file is parsed. It records the time limit of each file."""

    def __init__(self) -> None:
        super().__init__(1, 384)
        self.timeouts_s: list[float] = []

    @asynccontextmanager
    async def turn(self, whose: str, patience_s: float = 0) -> AsyncIterator[RunJob]:
        async def run(_: Job, timeout_s: float) -> None:
            self.timeouts_s.append(timeout_s)
            raise asyncio.CancelledError

        yield run


async def test_a_file_that_ends_its_host_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Ending()
    use_pool(monkeypatch, pool)
    services = fake_services()
    for _ in range(MAX_TRIES):
        with pytest.raises(asyncio.CancelledError):
            await parsed(services, "long.md", LONG)
    reply = await parsed(services, "long.md", LONG)
    assert isinstance(reply, IngestFailure)
    assert "The app crashed" in reply.reason
    assert len(pool.timeouts_s) == MAX_TRIES
    step = IngestStep(blob_name="long.md", fence="one")
    request = CloseRequest(step=step, status="failed", reason=reply.reason)
    await close(IngestTask(step, services), request)
    state = await services.documents.get(document_id("long.md"))
    assert state is not None
    assert is_quarantined(state)
    with pytest.raises(asyncio.CancelledError):  # different content is tried again
        await parsed(services, "long.md", LONG + b"More.")


async def test_a_small_file_gets_less_time_than_a_large_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Ending()
    use_pool(monkeypatch, pool)
    services = fake_services(settings=fake_services().settings.changed(ocr_timeout_s=0))
    for content in (LONG, LONG * 10, LONG * 100):
        with pytest.raises(asyncio.CancelledError):
            await parsed(services, "long.md", content)
    small, middle, large = pool.timeouts_s
    assert 40 < small < middle < large == services.settings.ingestion.parse_timeout_s
