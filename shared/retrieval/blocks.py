"""Hybrid search over blocks: keyword and vector results asked for apart, their scores fused in core.

The service itself fuses by rank, which loses to fused scores on every set measured (docs/decisions/0006).
"""

from collections.abc import Mapping, Sequence

from shared.core.fusion import cosine_of_vector_score, fuse_ranks, fuse_scores
from shared.core.keyword_query import keyword_query
from shared.core.odata import all_of
from shared.models.prompts import CallLimits
from shared.models.search import Filters, Hit, IndexRow, SearchPage, SearchRequest, VectorQuery
from shared.ports import Embedder
from shared.retrieval.filters import BLOCK_FIELDS, render_filters
from shared.retrieval.secured_index import SecuredIndex
from shared.retrieval.together import together

MAX_TOP_K = 50
_CANDIDATES = 50  # per ranking; recall at 10 rose no further above this on the sets of decision 0006
_FIELDS = (
    "block_id",
    "doc_id",
    "filename",
    "block_type",
    "page_number",
    "start_seconds",
    "heading_path",
    "content",
    "image_url",
    "image_caption",
)
_VECTOR_FIELDS = ("content_vector", "image_caption_vector")
_SCORE = "@search.score"


class BlockSearch:
    """Searches blocks for one user."""

    def __init__(self, index: SecuredIndex, embedder: Embedder, limits: CallLimits) -> None:
        self._index = index
        self._embedder = embedder
        self._limits = limits

    async def search(self, queries: Sequence[str], top_k: int, filters: Filters) -> list[Hit]:
        """The best blocks for any of the phrasings, best first.

        Each phrasing is searched by keyword and by vector; several phrasings are merged by reciprocal rank,
        and a block keeps the best score that any phrasing gave it.

        Args:
            queries: phrasings of one question, the most important first; blank ones are left out.
            top_k: clamped to 1-50.

        Raises:
            InvalidQueryError: an unknown filter field, or no phrasing at all is given (from the filters).
        """
        phrasings = [query for query in dict.fromkeys(queries) if query.strip()]
        if not phrasings:
            return []
        condition = render_filters(filters, BLOCK_FIELDS)
        vectors = await self._embedder.embed(phrasings, self._limits)
        found = await together(
            self._one_phrasing(text, vector, condition)
            for text, vector in zip(phrasings, vectors, strict=True)
        )
        return _merge(found)[: min(max(top_k, 1), MAX_TOP_K)]

    async def _one_phrasing(self, text: str, vector: tuple[float, ...], condition: str | None) -> list[Hit]:
        requests = [
            _keyword_request(text, condition),
            *(_vector_request(field, vector, condition) for field in _VECTOR_FIELDS),
        ]
        by_keyword, *by_vector = await together(self._index.search(request) for request in requests)
        return _fuse(by_keyword, by_vector)


def _keyword_request(text: str, condition: str | None) -> SearchRequest:
    return SearchRequest(text=keyword_query(text), filter=condition, select=_FIELDS, top=_CANDIDATES)


def _vector_request(field: str, vector: tuple[float, ...], condition: str | None) -> SearchRequest:
    # Text blocks have no caption vector and image blocks no content vector; the type keeps rows without
    # the field out, whatever score a service would give them.
    kind = "text" if field == "content_vector" else "image"
    return SearchRequest(
        vectors=(VectorQuery(vector=vector, field=field, k=_CANDIDATES),),
        filter=all_of(f"block_type eq '{kind}'", condition),
        select=_FIELDS,
        top=_CANDIDATES,
    )


def _fuse(by_keyword: SearchPage, by_vector: Sequence[SearchPage]) -> list[Hit]:
    rows: dict[str, IndexRow] = {}
    keyword = {_remember(row, rows): float(row[_SCORE]) for row in by_keyword.rows}
    cosine = {
        _remember(row, rows): cosine_of_vector_score(float(row[_SCORE]))
        for page in by_vector
        for row in page.rows
    }
    return [_hit(rows[block_id], score) for block_id, score in fuse_scores(keyword, cosine)]


def _merge(found: Sequence[Sequence[Hit]]) -> list[Hit]:
    if len(found) == 1:
        return list(found[0])
    best: dict[str, Hit] = {}
    for hit in (hit for hits in found for hit in hits):
        if hit.block_id not in best or best[hit.block_id].score < hit.score:
            best[hit.block_id] = hit
    ranked = fuse_ranks([[hit.block_id for hit in hits] for hits in found])
    return [best[block_id] for block_id, _ in ranked]


def _remember(row: IndexRow, rows: dict[str, IndexRow]) -> str:
    block_id = str(row["block_id"])
    rows[block_id] = row
    return block_id


def _hit(row: Mapping[str, object], score: float) -> Hit:
    values = {name: row[name] for name in _FIELDS if row.get(name) is not None}
    return Hit.model_validate({**values, "score": round(score, 6)})
