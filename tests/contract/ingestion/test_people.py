"""What people do to documents, against the real clients: no step of it parses or embeds."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from shared.access.models import UserContext
from shared.access.security_filter import security_filter
from shared.documents.requests import AccessChange, UploadRequest
from shared.documents.state import DocumentState
from shared.ingestion import reconciliation
from shared.ingestion.audit import audit
from shared.ingestion.changes import change_access, changeable, correct, delete
from shared.ingestion.reconciliation import reconcile
from shared.ingestion.uploads import receive
from shared.platform.names import DOCUMENTS, FIGURES, WORK
from shared.platform.search import SearchRequest, VectorQuery
from shared.wiring import Services
from tests.contract.ingestion.driving import blocks_of, documents_of, ingest, state_of
from tests.contract.ingestion.models import CountingChatModel, CountingEmbedder
from tests.contract.ingestion.test_ingesting import GUIDE

pytestmark = pytest.mark.contract
ANNA = UserContext(user_id="anna")
BEN = UserContext(user_id="ben", groups=("board, and 'more'",))


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), 100):
        yield content[start : start + 100]


@pytest.fixture
async def uploaded(services: Services) -> DocumentState:
    request = UploadRequest(filename="Müller's guide.md", project_id="Projekt Süd")
    state, _ = await receive(request, pieces(GUIDE.encode()), ANNA, services)
    assert (await ingest(services, state.blob_name)).outcome == "ready"
    return await state_of(services, state.blob_name)


async def found_by(services: Services, user: UserContext) -> int:
    """Blocks that a vector search of this user finds: their vectors must have survived every merge."""
    query = VectorQuery(vector=(0.5,) * 8, field="content_vector", k=10)
    request = SearchRequest(vectors=(query,), filter=security_filter(user), top=10)
    return len((await services.content_index.search(request)).rows)


async def test_rights_that_people_give_hold_for_the_next_query_and_cost_nothing(
    services: Services, uploaded: DocumentState, chat_model: CountingChatModel, embedder: CountingEmbedder
) -> None:
    calls = (len(chat_model.prompts), len(embedder.texts))
    assert (await found_by(services, ANNA), await found_by(services, BEN)) == (3, 0)
    change = AccessChange(acl=BEN.groups, project_id="Nord")
    assert await change_access(uploaded, change, services) is False
    assert (await found_by(services, ANNA), await found_by(services, BEN)) == (3, 3)
    (document,) = await documents_of(services, uploaded.blob_name)
    assert (document["project_id"], document["owner_id"]) == ("Nord", "anna")
    await change_access(uploaded, AccessChange(acl=()), services)
    assert await found_by(services, BEN) == 0
    assert (await ingest(services, uploaded.blob_name, "event")).outcome == "current"
    assert (len(chat_model.prompts), len(embedder.texts)) == calls


async def test_corrections_reach_both_indexes_and_leave_the_vectors(
    services: Services, uploaded: DocumentState, embedder: CountingEmbedder
) -> None:
    embedder.texts.clear()
    await correct(uploaded, {"department": "Küche", "author": None, "tags": ("a", "b")}, services)
    (document,) = await documents_of(services, uploaded.blob_name)
    assert (document["department"], document["author"], document["tags"]) == ("Küche", None, ["a", "b"])
    blocks = await blocks_of(services, uploaded.blob_name)
    assert {block["department"] for block in blocks} == {"Küche"}
    assert await found_by(services, ANNA) == 3
    assert embedder.texts == []


async def test_an_audit_finds_nothing_until_something_differs(
    services: Services, uploaded: DocumentState, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What other tests left goes first: the storage is shared, the indexes are not.
    kept = (
        (DOCUMENTS, uploaded.blob_name),
        (FIGURES, uploaded.doc_id),
        (WORK, f"extracted/{uploaded.doc_id}"),
    )
    for container, own in kept:
        names = [blob.name async for blob in services.blobs.list_blobs(container)]
        for name in names:
            if not name.startswith(own):
                await services.blobs.delete(container, name)
    async for state in services.documents.all():
        if state.doc_id != uploaded.doc_id:
            await services.documents.delete(state)
    report = await audit(services)
    assert report.differences == ()
    assert (report.counts.files, report.counts.rows, report.counts.blocks) == (1, 1, 3)

    monkeypatch.setattr(reconciliation, "SETTLED", timedelta(0))
    await services.content_index.delete([(await blocks_of(services, uploaded.blob_name))[0]["block_id"]])
    await services.documents_index.delete([uploaded.doc_id])
    assert {one.kind for one in (await audit(services)).differences} == {"row_missing", "blocks_missing"}

    async def start(blob_name: str, occasion: str) -> None:
        assert (await ingest(services, blob_name, "again")).outcome == "ready"

    assert (await reconcile(services, start)).started == {"row_missing": 1}
    assert (await audit(services)).agrees


async def test_what_is_deleted_is_gone_from_everywhere(services: Services, uploaded: DocumentState) -> None:
    state = await changeable(uploaded.doc_id, ANNA, services.documents)
    await delete(state, services)
    assert await documents_of(services, uploaded.blob_name) == []
    assert (await ingest(services, uploaded.blob_name, "removal")).outcome == "removed"
    assert await found_by(services, ANNA) == 0
    left = [blob.name async for blob in services.blobs.list_blobs(DOCUMENTS, "uploads/")]
    assert not [name for name in left if name.startswith(uploaded.blob_name)]
