"""Tests for detecting and repairing index changes by late requests of superseded ingestions."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared.documents.ids import document_id
from shared.ingestion import second_look, task
from shared.ingestion.audit import audit
from shared.ingestion.changes import delete
from shared.ingestion.models import IngestStep
from shared.ingestion.rights import note_event
from shared.ingestion.second_look import look_again
from shared.ingestion.task import IngestTask
from shared.wiring import Services
from tests.contract.ingestion import driving
from tests.contract.ingestion.driving import GUIDE, blocks_of, drop, ingest, state_of
from tests.fakes.replaced import Replaced
from tests.servers import unique_name

pytestmark = pytest.mark.usefixtures("both_ways")
NAME = "guide.md"
A = GUIDE
B = GUIDE.replace("16 bar", "20 bar")


@pytest.fixture
def now_is_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_look, "LATER", timedelta(0))


async def mended(services: Services) -> int:
    """Check the index again, perform the requested ingestions, and return the number of differing
    documents.
    """
    differing = await look_again(services)

    async def run(blob_name: str) -> None:
        await ingest(services, blob_name, unique_name("mending"))

    await driving.ingest_all(services, run)
    return differing


async def text_of(services: Services) -> str:
    return " ".join(str(block["content"]) for block in await blocks_of(services, NAME))


@pytest.mark.usefixtures("now_is_later")
async def test_what_a_paused_cleanup_deletes_of_the_newest_version_comes_back(
    services: Services,
) -> None:
    await drop(services, NAME, A)
    await ingest(services, NAME, "first")
    await drop(services, NAME, B)
    pauses = iter(range(1))

    async def delete_late(keys: Sequence[str]) -> None:
        """Ingest the first content again before the first delete request arrives."""
        if keys and next(pauses, None) is not None:
            await drop(services, NAME, A)
            await note_event(NAME, services)
            assert (await ingest(services, NAME, "third")).outcome == "ready"
            assert "16 bar" in await text_of(services)
        await services.content_index.delete(keys)

    index: Any = Replaced(services.content_index, delete=delete_late)
    await ingest(replace(services, content_index=index), NAME, "second")
    assert next(pauses, None) is None
    assert "16 bar" not in await text_of(services), "the cleanup of B has deleted a block of A"
    embedder: Any = services.embedder
    assert await mended(services) == 1
    assert "16 bar" in await text_of(services)
    assert (await audit(services)).agrees
    assert await mended(services) == 0
    assert embedder.texts


@pytest.mark.usefixtures("now_is_later")
async def test_blocks_that_come_after_the_deletion_are_removed(services: Services) -> None:
    await drop(services, NAME, A)
    await ingest(services, NAME, "first")
    await IngestTask(IngestStep(blob_name=NAME, fence="dying"), services).acquire()
    late = [dict(row) for row in await blocks_of(services, NAME)]
    await delete(await state_of(services, NAME), services)
    assert (await ingest(services, NAME, "removal")).outcome == "removed"
    await services.content_index.upload(late)
    assert await mended(services) == 0
    assert await blocks_of(services, NAME) == []


async def test_nothing_is_compared_before_a_late_request_must_have_arrived(services: Services) -> None:
    await drop(services, NAME, A)
    await ingest(services, NAME, "first")
    await IngestTask(IngestStep(blob_name=NAME, fence="dying"), services).acquire()
    await ingest(services, NAME, "second")
    doc_id = document_id(NAME)
    keys = [str(row["block_id"]) for row in await blocks_of(services, NAME)]
    await services.content_index.delete(keys[:1])
    assert await mended(services) == 0
    looks = await services.documents.open_work.second_looks(task.now())
    assert [look.doc_id for look in looks] == [doc_id]


@pytest.mark.usefixtures("now_is_later")
async def test_an_ingestion_that_ends_undisturbed_is_not_looked_at_again(services: Services) -> None:
    await drop(services, NAME, A)
    await ingest(services, NAME, "first")
    await drop(services, NAME, B)
    await ingest(services, NAME, "second")
    assert await services.documents.open_work.second_looks(task.now()) == []
