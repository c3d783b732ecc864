"""Hybrid search over blocks: keyword and vector results asked for apart, their scores fused in core.

The service itself fuses by rank, which loses to fused scores on every set measured (docs/decisions/0006).
While a question is embedded, the documents that it names and the blocks that share its words are found. Then
the blocks that mean the like are asked for: anywhere, and among what words and names found. What words did
not show is asked for once more, by id, so that scores are compared and never guessed (docs/decisions/0013).
At most six requests for a question, five for each further phrasing, in three rounds, the first of them beside
the embedding.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from shared.core.document_first import Place, documents_to_narrow_to, order_blocks
from shared.core.fusion import cosine_of_vector_score, fuse_ranks, fuse_scores
from shared.errors import CallTimeoutError, GroundworkError
from shared.models.prompts import CallLimits
from shared.models.search import Filters, Hit, IndexRow, SearchPage
from shared.ports import Embedder
from shared.retrieval.block_requests import (
    CANDIDATES,
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


@dataclass(frozen=True)
class Lenience:
    """How a search goes on without what fails or is late, where an answer is better than none.

    Attributes:
        embed_limits: of embedding the question; when that fails, words alone are searched for.
        patience_s: from the beginning of a search on; what only adds to what words found is then given up.
    """

    embed_limits: CallLimits
    patience_s: float


Missed = Literal["meaning", "late"]


@dataclass(frozen=True)
class _Phrasing:
    """One phrasing, with what its words found. No vector: it could not be embedded."""

    text: str
    vector: tuple[float, ...] | None
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
        lenience: Lenience | None = None,
    ) -> None:
        """Search for one user.

        Args:
            documents: the index of documents for the same user; None = all documents are alike.
            semantic_ranker: the service's own ranker has the last word: one request more.
            lenience: None = any failure fails the search. What was gone without is in `missed`.
        """
        self._index = index
        self._embedder = embedder
        self._limits = limits
        self._documents = DocumentSearch(documents) if documents else None
        self._semantic_ranker = semantic_ranker
        self._lenience = lenience
        self.missed: set[Missed] = set()

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
        until = self._patient_until()
        vectors, (named, pages) = await both(
            self._embedded(phrasings),
            both(
                self._named(phrasings[0], filters, until),
                together(self._index.search(by_words(text, condition)) for text in phrasings),
            ),
        )
        found = await together(
            self._one_phrasing(
                phrasing, condition, named, () if position else documents_to_narrow_to(named), until
            )
            for position, phrasing in enumerate(map(_Phrasing, phrasings, vectors, pages))
        )
        hits = _merge(found)
        if self._semantic_ranker and vectors[0] is not None:
            hits = await semantically_ranked(self._index, phrasings[0], vectors[0], hits)
        return hits[: min(max(top_k, 1), MAX_TOP_K)]

    async def _embedded(self, phrasings: Sequence[str]) -> Sequence[tuple[float, ...] | None]:
        """A vector for each phrasing; None for each when there are none and words are to do."""
        if self._lenience is None:
            return await self._embedder.embed(phrasings, self._limits)
        limits = self._lenience.embed_limits
        try:
            async with asyncio.timeout(limits.timeout_s):
                return await self._embedder.embed(phrasings, limits)
        except (TimeoutError, GroundworkError) as failed:
            code = failed.code if isinstance(failed, GroundworkError) else CallTimeoutError.code
            get_logger().warning("search.words_alone", error_type=code)
            self.missed.add("meaning")
            return [None] * len(phrasings)

    def _patient_until(self) -> float | None:
        """On the event loop's clock; None = for ever."""
        loop_s = asyncio.get_running_loop().time()
        return None if self._lenience is None else loop_s + self._lenience.patience_s

    async def _named(self, question: str, filters: Filters, until: float | None) -> Mapping[str, float]:
        """The documents that the question names. They only help: failures are told and borne."""
        if self._documents is None:
            return {}
        try:
            async with asyncio.timeout_at(until):
                return await self._documents.named_in(question, filters)
        except (TimeoutError, GroundworkError) as failed:
            # An index from before documents had names refuses the query until the next file is ingested.
            code = failed.code if isinstance(failed, GroundworkError) else CallTimeoutError.code
            get_logger().warning("search.documents_unnamed", error_type=code)
            return {}

    async def _one_phrasing(
        self,
        phrasing: _Phrasing,
        condition: str | None,
        named: Mapping[str, float],
        doc_ids: Sequence[str],
        until: float | None,
    ) -> list[Hit]:
        """The blocks for one phrasing, best first.

        Args:
            doc_ids: documents in which to look closer.
            until: on the event loop's clock: what is not there by then is given up; None = never.
        """
        vector, found = phrasing.vector, phrasing.found
        if vector is None:
            return _Seen(found, ()).hits(named)
        requests = [
            by_meaning("text", vector, condition),
            by_meaning("image", vector, condition),
            focused(vector, condition, doc_ids, found.rows),
        ]
        seen = _Seen(found, ())
        try:
            async with asyncio.timeout_at(until):
                pages = await together(self._index.search(request) for request in requests if request)
                seen = _Seen(found, pages)
                if unknown := seen.without_words():
                    seen.add_words(await self._index.search(words_of(phrasing.text, unknown)))
        except TimeoutError:
            get_logger().warning("search.given_up", error_type=CallTimeoutError.code)
            self.missed.add("late")
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
