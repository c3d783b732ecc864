"""Changes that users make to documents, with the real clients. None of these changes parses or embeds a
document.
"""

from collections.abc import AsyncIterator

import pytest

from shared.access.models import UserContext
from shared.access.security_filter import security_filter
from shared.documents.requests import AccessChange, UploadRequest
from shared.documents.state import DocumentState
from shared.ingestion.changes import change_access, correct
from shared.ingestion.uploads import receive
from shared.platform.search import SearchRequest, VectorQuery
from shared.wiring import Services
from tests.contract.ingestion.driving import GUIDE, blocks_of, documents_of, ingest, state_of
from tests.contract.ingestion.models import CountingChatModel, CountingEmbedder

pytestmark = pytest.mark.contract
ANNA = UserContext(user_id="anna")
BEN = UserContext(user_id="ben", groups=("board, and 'more'",))


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), 100):
        yield content[start : start + 100]


@pytest.fixture
async def uploaded(services: Services) -> DocumentState:
    request = UploadRequest(filename="Müller's guide.md", project_id="Projekt Süd")
    state = await receive(request, pieces(GUIDE.encode()), ANNA, services)
    assert (await ingest(services, state.blob_name)).outcome == "ready"
    return await state_of(services, state.blob_name)


async def found_by(services: Services, user: UserContext) -> int:
    """Return the number of blocks that this user's vector search finds. Vectors must survive every merge."""
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
