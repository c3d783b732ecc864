"""A deleted document is hidden immediately, even if its ingestion or another change is in progress."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from shared.access.models import UserContext
from shared.documents.listing import ListCriteria, list_documents
from shared.documents.lookup import get_document
from shared.documents.requests import UploadRequest
from shared.documents.state import DocumentState
from shared.ingestion import indexing, task
from shared.ingestion.changes import correct, delete
from shared.ingestion.models import Fenced, IngestStep
from shared.ingestion.rights import note_event
from shared.ingestion.uploads import receive
from shared.platform.errors import DocumentNotFoundError
from shared.platform.names import DOCUMENTS, WORK
from shared.platform.search import SearchRequest
from shared.retrieval.secured_index import SecuredIndex
from shared.wiring import Services
from tests.contract.ingestion.driving import (
    GUIDE,
    STEPS,
    after,
    blocks_of,
    documents_of,
    drop,
    dropped,
    ingest,
    perform,
    state_of,
    unique,
)
from tests.contract.ingestion.models import CountingEmbedder
from tests.fakes.replaced import Replaced

pytestmark = pytest.mark.contract
ANNA = UserContext(user_id="anna")


async def upload(services: Services, content: str = GUIDE) -> DocumentState:
    """Return a file of Anna's that isn't ingested yet. Names are unique, because the storage is shared."""
    name = f"guide-of-{services.settings.search.content_index}.md"

    async def whole() -> AsyncIterator[bytes]:
        yield content.encode()

    return await receive(UploadRequest(filename=name), whole(), ANNA, services)


async def visible_contents(services: Services) -> set[str]:
    """Return the contents of all blocks that Anna's search finds."""
    index = SecuredIndex(services.content_index, ANNA, services.documents)
    return {str(row["content"]) for row in (await index.search(SearchRequest(top=100))).rows}


async def sees(services: Services, doc_id: str) -> bool:
    """Return whether Anna finds the document in her list, or by its id."""
    listed = await list_documents(ANNA, services, ListCriteria({}))
    try:
        await get_document(doc_id, ANNA, services)
    except DocumentNotFoundError:
        return doc_id in {view.doc_id for view in listed.documents}
    return True


def interrupted(
    services: Services, part: str, method: str, happen: Callable[[], Awaitable[None]]
) -> Services:
    """Return services in which `happen` runs right after a service's first call."""
    inner, happened = getattr(services, part), False

    async def call(*args: Any) -> Any:
        nonlocal happened
        result = await getattr(inner, method)(*args)
        if not happened:
            happened = True
            await happen()
        return result

    parts: dict[str, Any] = {part: Replaced(inner, **{method: call})}
    return replace(services, **parts)


async def is_gone(services: Services, blob_name: str, doc_id: str) -> bool:
    """Return whether no data of the document is left."""
    rows = [*await blocks_of(services, blob_name), *await documents_of(services, blob_name)]
    names = [blob.name async for blob in services.blobs.list_blobs(WORK) if doc_id in blob.name]
    return not rows and not names and await services.documents.get(doc_id) is None


async def test_no_block_of_a_first_version_is_found_before_all_are_there(services: Services) -> None:
    state = await upload(services)
    step = IngestStep(blob_name=state.blob_name, fence="one")
    for act in STEPS[:-1]:
        reply = await perform(act, step, services)
        step = after(step, reply)
    assert await blocks_of(services, state.blob_name)
    assert await visible_contents(services) == set()
    await perform(STEPS[-1], step, services)
    assert await visible_contents(services)


async def test_a_deleted_document_is_seen_by_nobody_before_anything_is_removed(services: Services) -> None:
    state = await upload(services)
    await ingest(services, state.blob_name)
    assert await visible_contents(services)
    assert await sees(services, state.doc_id)
    await delete(state, services)
    assert await blocks_of(services, state.blob_name)
    assert await visible_contents(services) == set()
    assert not await sees(services, state.doc_id)
    assert (await ingest(services, state.blob_name, "removal")).outcome == "removed"
    assert await is_gone(services, state.blob_name, state.doc_id)


async def test_ingestion_stops_at_its_next_batch_when_its_document_is_deleted(
    services: Services, embedder: CountingEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "EMBED_BATCH", 1)
    monkeypatch.setattr(task, "MAX_SMALL_BYTES", -1)
    state = await upload(services)

    async def happen() -> None:
        await delete(state, services)

    late = interrupted(services, "embedder", "embed", happen)
    assert (await ingest(late, state.blob_name)).outcome == "removed", "it looks again"
    assert len(embedder.texts) == 1
    assert not await sees(services, state.doc_id)
    assert await is_gone(services, state.blob_name, state.doc_id)


@pytest.mark.parametrize(("part", "method"), [("content_index", "upload"), ("documents_index", "upload")])
async def test_what_is_written_while_the_document_is_deleted_is_taken_back(
    services: Services, part: str, method: str
) -> None:
    state = await upload(services)

    async def happen() -> None:
        await delete(state, services)
        assert (await ingest(services, state.blob_name, "removal")).outcome == "removed"

    outcome = (await ingest(interrupted(services, part, method, happen), state.blob_name)).outcome
    assert outcome == "nothing"
    assert await visible_contents(services) == set()
    assert await is_gone(services, state.blob_name, state.doc_id)


async def test_no_file_is_left_of_a_document_that_was_deleted_while_it_was_described(
    services: Services,
) -> None:
    state = await upload(services)

    async def happen() -> None:
        await delete(state, services)
        assert (await ingest(services, state.blob_name, "removal")).outcome == "removed"

    late = interrupted(services, "chat_model", "parse", happen)
    assert (await ingest(late, state.blob_name)).outcome == "nothing"
    assert await is_gone(services, state.blob_name, state.doc_id)


async def test_a_replacement_under_way_ends_with_the_deletion(services: Services) -> None:
    state = await upload(services)
    await ingest(services, state.blob_name)
    await upload(services, GUIDE.replace("16 bar", "20 bar"))

    async def happen() -> None:
        await delete(state, services)
        assert await visible_contents(services) == set()

    await ingest(interrupted(services, "embedder", "embed", happen), state.blob_name, "two")
    assert await visible_contents(services) == set()
    await ingest(services, state.blob_name, "removal")
    assert await is_gone(services, state.blob_name, state.doc_id)


async def test_a_file_that_vanished_while_it_was_read_is_removed_by_its_event(services: Services) -> None:
    state = await upload(services)

    async def happen() -> None:
        await services.blobs.delete(DOCUMENTS, state.blob_name)
        assert (await ingest(services, state.blob_name, "event")).outcome == "removed"

    await ingest(interrupted(services, "embedder", "embed", happen), state.blob_name)
    assert await is_gone(services, state.blob_name, state.doc_id)


async def test_a_file_sent_again_before_the_old_one_is_removed_is_a_new_document(services: Services) -> None:
    state = await upload(services)
    await ingest(services, state.blob_name)
    await delete(state, services)
    again = await upload(services, GUIDE.replace("16 bar", "20 bar"))
    assert await sees(services, again.doc_id)
    assert await visible_contents(services) == set()
    assert (await ingest(services, again.blob_name, "two")).outcome == "ready"
    contents = await visible_contents(services)
    assert any("20 bar" in content for content in contents)
    assert not any("16 bar" in content for content in contents)
    (row,) = await documents_of(services, again.blob_name)
    assert row["version"] == 2, "blocks of the first one may still be there"
    assert len(await blocks_of(services, again.blob_name)) == len(contents)


async def test_a_step_of_the_old_ingestion_does_nothing_after_the_deletion(services: Services) -> None:
    state = await upload(services)
    step = IngestStep(blob_name=state.blob_name, fence="one")
    await perform(STEPS[0], step, services)
    await delete(state, services)
    assert isinstance(await perform(STEPS[1], step, services), Fenced)


async def test_corrections_survive_a_file_that_is_deleted_and_uploaded_again(services: Services) -> None:
    """Delete and upload the same file again, as sync tools do to replace it."""
    name = unique()
    await dropped(services, name, metadata={"acl": "anna"})
    await correct(await state_of(services, name), {"title": "Our pump"}, services)

    async def upload_again() -> None:
        await drop(services, name, GUIDE.replace("16 bar", "18 bar"), {"acl": "anna"})
        assert await note_event(name, services) == "noted"

    await services.blobs.delete(DOCUMENTS, name)
    removing = interrupted(services, "blobs", "delete_prefix", upload_again)
    assert (await ingest(removing, name, "deletion")).outcome == "ready"
    (document,) = await documents_of(services, name)
    assert document["title"] == "Our pump"
    assert any("18 bar" in str(block["content"]) for block in await blocks_of(services, name))
