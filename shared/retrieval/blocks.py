"""Hybrid search over blocks: keyword and vector results asked for apart, their scores fused in core.

The service itself fuses by rank, which loses to fused scores on every set measured (docs/decisions/0006).
Documents that the question names are looked for while it is embedded; their blocks are searched apart, too,
and move up (docs/decisions/0013). What one search found and another did not show is asked for once more, by
id, so that scores are compared and never guessed. At most ten requests for a question, six for each further
phrasing, in two rounds.
"""

from collections.abc import Mapping, Sequence

from shared.core.document_first import Place, documents_to_narrow_to, order_blocks
from shared.core.fusion import cosine_of_vector_score, fuse_ranks, fuse_scores
from shared.core.keyword_query import question_query
from shared.core.odata import all_of, quote, search_in
from shared.errors import GroundworkError
from shared.models.prompts import CallLimits
from shared.models.search import Filters, Hit, IndexRow, SearchPage, SearchRequest, VectorQuery
from shared.ports import Embedder
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.filters import BLOCK_FIELDS, render_filters
from shared.retrieval.secured_index import SecuredIndex
from shared.retrieval.together import both, together
from shared.telemetry import get_logger

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
# Not the heading path nor the file name: as fields of equal weight they cost 6 points of hit@1.
_KEYWORD_FIELDS = ("content", "image_caption")
_VECTOR_FIELDS = ("content_vector", "image_caption_vector")
_AROUND = 60  # rows: three pages of some twenty blocks
_SCORE = "@search.score"
_Pages = tuple[SearchPage, list[SearchPage]]


class BlockSearch:
    """Searches blocks for one user."""

    def __init__(
        self,
        index: SecuredIndex,
        embedder: Embedder,
        limits: CallLimits,
        documents: SecuredIndex | None = None,
    ) -> None:
        """`documents`: the index of documents for the same user; None = all documents are alike."""
        self._index = index
        self._embedder = embedder
        self._limits = limits
        self._documents = DocumentSearch(documents) if documents else None

    async def search(self, queries: Sequence[str], top_k: int, filters: Filters) -> list[Hit]:
        """The best blocks for any of the phrasings, best first.

        Each phrasing is searched by keyword and by vector; several phrasings are merged by reciprocal rank,
        and a block keeps the best score that any phrasing gave it. A hit's score says how well the block
        fits; the order also weighs its document and its neighbours, so scores need not fall.

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
        vectors, named = await both(
            self._embedder.embed(phrasings, self._limits), self._named(phrasings[0], filters)
        )
        narrowed = _narrowed(condition, documents_to_narrow_to(named))
        found = await together(
            self._one_phrasing(text, vector, [condition, *(() if position else narrowed)], named)
            for position, (text, vector) in enumerate(zip(phrasings, vectors, strict=True))
        )
        return _merge(found)[: min(max(top_k, 1), MAX_TOP_K)]

    async def around(self, hits: Sequence[Hit], pages: int = 3) -> list[Hit]:
        """The other blocks of the best hits' pages and of the pages before and after; score 0.

        Ordered by page. Hits without a page number have no neighbours. One request.

        Args:
            pages: of how many different pages, the best first, the surroundings are wanted.
        """
        places = dict.fromkeys((hit.doc_id, hit.page_number) for hit in hits if hit.page_number is not None)
        if not places:
            return []
        near = [
            f"(doc_id eq {quote(doc_id)} and page_number ge {page - 1} and page_number le {page + 1})"
            for doc_id, page in list(places)[: max(pages, 1)]
        ]
        request = SearchRequest(
            filter=f"({' or '.join(near)})", select=_FIELDS, order_by=("page_number",), top=_AROUND
        )
        known = {hit.block_id for hit in hits}
        page_of_rows = await self._index.search(request)
        return [_hit(row, 0.0) for row in page_of_rows.rows if row["block_id"] not in known]

    async def _named(self, question: str, filters: Filters) -> Mapping[str, float]:
        """The documents that the question names. They only help: failures are told and borne."""
        if self._documents is None:
            return {}
        try:
            return await self._documents.named_in(question, filters)
        except GroundworkError as failed:
            # An index from before documents had names refuses the query until the next file is ingested.
            get_logger().warning("search.documents_unnamed", error_type=failed.code)
            return {}

    async def _one_phrasing(
        self,
        text: str,
        vector: tuple[float, ...],
        conditions: Sequence[str | None],
        named: Mapping[str, float],
    ) -> list[Hit]:
        """The blocks for one phrasing under any of the conditions, best first."""
        asked = await together(self._ask(text, vector, condition) for condition in conditions)
        seen = _Seen(asked)
        await together(
            self._look_again(request, scores) for request, scores in _second_look(seen, text, vector)
        )
        return seen.hits(named)

    async def _look_again(self, request: SearchRequest, scores: dict[str, float]) -> None:
        page = await self._index.search(request)
        scores.update((str(row["block_id"]), float(row[_SCORE])) for row in page.rows)

    async def _ask(self, text: str, vector: tuple[float, ...], condition: str | None) -> _Pages:
        requests = [
            _keyword_request(text, condition),
            *(_vector_request(field, vector, condition) for field in _VECTOR_FIELDS),
        ]
        by_keyword, *by_vector = await together(self._index.search(request) for request in requests)
        return by_keyword, by_vector


def _narrowed(condition: str | None, doc_ids: Sequence[str]) -> tuple[str, ...]:
    """The caller's condition within some documents; none when no document is named."""
    narrowed = all_of(search_in("doc_id", doc_ids), condition) if doc_ids else None
    return (narrowed,) if narrowed else ()


def _keyword_request(text: str, condition: str | None) -> SearchRequest:
    return SearchRequest(
        text=question_query(text),
        search_fields=_KEYWORD_FIELDS,
        filter=condition,
        select=_FIELDS,
        top=_CANDIDATES,
    )


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


class _Seen:
    """Blocks found for one phrasing, with the scores of the service: by keyword, and by vector."""

    def __init__(self, asked: Sequence[_Pages]) -> None:
        self._rows: dict[str, IndexRow] = {}
        self.keyword: dict[str, float] = {}
        self.vector: dict[str, float] = {}
        for by_keyword, by_vector in asked:
            self._add(by_keyword, self.keyword)
            for page in by_vector:
                self._add(page, self.vector)

    def without(self, scores: Mapping[str, float], block_type: str | None = None) -> list[str]:
        """The blocks that a search did not show, of one type or of any."""
        return [
            block_id
            for block_id, row in self._rows.items()
            if block_id not in scores and block_type in (None, row.get("block_type"))
        ]

    def hits(self, named: Mapping[str, float]) -> list[Hit]:
        """Fused, best first."""
        cosine = {block_id: cosine_of_vector_score(score) for block_id, score in self.vector.items()}
        fused = dict(fuse_scores(self.keyword, cosine))
        places = {
            block_id: Place(str(row["doc_id"]), row.get("page_number"))
            for block_id, row in self._rows.items()
        }
        return [
            _hit(self._rows[block_id], fused[block_id]) for block_id in order_blocks(fused, places, named)
        ]

    def _add(self, page: SearchPage, scores: dict[str, float]) -> None:
        for row in page.rows:
            block_id = str(row["block_id"])
            self._rows[block_id] = row
            scores[block_id] = float(row[_SCORE])


def _second_look(
    seen: _Seen, text: str, vector: tuple[float, ...]
) -> list[tuple[SearchRequest, dict[str, float]]]:
    """What one search found and the other did not show: its score there, and not a guess, decides.

    The ids come out of trimmed searches; these requests are trimmed all the same.
    """
    looks = [(_keyword_request(text, None), seen.without(seen.keyword), seen.keyword)]
    for field, kind in zip(_VECTOR_FIELDS, ("text", "image"), strict=True):
        looks.append((_vector_request(field, vector, None), seen.without(seen.vector, kind), seen.vector))
    return [(_only(request, block_ids), scores) for request, block_ids, scores in looks if block_ids]


def _only(request: SearchRequest, block_ids: Sequence[str]) -> SearchRequest:
    """The request for some blocks, all of them, without their texts."""
    count = len(block_ids)
    vectors = tuple(query.model_copy(update={"k": count}) for query in request.vectors)
    condition = all_of(search_in("block_id", block_ids), request.filter)
    changed = {"filter": condition, "select": ("block_id",), "top": count, "vectors": vectors}
    return request.model_copy(update=changed)


def _merge(found: Sequence[Sequence[Hit]]) -> list[Hit]:
    if len(found) == 1:
        return list(found[0])
    best: dict[str, Hit] = {}
    for hit in (hit for hits in found for hit in hits):
        if hit.block_id not in best or best[hit.block_id].score < hit.score:
            best[hit.block_id] = hit
    ranked = fuse_ranks([[hit.block_id for hit in hits] for hits in found])
    return [best[block_id] for block_id, _ in ranked]


def _hit(row: Mapping[str, object], score: float) -> Hit:
    values = {name: row[name] for name in _FIELDS if row.get(name) is not None}
    return Hit.model_validate({**values, "score": round(score, 6)})
