"""Tests for ingestions that lose their document or a service: the next attempt completes them."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from shared.access.models import UserContext
from shared.documents.ids import document_id
from shared.documents.versions import read_manifest
from shared.ingestion import task
from shared.ingestion.audit import audit
from shared.ingestion.changes import delete, try_again
from shared.ingestion.reconciliation import reconcile
from shared.ingestion.task import MAX_TRIES
from shared.platform.blobs import BlobProperties
from shared.platform.errors import DependencyError
from shared.platform.names import WORK
from shared.platform.search import SearchRequest
from shared.retrieval.secured_index import SecuredIndex
from shared.wiring import Services
from tests.contract.ingestion.driving import (
    GUIDE,
    blocks_of,
    drop,
    ingest,
    state_of,
    step_results,
    version_files,
)
from tests.fakes.replaced import Replaced

NAME = "guide.md"
NEW_GUIDE = GUIDE.replace("16 bar", "20 bar")


async def test_a_version_uploaded_while_stale_blocks_are_listed_keeps_its_blocks(services: Services) -> None:
    await drop(services, NAME, GUIDE)
    await ingest(services, NAME, "first")
    await drop(services, NAME, NEW_GUIDE)
    lists = iter(range(1))

    async def list_blobs(container: str, prefix: str = "") -> AsyncIterator[BlobProperties]:
        if prefix.startswith("versions/") and next(lists, None) is not None:
            await delete(await state_of(services, NAME), services)
            await drop(services, NAME, GUIDE.replace("500 hours", "700 hours"))
            assert (await ingest(services, NAME, "third")).outcome == "ready"
        async for blob in services.blobs.list_blobs(container, prefix):
            yield blob

    blobs: Any = Replaced(services.blobs, list_blobs=list_blobs)
    assert (await ingest(replace(services, blobs=blobs), NAME, "second")).outcome == "current"
    blocks = " ".join(block["content"] for block in await blocks_of(services, NAME))
    assert "16 bar" in blocks
    assert "700 hours" in blocks
    assert await version_files(services, NAME) == ["manifest.json", "outline.json", "reading.json"]


async def test_deleting_step_results_can_fail_halfway(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task, "MAX_SMALL_BYTES", -1)
    await drop(services, NAME, GUIDE)
    failures = iter(range(1))

    async def delete_prefix(container: str, prefix: str) -> None:
        if prefix.endswith("steps/") and next(failures, None) is not None:
            names = [blob.name async for blob in services.blobs.list_blobs(container, prefix)]
            await services.blobs.delete(container, names[0])
            raise DependencyError("The storage is busy.", "Try again.")
        await services.blobs.delete_prefix(container, prefix)

    blobs: Any = Replaced(services.blobs, delete_prefix=delete_prefix)
    assert (await ingest(replace(services, blobs=blobs), NAME)).outcome == "ready"
    assert next(failures, None) is None, "the deletion has failed once"
    assert (await state_of(services, NAME)).status == "ready"
    assert await step_results(services, NAME) == []


async def test_another_try_forgets_the_description_of_the_version_that_is_claimed(services: Services) -> None:
    await drop(services, NAME, GUIDE)
    await ingest(services, NAME, "first")
    earlier = await state_of(services, NAME)
    await drop(services, NAME, NEW_GUIDE)
    await ingest(services, NAME, "second")
    await try_again(earlier, services)
    manifest = await read_manifest(services.blobs, (await state_of(services, NAME)).folder)
    assert manifest is not None
    assert manifest.described is None


async def test_a_file_uploaded_while_remains_are_removed_keeps_its_version(services: Services) -> None:
    doc_id = document_id(NAME)
    await services.blobs.write(WORK, f"versions/{doc_id}/old/reading.json", b"{}")
    await services.content_index.upload([{"block_id": f"{doc_id}-old-0", "doc_id": doc_id}])

    async def delete_rows(keys: Sequence[str]) -> None:
        await drop(services, NAME, GUIDE)
        assert (await ingest(services, NAME)).outcome == "ready"
        await services.content_index.delete(keys)

    async def start() -> None:
        raise AssertionError("there is no file yet")

    index: Any = Replaced(services.content_index, delete=delete_rows)
    assert (await reconcile(replace(services, content_index=index), start)).removed_orphans == 1
    assert await version_files(services, NAME) == ["manifest.json", "outline.json", "reading.json"]
    assert len(await blocks_of(services, NAME)) == (await state_of(services, NAME)).block_count


async def can_read(services: Services, user_id: str) -> bool:
    index = SecuredIndex(services.content_index, UserContext(user_id=user_id), services.documents)
    return bool((await index.search(SearchRequest(top=1))).rows)


async def test_metadata_of_a_file_that_fails_only_narrow_who_reads_the_version_before(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task, "MAX_SMALL_BYTES", -1)
    await drop(services, NAME, GUIDE, {"acl": "anna,ben"})
    await ingest(services, NAME, "first")
    await drop(services, NAME, b"%PDF-1.4 \x00", {"acl": "anna,carl"})
    for attempt in range(MAX_TRIES + 1):
        await ingest(services, NAME, f"failing {attempt}")
        assert (await state_of(services, NAME)).status == "failed"
        assert [await can_read(services, user) for user in ("anna", "ben", "carl")] == [True, False, False]
    assert (await audit(services)).agrees
    await drop(services, f"{NAME}.acl.json", '["carl"]')
    await ingest(services, NAME, "shared")
    assert [await can_read(services, user) for user in ("anna", "carl")] == [False, True]
