"""Memories on the search server: the created index, and the restriction of searches to a person's rows."""

import pytest

from shared.access.models import UserContext
from shared.conversations.memory import Memories, MemorySearch
from shared.platform.azure_search import AzureSearchIndex
from shared.platform.language_models.models import CallLimits
from shared.retrieval.index_admin import AzureSearchAdmin
from shared.retrieval.schema import memory_index
from shared.wiring import Connections
from tests.fakes.models import HashingEmbedder
from tests.fakes.services import fake_services
from tests.servers import unique_name

pytestmark = pytest.mark.contract

LIMITS = CallLimits(timeout_s=30)
OWNERS = ("anna", "ben", "it's", "x' or user_id ne 'x")


def searching(index: AzureSearchIndex, user: UserContext) -> MemorySearch:
    return MemorySearch(fake_services(memory_index=index), user)


@pytest.fixture
async def index(to_search: Connections) -> AzureSearchIndex:
    name = unique_name("memory")
    await AzureSearchAdmin(to_search.search_admin, timeout_s=30).ensure_index(memory_index(name, 64))
    search_index = AzureSearchIndex(to_search.search_index(name), name, timeout_s=30, key_field="memory_id")
    texts = [f"What did {number} pumps cost?" for number in range(3)]
    vectors = await HashingEmbedder().embed(texts, LIMITS)
    await search_index.upload(
        [
            {
                "memory_id": f"m{place}-{number}",
                "user_id": owner,
                "thread_id": "t",
                "question": text,
                "answer_summary": f"Of {owner}.",
                "vector": list(vector),
                "created_at": f"2026-01-0{number + 1}T00:00:00+00:00",
            }
            for place, owner in enumerate(OWNERS)
            for number, (text, vector) in enumerate(zip(texts, vectors, strict=True))
        ]
    )
    return search_index


@pytest.mark.parametrize("owner", OWNERS)
async def test_everybody_finds_their_own_memories_alone(index: AzureSearchIndex, owner: str) -> None:
    user = UserContext(user_id=owner, groups=OWNERS, roles=("admin",))
    memories = Memories(index, user)
    newest = await memories.newest(10)
    assert {memory.answer_summary for memory in newest} == {f"Of {owner}."}
    assert [memory.created_at.day for memory in newest] == [3, 2, 1]
    assert [memory.created_at.day for memory in await memories.newest(1, skip=1)] == [2]
    assert len(await memories.ids(10)) == 3
    recalled_memories = await searching(index, user).recall("What did 2 pumps cost?")
    assert {memory.answer_summary for memory in recalled_memories} == {f"Of {owner}."}
    assert recalled_memories[0].question == "What did 2 pumps cost?"
    assert all(memory.score is not None and 0 <= memory.score <= 1 for memory in recalled_memories)


async def test_a_stranger_finds_nothing(index: AzureSearchIndex) -> None:
    user = UserContext(user_id="carl", groups=("anna",))
    assert await Memories(index, user).newest(10) == []
    assert await searching(index, user).recall("pumps cost") == []
