"""An interrupted ingestion of a short text: its remains are deleted, even if other bytes arrive before the
retry.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from shared.ingestion import steps
from shared.ingestion.changes import delete
from shared.ingestion.models import Fenced, IngestFailure, IngestStep
from shared.platform.errors import DependencyError
from shared.wiring import Services
from tests.contract.ingestion.driving import (
    GUIDE,
    blocks_of,
    drop,
    dropped,
    ingest,
    perform,
    state_of,
    version_files,
)
from tests.contract.ingestion.models import CountingChatModel
from tests.fakes.replaced import Replaced

pytestmark = pytest.mark.contract
ONE_VERSION = ["manifest.json", "outline.json", "reading.json"]
NEW_GUIDE = GUIDE.replace("16 bar", "20 bar")


def calling(services: Services, part: str, method: str, call: Callable[..., Awaitable[Any]]) -> Services:
    """Return services with one method replaced."""
    parts: dict[str, Any] = {part: Replaced(getattr(services, part), **{method: call})}
    return replace(services, **parts)


def failing(services: Services, part: str, method: str) -> Services:
    async def call(*_: object, **__: object) -> None:
        raise DependencyError("The service is busy.", "Try again.")

    return calling(services, part, method, call)


async def break_off(services: Services, name: str, part: str, method: str) -> None:
    """Run an attempt of the instance `one` that fails at this call and may be retried."""
    step = IngestStep(blob_name=name, fence="one")
    reply = await perform(steps.accept, step, failing(services, part, method))
    assert isinstance(reply, IngestFailure)
    assert reply.retryable


async def contents_of(services: Services, name: str) -> str:
    return " ".join(block["content"] for block in await blocks_of(services, name))


async def test_of_the_first_bytes_nothing_is_left_when_two_attempts_break_off(
    services: Services, name: str
) -> None:
    await drop(services, name)
    await break_off(services, name, "documents_index", "upload")
    await drop(services, name, NEW_GUIDE)
    await break_off(services, name, "content_index", "delete")
    await ingest(services, name, "one")
    assert "20 bar" in await contents_of(services, name)
    assert "16 bar" not in await contents_of(services, name)
    assert await version_files(services, name) == ONE_VERSION


async def test_of_bytes_that_were_taken_back_nothing_is_left(services: Services, name: str) -> None:
    await dropped(services, name)
    await drop(services, name, NEW_GUIDE)
    await break_off(services, name, "documents_index", "upload")
    await drop(services, name)
    await break_off(services, name, "content_index", "delete")
    await ingest(services, name, "one")
    state = await state_of(services, name)
    assert "16 bar" in await contents_of(services, name)
    assert "20 bar" not in await contents_of(services, name)
    assert len(await blocks_of(services, name)) == state.block_count
    assert state.version == 1
    assert await version_files(services, name) == ONE_VERSION


async def test_a_last_step_that_broke_off_is_repeated_though_its_repetition_breaks_off(
    services: Services, name: str
) -> None:
    await dropped(services, name)
    await drop(services, name, NEW_GUIDE)
    await break_off(services, name, "content_index", "delete")
    await break_off(services, name, "content_index", "delete")
    await ingest(services, name, "one")
    assert "16 bar" not in await contents_of(services, name)
    assert await version_files(services, name) == ONE_VERSION


async def test_a_search_service_that_is_down_while_old_rows_are_removed_is_no_fault_of_the_file(
    services: Services, name: str
) -> None:
    await dropped(services, name)
    await drop(services, name, NEW_GUIDE)
    assert (await ingest(failing(services, "content_index", "delete"), name)).outcome == "failed"
    assert (await state_of(services, name)).failed_tries == 0


async def test_the_owner_sees_a_file_that_could_not_be_fetched(services: Services, name: str) -> None:
    await drop(services, name, metadata={"owner_id": "anna"})
    assert (await ingest(failing(services, "blobs", "download"), name)).outcome == "failed"
    state = await state_of(services, name)
    assert (state.status, state.wanted_rights.owner_id) == ("failed", "anna")


async def test_the_row_of_a_deleted_document_is_not_written_again(
    services: Services, name: str, chat_model: CountingChatModel
) -> None:
    """Delete the document while the model describes a version without new blocks, or while blocks are
    written.
    """
    rows: list[object] = []

    async def upload(batch: object) -> None:
        rows.append(batch)

    for part, method, content in (
        ("chat_model", "parse", GUIDE.partition("## Care")[0]),
        ("content_index", "upload", NEW_GUIDE),
    ):
        await dropped(services, name)

        async def call(*args: Any, part: str = part, method: str = method) -> Any:
            result = await getattr(getattr(services, part), method)(*args)
            await delete(await state_of(services, name), services)
            return result

        await drop(services, name, content)
        watched = calling(calling(services, part, method, call), "documents_index", "upload", upload)
        step = IngestStep(blob_name=name, fence="one")
        assert isinstance(await perform(steps.accept, step, watched), Fenced)
        assert rows == []
