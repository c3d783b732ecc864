"""Hybrid search over blocks. Keyword and vector searches are separate requests, and their scores are fused
here.

The service fuses by rank, which was worse than fused scores on every measured data set (decision 0006). While
the question is embedded, a first round finds the documents it names, then the blocks that share its words,
names counting little. A second round finds blocks of similar meaning, both everywhere and within the first
round's results. Blocks without a keyword score get one in a third round, so that real scores are compared.
That makes at most six requests per question, and five per further phrasing.

Results are candidates until `merge` has read the rows of the best blocks' documents; scores and order are
then recomputed without the documents that these rows refuse.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from shared.platform.concurrency import run_together
from shared.platform.errors import CallTimeoutError, GroundworkError
from shared.platform.language_models.models import CallLimits, Embedder
from shared.platform.odata import all_of, search_in
from shared.platform.search import Filters, SearchPage
from shared.platform.telemetry import get_logger
from shared.retrieval.block_requests import (
    PASSAGES,
    focused_vector_request,
    keyword_request,
    keyword_score_request,
    vector_request,
)
from shared.retrieval.documents import DocumentSearch, NamedDocument
from shared.retrieval.filters import BLOCK_FIELDS, DOCUMENT_FIELDS, SEARCH_FIELDS, render_filters
from shared.retrieval.fusion import REFERENCE_COSINE, documents_to_narrow_to
from shared.retrieval.keyword_query import question_query
from shared.retrieval.models import Hit
from shared.retrieval.ranking_merge import (
    crowding_spreadsheets,
    documents_to_check,
    merge_rankings,
    spreadsheets_last,
)
from shared.retrieval.rankings import Phrasing, Ranking
from shared.retrieval.secured_index import SecuredIndex
from shared.retrieval.semantic_ranker import semantically_ranked

MAX_TOP_K = 50
# If more than this share of the best hits is unreadable, search again, because blocks missing from the
# rankings may be better.
_MOST_LOST = 1 / 3
_NO_DOCUMENT = "-"  # no document has this id, so a filter on it matches nothing

Missed = Literal["meaning", "late"]


@dataclass(frozen=True)
class DegradationPolicy:
    """Limits on the optional parts of a search. If embedding fails or vector search is late, keyword results
    remain.

    Attributes:
        embed_limits: limits on embedding the question; if that fails, only the keyword search runs.
        patience_s: time from the start of the search after which vector searches are abandoned.
    """

    embed_limits: CallLimits
    patience_s: float


class BlockSearch:
    """Hybrid block search on behalf of one user."""

    def __init__(
        self,
        index: SecuredIndex,
        embedder: Embedder,
        limits: CallLimits,
        documents: SecuredIndex | None = None,
        *,
        semantic_ranker: bool = False,
        degradation: DegradationPolicy | None = None,
        relevant_cosine: float = REFERENCE_COSINE,
    ) -> None:
        """Create a block search with the permissions of the index it is given.

        Args:
            documents: the index of documents for the same user; None = give named documents no preference.
            semantic_ranker: whether the service reranks the hits, which takes one more request.
            relevant_cosine: the embedding model's typical cosine of a question and a relevant passage.
            degradation: None = any failure fails the search. `missed` lists the parts that were skipped.
        """
        self._index = index
        self._embedder = embedder
        self._limits = limits
        self._documents = DocumentSearch(documents) if documents else None
        self._semantic_ranker = semantic_ranker
        self._degradation = degradation
        self._relevant_cosine = relevant_cosine
        self.missed: set[Missed] = set()

    async def search(self, queries: Sequence[str], top_k: int, filters: Filters) -> list[Hit]:
        """Return up to `top_k` readable blocks that match any of the phrasings, best first.

        Each phrasing is searched by keyword and by vector. Several phrasings are merged by reciprocal rank,
        and a block keeps its best score. A hit's score measures its relevance; the order also considers its
        document and neighbours, so scores need not decrease.

        Args:
            queries: phrasings of one question, the most important first; blank ones are ignored. Without any,
                the result is empty.
            top_k: clamped to 1-50.

        Raises:
            InvalidQueryError: a filter field is unknown, or the filters match more than 5,000 documents.
        """
        rankings = await self.rank_each(queries, filters)
        return await self.merge(rankings, top_k)

    async def rank_each(
        self, queries: Sequence[str], filters: Filters, *, without: Collection[str] = ()
    ) -> list[Ranking]:
        """Return one ranking per phrasing for `merge`, which checks permissions. Arguments and errors as in
        `search`.

        Args:
            without: ids of documents to exclude.
        """
        phrasings = [query for query in dict.fromkeys(queries) if query.strip()]
        if not phrasings:
            return []
        filters = await self._of_blocks(filters)
        condition = render_filters(filters, BLOCK_FIELDS)
        if without:
            condition = all_of(condition, f"not {search_in('doc_id', sorted(without))}")
        passages, policy = all_of(PASSAGES, condition), self._degradation
        until = asyncio.get_running_loop().time() + policy.patience_s if policy else None
        vectors, (name_scores, queries, pages) = await run_together(
            self._embedded(phrasings), self._by_names_and_words(phrasings, filters, passages, without, until)
        )
        rankings = [
            Ranking(phrasing, filters, name_scores, self._relevant_cosine)
            for phrasing in map(Phrasing, phrasings, vectors, queries, pages)
        ]
        await run_together(
            *(
                self._search_by_vector(ranking, condition, () if position else ranking.named_ids, until)
                for position, ranking in enumerate(rankings)
            )
        )
        return rankings

    async def _of_blocks(self, filters: Filters) -> Filters:
        """Replace filters on document fields with a filter on document ids, because blocks lack those
        fields.
        """
        of_documents = {field: value for field, value in filters.items() if field not in BLOCK_FIELDS}
        if not of_documents or self._documents is None:
            return filters
        render_filters(filters, SEARCH_FIELDS)  # raises an error for unknown fields
        shared = {field: value for field, value in filters.items() if field in DOCUMENT_FIELDS}
        doc_ids = await self._documents.ids_of(shared)
        supported = {field: value for field, value in filters.items() if field in BLOCK_FIELDS}
        return {**supported, "doc_id": tuple(doc_ids) or _NO_DOCUMENT}

    async def merge(self, rankings: Sequence[Ranking], top_k: int) -> list[Hit]:
        """Merge the rankings, check permissions and return up to `top_k` readable blocks, best first.

        Blocks of unreadable documents and outdated versions are dropped from all rankings. If that removes at
        least a third of the best hits, the search runs once more without the unreadable documents. A ranking
        may be seconds old, so documents may have been replaced since. If spreadsheets take nearly all
        candidates, the search runs once more without them, for passages of other documents.

        Args:
            rankings: the most important phrasing first.
            top_k: as for `search`.

        Raises:
            DependencyError: a service failed.
        """
        if not rankings:
            return []
        first = rankings[0]
        filters, question, named_ids = first.filters, first.phrasing, first.named_ids
        top_k = min(max(top_k, 1), MAX_TOP_K)
        # The semantic ranker may move any of the first 50 hits to the top, so all of them are checked.
        most = MAX_TOP_K if self._semantic_ranker else top_k
        hits, refused, lost = await self._checked(rankings, most)
        texts = [ranking.phrasing.text for ranking in rankings]
        if lost and lost >= _MOST_LOST * (len(hits) + lost):
            rankings = await self.rank_each(texts, filters, without=refused)
            hits, _, _ = await self._checked(rankings, most)
        if crowding := crowding_spreadsheets(rankings, top_k):
            others = await self.rank_each(texts, filters, without=refused | crowding)
            hits, _, _ = await self._checked([*rankings, *others], most)
        if self._semantic_ranker and question.vector is not None:
            ranked = await semantically_ranked(self._index, question.text, question.vector, hits)
            hits = spreadsheets_last(ranked, named_ids)
        return hits[:top_k]

    async def _checked(self, rankings: Sequence[Ranking], most: int) -> tuple[list[Hit], set[str], int]:
        """Check the best hits until all are readable. Return these hits, the ids of unreadable documents, and
        the number of hits dropped from the best.
        """
        checked: set[str] = set()
        refused: set[str] = set()
        best: list[Hit] = []
        lost = 0
        while True:
            ordered = merge_rankings(rankings)
            lost += len({hit.block_id for hit in best} - {hit.block_id for hit in ordered})
            best = ordered[:most]
            unchecked = documents_to_check(best, ordered) - checked
            if not unchecked:
                return best, refused, lost
            readable = await self._index.readable_documents(sorted(unchecked))
            for ranking in rankings:
                ranking.check({doc_id: readable.get(doc_id) for doc_id in unchecked})
            checked |= unchecked
            refused |= unchecked - readable.keys()

    async def _by_names_and_words(
        self,
        phrasings: Sequence[str],
        filters: Filters,
        condition: str | None,
        without: Collection[str],
        until: float | None,
    ) -> tuple[Mapping[str, float], list[str], Sequence[SearchPage]]:
        """Search by keyword for each phrasing. Return name scores by document id, and one query and one
        result page per phrasing.

        The queries give little weight to the names of the documents that the question names.
        """
        named = await self._named(phrasings[0], filters, until)
        scores = {doc_id: document.score for doc_id, document in named.items() if doc_id not in without}
        names = {name for doc_id in documents_to_narrow_to(scores) for name in named[doc_id].names}
        queries = [question_query(text, names) for text in phrasings]
        pages = await run_together(
            *(self._index.candidates(keyword_request(query, condition)) for query in queries)
        )
        return scores, queries, list(pages)

    async def _embedded(self, phrasings: Sequence[str]) -> Sequence[tuple[float, ...] | None]:
        """Return one embedding per phrasing, or None for each if embedding fails and a degradation policy is
        set.
        """
        if self._degradation is None:
            return await self._embedder.embed(phrasings, self._limits)
        limits = self._degradation.embed_limits
        try:
            async with asyncio.timeout(limits.timeout_s):
                return await self._embedder.embed(phrasings, limits)
        except (TimeoutError, GroundworkError) as failed:
            get_logger().warning("search.keyword_only", error_type=_code(failed))
            self.missed.add("meaning")
            return [None] * len(phrasings)

    async def _named(
        self, question: str, filters: Filters, until: float | None
    ) -> Mapping[str, NamedDocument]:
        """Return the documents that the question names, by id. Failures are logged and yield none, because
        names only affect ranking.
        """
        if self._documents is None:
            return {}
        try:
            async with asyncio.timeout_at(until):
                return await self._documents.named_in(question, filters)
        except (TimeoutError, GroundworkError) as failed:
            get_logger().warning("search.names_failed", error_type=_code(failed))
            return {}

    async def _search_by_vector(
        self, ranking: Ranking, condition: str | None, doc_ids: Sequence[str], until: float | None
    ) -> None:
        """Add the results of the vector searches to a ranking. If they are unavailable or late, it keeps its
        keyword results.

        Args:
            doc_ids: documents to search by vector in addition to the keyword results.
            until: event loop time at which vector searches are abandoned; None = never.
        """
        phrasing, vector = ranking.phrasing, ranking.phrasing.vector
        if vector is None:
            return
        requests = [
            vector_request("text", vector, condition),
            vector_request("image", vector, condition),
            focused_vector_request(vector, condition, doc_ids, phrasing.by_keyword.rows),
        ]
        try:
            async with asyncio.timeout_at(until):
                pages = await run_together(
                    *(self._index.candidates(request) for request in requests if request)
                )
                ranking.add_vector_results(pages)
                if unknown := ranking.without_keyword_score:
                    request = keyword_score_request(phrasing.query, unknown)
                    ranking.add_keyword_scores(await self._index.candidates(request))
        except TimeoutError:
            get_logger().warning("search.timed_out", error_type=CallTimeoutError.code)
            self.missed.add("late")


def _code(failed: TimeoutError | GroundworkError) -> str:
    return failed.code if isinstance(failed, GroundworkError) else CallTimeoutError.code
