"""Episodic memory: the earlier questions of a user, which can be searched, listed and forgotten."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from shared.access.models import UserContext
from shared.conversations.models import MemoriesDeleted, Memory, MemoryList, MemorySwitch
from shared.conversations.services import ConversationServices
from shared.conversations.thread_store import ThreadStore
from shared.platform.concurrency import run_together
from shared.platform.errors import AccessDeniedError, CallerError
from shared.platform.language_models.models import CallLimits
from shared.platform.odata import all_of, quote
from shared.platform.search import IndexRow, SearchIndex, SearchPage, SearchRequest, VectorQuery
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.fusion import cosine_of_vector_score, fuse_scores
from shared.retrieval.keyword_query import keyword_query
from shared.retrieval.secured_index import SecuredIndex

MAX_RECALLED = 10
# Number of candidates per ranking (unmeasured). A user has hundreds of memories, not millions.
_CANDIDATES = 30
_FIELDS = ("memory_id", "thread_id", "question", "answer_summary", "created_at", "doc_ids")
_SCORE = "@search.score"


class Memories:
    """Access to the memories of one user. Queries can't reach other users' rows in the index."""

    def __init__(self, index: SearchIndex, user: UserContext | None) -> None:
        """Create an accessor that limits all queries of `index` to the memories of `user`.

        Raises:
            AccessDeniedError: there is no user, or the user id is empty.
        """
        if user is None or not user.user_id.strip():
            raise AccessDeniedError(
                "Memories require a user context.", "Sign in, or pass a user to the tools."
            )
        self._index = index
        self._own = f"user_id eq {quote(user.user_id)}"

    async def search(self, request: SearchRequest) -> SearchPage:
        """Search the user's memories. The request's filter is combined with one on the user."""
        trimmed = all_of(self._own, request.filter)
        return await self._index.search(request.model_copy(update={"filter": trimmed}))

    async def newest(self, limit: int, skip: int = 0) -> list[Memory]:
        """Return up to `limit` memories, newest first, after skipping the `skip` newest ones."""
        request = SearchRequest(
            select=_FIELDS, order_by=("created_at desc", "memory_id asc"), top=limit, skip=skip
        )
        return [_memory(row) for row in (await self.search(request)).rows]

    async def ids(self, limit: int) -> list[str]:
        """Return the ids of up to `limit` memories."""
        page = await self.search(SearchRequest(select=("memory_id",), top=limit))
        return [str(row["memory_id"]) for row in page.rows]


class MemorySearch:
    """Hybrid search over the earlier questions of a user."""

    def __init__(self, services: ConversationServices, user: UserContext) -> None:
        """Create a search for one user. Raise AccessDeniedError if the user id is empty."""
        self._memories = Memories(services.memory_index, user)
        self._services = services
        self._user = user

    async def recall(self, query: str, top_k: int = 5) -> list[Memory]:
        """Return the earlier questions of the user that are relevant to `query`, best first, with scores from
        0 to 1.

        Args:
            top_k: clamped to 1-10.
        """
        if not query.strip() or not await self._services.threads.is_memory_on(self._user.user_id):
            return []
        limits = CallLimits(timeout_s=self._services.settings.search.timeout_s)
        (vector,) = await self._services.embedder.embed([query], limits)
        nearest = VectorQuery(vector=vector, field="vector", k=_CANDIDATES)
        by_keyword, by_vector = await run_together(
            self._memories.search(SearchRequest(text=keyword_query(query), select=_FIELDS, top=_CANDIDATES)),
            self._memories.search(SearchRequest(vectors=(nearest,), select=_FIELDS, top=_CANDIDATES)),
        )
        best = _fused(by_keyword.rows, by_vector.rows)[: min(max(top_k, 1), MAX_RECALLED)]
        return await hide_unreadable_answers(best, _documents(self._user, self._services))


async def hide_unreadable_answers(memories: Sequence[Memory], documents: DocumentSearch) -> list[Memory]:
    """Return the memories, with empty answers where the user can no longer read all documents that the answer
    cites.
    """
    cited = {doc_id for memory in memories for doc_id in memory.doc_ids}
    readable = await documents.get_many(sorted(cited))
    return [
        memory if readable.keys() >= set(memory.doc_ids) else memory.model_copy(update={"answer_summary": ""})
        for memory in memories
    ]


def _fused(by_keyword: Sequence[IndexRow], by_vector: Sequence[IndexRow]) -> list[Memory]:
    rows = {str(row["memory_id"]): row for row in (*by_keyword, *by_vector)}
    keyword = {str(row["memory_id"]): float(row[_SCORE]) for row in by_keyword}
    cosine = {str(row["memory_id"]): cosine_of_vector_score(float(row[_SCORE])) for row in by_vector}
    return [_memory(rows[memory_id], round(score, 6)) for memory_id, score in fuse_scores(keyword, cosine)]


def _memory(row: IndexRow, score: float | None = None) -> Memory:
    return Memory.model_validate(
        {**{name: row[name] for name in _FIELDS if row.get(name) is not None}, "score": score}
    )


# The search service deletes at most this many rows per request.
_DELETED_AT_ONCE = 1000
# Largest `skip` that the search service accepts.
_MAX_LISTED = 100_000
_DELETE_ROUNDS = 50
# Delay before deletions become visible in the index. Usually it is shorter.
_INDEX_LAG_S = 1.0


async def list_memories(
    user: UserContext, services: ConversationServices, limit: int, cursor: str | None = None
) -> MemoryList:
    """Return the user's memories, newest first.

    Raises:
        CallerError: the cursor is invalid.
    """
    skip = _read_cursor(cursor)
    memories = await Memories(services.memory_index, user).newest(limit + 1, skip)
    has_more = len(memories) > limit and skip + limit < _MAX_LISTED
    visible = tuple(await hide_unreadable_answers(memories[:limit], _documents(user, services)))
    return MemoryList(memories=visible, count=len(visible), cursor=str(skip + limit) if has_more else None)


async def forget_all(user: UserContext, memory_index: SearchIndex, threads: ThreadStore) -> MemoriesDeleted:
    """Delete all memories of the user. Earlier questions that have not been stored yet won't be remembered
    either.
    """
    memories = Memories(memory_index, user)
    await threads.forget_before(user.user_id, datetime.now(UTC))
    deleted: set[str] = set()
    for _ in range(_DELETE_ROUNDS):
        ids = set(await memories.ids(_DELETED_AT_ONCE))
        if not ids:
            break
        # The index still shows rows that were just deleted, so wait until it is up to date.
        if ids <= deleted:
            await asyncio.sleep(_INDEX_LAG_S)
        await memory_index.delete(sorted(ids))
        deleted |= ids
    return MemoriesDeleted(deleted=len(deleted))


async def switch_memory(switch: MemorySwitch, user: UserContext, threads: ThreadStore) -> MemorySwitch:
    """Switch the user's memory on or off. While it is off, no question is remembered or recalled. Existing
    memories are kept.

    Questions asked while it was off are never remembered.
    """
    if switch.is_on and not await threads.is_memory_on(user.user_id):
        await threads.forget_before(user.user_id, datetime.now(UTC))
    await threads.switch_memory(user.user_id, is_on=switch.is_on)
    return switch


def _documents(user: UserContext, services: ConversationServices) -> DocumentSearch:
    return DocumentSearch(SecuredIndex(services.documents_index, user, services.documents))


def _read_cursor(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 6 or int(cursor) > _MAX_LISTED:
        raise CallerError("The cursor is invalid.", "Send the cursor of the previous page unchanged.")
    return int(cursor)
