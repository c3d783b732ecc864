"""Episodic memory as one person may see it: the only way from a question to the index of memories.

Like SecuredIndex it is bound to one user, and adds its condition to every query; nothing that a model, a
prompt or a caller says can reach it. No access list widens it: a memory is its owner's alone.
"""

from collections.abc import Sequence

from shared.core.fusion import cosine_of_vector_score, fuse_scores
from shared.core.keyword_query import keyword_query
from shared.core.odata import all_of, quote
from shared.errors import AccessDeniedError
from shared.models.identity import UserContext
from shared.models.memories import Memory
from shared.models.prompts import CallLimits
from shared.models.search import IndexRow, SearchPage, SearchRequest, VectorQuery
from shared.ports import Embedder, SearchIndex
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.together import together

MAX_RECALLED = 10
_CANDIDATES = 30  # per ranking (unmeasured; a person has hundreds of memories, not millions)
_FIELDS = ("memory_id", "thread_id", "question", "answer_summary", "created_at", "doc_ids")
_SCORE = "@search.score"


class Memories:
    """The index of memories, bound to one user."""

    def __init__(self, index: SearchIndex, user: UserContext | None) -> None:
        """Bind `index` to `user`.

        Raises:
            AccessDeniedError: there is no user, or one without an id.
        """
        if user is None or not user.user_id.strip():
            raise AccessDeniedError("Memories need a user context.", "Sign in, or bind a user to the tools.")
        self._index = index
        self._own = f"user_id eq {quote(user.user_id)}"

    async def search(self, request: SearchRequest) -> SearchPage:
        """The request's rows that are the user's own."""
        trimmed = all_of(self._own, request.filter)
        return await self._index.search(request.model_copy(update={"filter": trimmed}))

    async def newest(self, limit: int, skip: int = 0) -> list[Memory]:
        """Memories, newest first."""
        request = SearchRequest(
            select=_FIELDS, order_by=("created_at desc", "memory_id asc"), top=limit, skip=skip
        )
        return [_memory(row) for row in (await self.search(request)).rows]

    async def ids(self, limit: int) -> list[str]:
        """Ids of some memories."""
        page = await self.search(SearchRequest(select=("memory_id",), top=limit))
        return [str(row["memory_id"]) for row in page.rows]


class MemorySearch:
    """Finds what a person asked before, by words and by meaning."""

    def __init__(
        self, memories: Memories, embedder: Embedder, limits: CallLimits, documents: DocumentSearch
    ) -> None:
        """`documents` of the same user say which answers may still be told."""
        self._memories = memories
        self._documents = documents
        self._embedder = embedder
        self._limits = limits

    async def recall(self, query: str, top_k: int = 5) -> list[Memory]:
        """The user's own past questions that bear on `query`, best first; scores as in block search.

        Args:
            top_k: clamped to 1-10.
        """
        if not query.strip():
            return []
        (vector,) = await self._embedder.embed([query], self._limits)
        by_keyword, by_vector = await together(
            self._memories.search(request)
            for request in (
                SearchRequest(text=keyword_query(query), select=_FIELDS, top=_CANDIDATES),
                SearchRequest(
                    vectors=(VectorQuery(vector=vector, field="vector", k=_CANDIDATES),),
                    select=_FIELDS,
                    top=_CANDIDATES,
                ),
            )
        )
        best = _fused(by_keyword.rows, by_vector.rows)[: min(max(top_k, 1), MAX_RECALLED)]
        return await as_told_now(best, self._documents)


async def as_told_now(memories: Sequence[Memory], documents: DocumentSearch) -> list[Memory]:
    """The memories, without answers that cite a document which is closed to their owner, or gone, by now."""
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
