"""Hybrid search over blocks: keyword and vector results asked for apart, their scores fused in core.

The service itself fuses by rank, which loses to fused scores on every set measured (docs/decisions/0006).
While a question is embedded, the documents that it names and the blocks that share its words are found. Then
the blocks that mean the like are asked for: anywhere, and among what words and names found. What words did
not show is asked for once more, by id, so that scores are compared and never guessed (docs/decisions/0013).
At most six requests for a question, five for each further phrasing, in three rounds, the first of them beside
the embedding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared.core.document_first import Place, documents_to_narrow_to, order_blocks
from shared.core.fusion import cosine_of_vector_score, fuse_ranks, fuse_scores
from shared.core.odata import quote
from shared.errors import GroundworkError
from shared.models.prompts import CallLimits
from shared.models.search import Filters, Hit, IndexRow, SearchPage, SearchRequest
from shared.ports import Embedder
from shared.retrieval.block_requests import (
    CANDIDATES,
    FIELDS,
    SCORE,
    as_hit,
    by_meaning,
    by_words,
    focused,
    words_of,
)
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.filters import BLOCK_FIELDS, render_filters
from shared.retrieval.secured_index import SecuredIndex
from shared.retrieval.semantic_ranker import semantically_ranked
from shared.retrieval.together import both, together
from shared.telemetry import get_logger

MAX_TOP_K = 50
_AROUND = 60  # rows: three pages of some twenty blocks


@dataclass(frozen=True)
class _Phrasing:
    """One phrasing, with what its words found."""

    text: str
    vector: tuple[float, ...]
    found: SearchPage


class BlockSearch:
    """Searches blocks for one user."""

    def __init__(
        self,
        index: SecuredIndex,
        embedder: Embedder,
        limits: CallLimits,
        documents: SecuredIndex | None = None,
        *,
        semantic_ranker: bool = False,
    ) -> None:
        """Search for one user.

        Args:
            documents: the index of documents for the same user; None = all documents are alike.
            semantic_ranker: the service's own ranker has the last word: one request more.
        """
        self._index = index
        self._embedder = embedder
        self._limits = limits
        self._documents = DocumentSearch(documents) if documents else None
        self._semantic_ranker = semantic_ranker

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
        vectors, (named, pages) = await both(
            self._embedder.embed(phrasings, self._limits),
            both(
                self._named(phrasings[0], filters),
                together(self._index.search(by_words(text, condition)) for text in phrasings),
            ),
        )
        found = await together(
            self._one_phrasing(phrasing, condition, named, () if position else documents_to_narrow_to(named))
            for position, phrasing in enumerate(map(_Phrasing, phrasings, vectors, pages))
        )
        hits = _merge(found)
        if self._semantic_ranker:
            hits = await semantically_ranked(self._index, phrasings[0], vectors[0], hits)
        return hits[: min(max(top_k, 1), MAX_TOP_K)]

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
            filter=f"({' or '.join(near)})", select=FIELDS, order_by=("page_number",), top=_AROUND
        )
        known = {hit.block_id for hit in hits}
        page_of_rows = await self._index.search(request)
        return [as_hit(row, 0.0) for row in page_of_rows.rows if row["block_id"] not in known]

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
        phrasing: _Phrasing,
        condition: str | None,
        named: Mapping[str, float],
        doc_ids: Sequence[str],
    ) -> list[Hit]:
        """The blocks for one phrasing, best first.

        Args:
            doc_ids: documents in which to look closer.
        """
        vector, found = phrasing.vector, phrasing.found
        requests = [
            by_meaning("text", vector, condition),
            by_meaning("image", vector, condition),
            focused(vector, condition, doc_ids, found.rows),
        ]
        pages = await together(self._index.search(request) for request in requests if request)
        seen = _Seen(found, pages)
        if unknown := seen.without_words():
            seen.add_words(await self._index.search(words_of(phrasing.text, unknown)))
        return seen.hits(named)


class _Seen:
    """Blocks found for one phrasing, with the scores of the service: by keyword, and by vector."""

    def __init__(self, by_keyword: SearchPage, by_vector: Sequence[SearchPage]) -> None:
        pages = (*by_vector, by_keyword)  # of rows that several show the keyword search's is whole
        self._rows: dict[str, IndexRow] = {str(row["block_id"]): row for page in pages for row in page.rows}
        self._keyword = _scores(by_keyword)
        self._vector = {block_id: score for page in by_vector for block_id, score in _scores(page).items()}
        # Fewer rows than asked for: words found no others, so what is missing scores 0.
        self._knows_all_words = len(by_keyword.rows) < CANDIDATES

    def without_words(self) -> list[str]:
        """The blocks of which it is not known how well their words fit."""
        if self._knows_all_words:
            return []
        return [block_id for block_id in self._rows if block_id not in self._keyword]

    def add_words(self, page: SearchPage) -> None:
        """Keyword scores of blocks that are known otherwise."""
        self._keyword.update(_scores(page))

    def hits(self, named: Mapping[str, float]) -> list[Hit]:
        """Fused, best first."""
        cosine = {block_id: cosine_of_vector_score(score) for block_id, score in self._vector.items()}
        fused = dict(fuse_scores(self._keyword, cosine))
        places = {
            block_id: Place(str(row["doc_id"]), row.get("page_number"))
            for block_id, row in self._rows.items()
        }
        return [
            as_hit(self._rows[block_id], fused[block_id]) for block_id in order_blocks(fused, places, named)
        ]


def _scores(page: SearchPage) -> dict[str, float]:
    return {str(row["block_id"]): float(row[SCORE]) for row in page.rows}


def _merge(found: Sequence[Sequence[Hit]]) -> list[Hit]:
    if len(found) == 1:
        return list(found[0])
    best: dict[str, Hit] = {}
    for hit in (hit for hits in found for hit in hits):
        if hit.block_id not in best or best[hit.block_id].score < hit.score:
            best[hit.block_id] = hit
    ranked = fuse_ranks([[hit.block_id for hit in hits] for hits in found])
    return [best[block_id] for block_id, _ in ranked]
