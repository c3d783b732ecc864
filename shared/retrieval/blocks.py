"""Hybrid search over blocks. Keyword and vector searches are separate requests, and their scores are fused
here.

The service fuses by rank, which was worse than fused scores on every measured data set (decision 0006). While
the question is embedded, a first round finds the documents it names, then the blocks that share its words,
names counting little. A second round finds blocks of similar meaning, both everywhere and within the first
round's results. Blocks without a keyword score get one in a third round, so that real scores are compared.
That makes at most six requests per question, and five per further phrasing.

Results are candidates until `merge` has read the rows of the best blocks' documents; scores and order are
then recomputed without the documents that these rows refuse.

This module exceeds 500 lines because the rounds of a search and the other ways to read blocks share one set
of fields.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Literal

from shared.platform.concurrency import run_together
from shared.platform.errors import CallTimeoutError, GroundworkError
from shared.platform.language_models.models import CallLimits, Embedder
from shared.platform.names import TABLE_SUFFIXES
from shared.platform.odata import all_of, quote, search_in
from shared.platform.search import Filters, IndexRow, SearchPage, SearchRequest, VectorQuery
from shared.platform.telemetry import get_logger
from shared.platform.tokens import tokens_of
from shared.retrieval.document_rows import DocumentRow
from shared.retrieval.documents import DocumentSearch, NamedDocument
from shared.retrieval.filters import BLOCK_FIELDS, DOCUMENT_FIELDS, SEARCH_FIELDS, render_filters
from shared.retrieval.fusion import (
    REFERENCE_COSINE,
    BlockPosition,
    calibrated,
    cosine_of_vector_score,
    documents_to_narrow_to,
    fuse_ranks,
    fuse_scores,
    order_blocks,
)
from shared.retrieval.keyword_query import keyword_query, question_query
from shared.retrieval.models import BlockType, Hit
from shared.retrieval.schema import SEMANTIC_CONFIGURATION
from shared.retrieval.secured_index import SecuredIndex, is_current

# Number of blocks per ranking. Larger values did not improve recall@10 on the test sets of decision 0006.
CANDIDATES = 50
MAX_TOP_K = 50
_MAX_RERANKED = 50  # the service reranks at most this number of rows
RANKER_PAUSE_S = 600.0  # pause after the ranker refuses; an exhausted quota is renewed only in the next month
_PAGE_ROWS = 500  # maximum number of rows per query; a block has about 1 kB
_OUTLINE_ROWS = (
    # Number of rows without text; an answer shows up to ten documents, and a short one has under 30 blocks.
    300
)
# Limit per document, far more than a summary reads; paging in the service ends at 100,000.
_MAX_BLOCKS = 20_000

FIELDS = (
    "block_id",
    "doc_id",
    "filename",
    "block_type",
    "page_number",
    "ordinal",
    "start_seconds",
    "cues",
    "heading_path",
    "content",
    "image_url",
    "image_caption",
    "version",
)

# Heading path and file name are not searched: with equal weight, they cost 6 points of hit@1.
_KEYWORD_FIELDS = ("content", "image_caption")
_VECTOR_FIELDS: Mapping[BlockType, str] = {
    "text": "content_vector",
    "image": "image_caption_vector",
    "card": "content_vector",
}
_PASSAGES = "block_type ne 'card'"
_READING_ORDER = ("ordinal", "block_id")
# If more than this share of the best hits is unreadable, search again, because blocks missing from the
# rankings may be better.
_MOST_LOST = 1 / 3
# Number of blocks of a spreadsheet that keep their rank. Not measured.
_MAX_ROW_BLOCKS = 3
_NO_DOCUMENT = "-"  # no document has this id, so a filter on it matches nothing
_RERANKER_SCORE = "@search.reranker_score"

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


@dataclass(frozen=True)
class _Phrasing:
    """A phrasing of the question with its embedding (None if embedding failed), its keyword query and that
    query's results.
    """

    text: str
    vector: tuple[float, ...] | None
    query: str
    found: SearchPage


class Ranking:
    """Ranked candidate blocks for one phrasing of a question. `BlockSearch.merge` checks permissions and
    selects hits.

    Attributes:
        vector: None if the phrasing could not be embedded.
        filters: filters of the search, converted to fields of blocks.
    """

    def __init__(self, phrasing: "_Phrasing", candidates: "_Candidates", filters: Filters) -> None:
        self.text = phrasing.text
        self.vector = phrasing.vector
        self.filters = filters
        self._candidates = candidates
        self._hits: Sequence[Hit] | None = None

    @property
    def named_ids(self) -> Collection[str]:
        """The ids of the documents that the question names."""
        return documents_to_narrow_to(self._candidates.name_scores)

    @property
    def hits(self) -> Sequence[Hit]:
        """The candidates, best first, without blocks that `check` has dropped."""
        if self._hits is None:
            self._hits = self._candidates.hits()
        return self._hits

    def check(self, documents: Mapping[str, DocumentRow | None]) -> None:
        """Drop blocks of unreadable documents (mapped to None) and of outdated versions. Other rows are kept
        for ordering.
        """
        self._candidates.check(documents)
        self._hits = None


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
        passages, policy = all_of(_PASSAGES, condition), self._degradation
        until = asyncio.get_running_loop().time() + policy.patience_s if policy else None
        vectors, (name_scores, queries, pages) = await run_together(
            self._embedded(phrasings), self._by_names_and_words(phrasings, filters, passages, without, until)
        )
        requests = list(map(_Phrasing, phrasings, vectors, queries, pages))
        candidates = await run_together(
            *(
                self._one_phrasing(
                    phrasing,
                    condition,
                    name_scores,
                    () if position else documents_to_narrow_to(name_scores),
                    until,
                )
                for position, phrasing in enumerate(requests)
            )
        )
        return [Ranking(phrasing, one, filters) for phrasing, one in zip(requests, candidates, strict=True)]

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
        first, top_k = rankings[0], min(max(top_k, 1), MAX_TOP_K)
        # The semantic ranker may move any of the first 50 hits to the top, so all of them are checked.
        most = MAX_TOP_K if self._semantic_ranker else top_k
        hits, refused, lost = await self._checked(rankings, most)
        texts = [ranking.text for ranking in rankings]
        if lost and lost >= _MOST_LOST * (len(hits) + lost):
            rankings = await self.rank_each(texts, first.filters, without=refused)
            hits, _, _ = await self._checked(rankings, most)
        if crowding := _crowding_spreadsheets(rankings, top_k):
            others = await self.rank_each(texts, first.filters, without=refused | crowding)
            hits, _, _ = await self._checked([*rankings, *others], most)
        if self._semantic_ranker and first.vector is not None:
            ranked = await semantically_ranked(self._index, first.text, first.vector, hits)
            hits = spreadsheets_last(ranked, first.named_ids)
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
            ordered = _merged(rankings)
            lost += len({hit.block_id for hit in best} - {hit.block_id for hit in ordered})
            best = ordered[:most]
            unchecked = _with_copies(best, ordered) - checked
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
        pages = await run_together(*(self._index.candidates(by_words(query, condition)) for query in queries))
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

    async def _one_phrasing(
        self,
        phrasing: _Phrasing,
        condition: str | None,
        name_scores: Mapping[str, float],
        doc_ids: Sequence[str],
        until: float | None,
    ) -> "_Candidates":
        """Return the candidates for one phrasing. If vector searches are unavailable or late, only keyword
        results are returned.

        Args:
            doc_ids: documents to search by vector in addition to the keyword results.
            until: event loop time at which vector searches are abandoned; None = never.
        """
        vector, by_keyword = phrasing.vector, phrasing.found
        seen = _Candidates(by_keyword, (), name_scores, self._relevant_cosine)
        if vector is None:
            return seen
        requests = [
            by_meaning("text", vector, condition),
            by_meaning("image", vector, condition),
            focused(vector, condition, doc_ids, by_keyword.rows),
        ]
        try:
            async with asyncio.timeout_at(until):
                pages = await run_together(
                    *(self._index.candidates(request) for request in requests if request)
                )
                seen = _Candidates(by_keyword, pages, name_scores, self._relevant_cosine)
                if unknown := seen.without_words():
                    seen.add_words(await self._index.candidates(keyword_scores(phrasing.query, unknown)))
        except TimeoutError:
            get_logger().warning("search.timed_out", error_type=CallTimeoutError.code)
            self.missed.add("late")
        return seen


def _merged(rankings: Sequence[Ranking]) -> list[Hit]:
    """Merge the rankings by reciprocal rank and return the hits, best first. A block found several times
    keeps its highest score.
    """
    named_ids = _named_by(rankings)
    if len(rankings) == 1:
        return spreadsheets_last(rankings[0].hits, named_ids)
    best: dict[str, Hit] = {}
    for hit in (hit for ranking in rankings for hit in ranking.hits):
        if hit.block_id not in best or best[hit.block_id].score < hit.score:
            best[hit.block_id] = hit
    ranked = fuse_ranks([[hit.block_id for hit in ranking.hits] for ranking in rankings])
    return spreadsheets_last([best[block_id] for block_id, _ in ranked], named_ids)


def spreadsheets_last(hits: Iterable[Hit], named_ids: Collection[str]) -> list[Hit]:
    """Move all but the best blocks of each spreadsheet after the other hits, unless the question names it
    (decision 0094).

    Args:
        named_ids: ids of documents that the question names.
    """
    counts = Counter[str]()
    first: list[Hit] = []
    later: list[Hit] = []
    for hit in hits:
        counts[hit.doc_id] += _is_of_spreadsheet(hit, named_ids)
        (later if counts[hit.doc_id] > _MAX_ROW_BLOCKS else first).append(hit)
    return first + later


def _is_of_spreadsheet(hit: Hit, named_ids: Collection[str]) -> bool:
    is_rows = hit.block_type == "text" and hit.filename.lower().endswith(TABLE_SUFFIXES)
    return is_rows and hit.doc_id not in named_ids


def _crowding_spreadsheets(rankings: Sequence[Ranking], top_k: int) -> set[str]:
    """Return the ids of spreadsheets that leave fewer than `top_k / 2` of the candidates to other documents.

    Empty if every block of a match is a candidate, or if the search is limited to such spreadsheets.
    """
    named_ids = _named_by(rankings)
    hits = [hit for ranking in rankings for hit in ranking.hits]
    others = {hit.block_id for hit in hits if not _is_of_spreadsheet(hit, named_ids)}
    if len(others) >= top_k / 2 or all(len(ranking.hits) < CANDIDATES for ranking in rankings):
        return set()
    crowding = {hit.doc_id for hit in hits if _is_of_spreadsheet(hit, named_ids)}
    limit = rankings[0].filters.get("doc_id")
    doc_ids = set(limit) if isinstance(limit, list | tuple) else {limit}
    return set() if doc_ids <= crowding else crowding


def _named_by(rankings: Iterable[Ranking]) -> set[str]:
    return set[str]().union(*(ranking.named_ids for ranking in rankings))


def _with_copies(best: Iterable[Hit], ordered: Iterable[Hit]) -> set[str]:
    """Return the ids of documents to check: those of the best hits, and those that contain a copy of the same
    text (see `originals_first`).
    """
    doc_ids = {hit.doc_id for hit in best}
    words = {_words_of(hit.block_id) for hit in best} - {""}
    return doc_ids | {hit.doc_id for hit in ordered if _words_of(hit.block_id) in words}


def _words_of(block_id: str) -> str:
    """Return the part of a block id that is derived from the block's text and is the same for copies in other
    documents.
    """
    return block_id.partition("-")[2]


class _Candidates:
    """Blocks found for one phrasing, with the keyword and vector scores of the search service."""

    def __init__(
        self,
        by_keyword: SearchPage,
        by_vector: Sequence[SearchPage],
        name_scores: Mapping[str, float],
        relevant_cosine: float,
    ) -> None:
        self.name_scores = name_scores
        self._relevant_cosine = relevant_cosine
        self._documents: dict[str, DocumentRow] = {}
        # Later rows replace earlier ones, so that the complete rows of the keyword search win.
        pages = (*by_vector, by_keyword)
        self._rows: dict[str, IndexRow] = {str(row["block_id"]): row for page in pages for row in page.rows}
        self._keyword = _scores(by_keyword)
        self._vector = {block_id: score for page in by_vector for block_id, score in _scores(page).items()}
        # Fewer rows than requested means that no other block contains a word of the query, so all others
        # score 0.
        self._knows_all_words = len(by_keyword.rows) < CANDIDATES

    def without_words(self) -> list[str]:
        """Return the ids of blocks whose keyword score is unknown and must be requested."""
        if self._knows_all_words:
            return []
        return [block_id for block_id in self._rows if block_id not in self._keyword]

    def add_words(self, page: SearchPage) -> None:
        """Add keyword scores that were requested for blocks found only by vector search."""
        self._keyword.update(_scores(page))

    def check(self, documents: Mapping[str, DocumentRow | None]) -> None:
        """Drop blocks of documents mapped to None (unreadable) and blocks of outdated versions."""
        self._documents |= {doc_id: row for doc_id, row in documents.items() if row is not None}
        for block_id, row in list(self._rows.items()):
            doc_id = str(row["doc_id"])
            if doc_id in documents and not is_current(row, documents[doc_id]):
                for scores in (self._rows, self._keyword, self._vector):
                    scores.pop(block_id, None)

    def hits(self) -> list[Hit]:
        """Fuse the scores and return the blocks as hits, best first. Among identical files, the oldest
        precedes its copies.
        """
        cosine = {
            block_id: calibrated(cosine_of_vector_score(score), self._relevant_cosine)
            for block_id, score in self._vector.items()
        }
        fused = dict(fuse_scores(self._keyword, cosine))
        places = {
            block_id: BlockPosition(str(row["doc_id"]), row.get("page_number"))
            for block_id, row in self._rows.items()
        }
        documents = {
            block_id: self._documents[place.doc_id]
            for block_id, place in places.items()
            if place.doc_id in self._documents
        }
        ordered = originals_first(order_blocks(fused, places, self.name_scores), documents)
        return [as_hit(self._rows[block_id], fused[block_id]) for block_id in ordered]


def originals_first(block_ids: Sequence[str], documents: Mapping[str, DocumentRow]) -> list[str]:
    """Reorder blocks of identical files by the age of their documents, oldest first. All other blocks keep
    their positions.

    This prevents a copy with a better name or more readers from displacing the original for its readers.

    Args:
        documents: document rows by block id; blocks without a row keep their positions.
    """
    places: dict[tuple[str, str], list[int]] = {}
    for place, block_id in enumerate(block_ids):
        if block_id in documents and (same_bytes := documents[block_id].content_hash):
            places.setdefault((same_bytes, _words_of(block_id)), []).append(place)
    ordered = list(block_ids)
    for copies in places.values():
        by_age = sorted((block_ids[place] for place in copies), key=lambda one: documents[one].upload_date)
        for place, block_id in zip(copies, by_age, strict=True):
            ordered[place] = block_id
    return ordered


def _scores(page: SearchPage) -> dict[str, float]:
    return {str(row["block_id"]): float(row["@search.score"]) for row in page.rows}


def _code(failed: TimeoutError | GroundworkError) -> str:
    return failed.code if isinstance(failed, GroundworkError) else CallTimeoutError.code


def by_words(query: str, condition: str | None) -> SearchRequest:
    """Return a keyword search request for a query in full Lucene syntax, as returned by `question_query`."""
    return SearchRequest(
        text=query,
        query_type="full",
        search_fields=_KEYWORD_FIELDS,
        filter=condition,
        select=FIELDS,
        top=CANDIDATES,
    )


def card_requests(text: str, vector: tuple[float, ...]) -> tuple[SearchRequest, SearchRequest]:
    """Return a keyword request and a vector request for table cards."""
    return by_words(question_query(text), "block_type eq 'card'"), by_meaning("card", vector, None)


def by_meaning(
    kind: BlockType, vector: tuple[float, ...], condition: str | None, top: int = CANDIDATES
) -> SearchRequest:
    """Return a vector search request for blocks of one type."""
    # Filtering by type excludes rows without the searched vector, which a service might score anyway: text
    # blocks have no caption vector, and image blocks no content vector.
    return SearchRequest(
        vectors=(VectorQuery(vector=vector, field=_VECTOR_FIELDS[kind], k=top),),
        filter=all_of(f"block_type eq '{kind}'", condition),
        select=FIELDS,
        top=top,
    )


def focused(
    vector: tuple[float, ...], condition: str | None, doc_ids: Sequence[str], rows: Sequence[IndexRow]
) -> SearchRequest | None:
    """Return a vector request limited to blocks found by keyword and to the named documents, or None if there
    are neither.
    """
    block_ids = [str(row["block_id"]) for row in rows if row.get("block_type") == "text"]
    either = [
        *([search_in("doc_id", doc_ids)] if doc_ids else []),
        *([search_in("block_id", block_ids)] if block_ids else []),
    ]
    if not either:
        return None
    top = len(block_ids) + (CANDIDATES if doc_ids else 0)
    request = by_meaning("text", vector, all_of(" or ".join(either), condition), top)
    # The keyword search has already returned these rows; only their vector scores are missing.
    return request if doc_ids else request.model_copy(update={"select": ("block_id",)})


def keyword_scores(query: str, block_ids: Sequence[str]) -> SearchRequest:
    """Return a request for the keyword scores of the given blocks. It selects only their ids."""
    request = by_words(query, search_in("block_id", block_ids))
    return request.model_copy(update={"select": ("block_id",), "top": len(block_ids)})


def by_words_and_meaning(text: str, vector: tuple[float, ...], block_ids: Sequence[str]) -> SearchRequest:
    """Return a request that matches every given block, relevant or not, as input for the semantic ranker."""
    count = len(block_ids)
    return SearchRequest(
        text=keyword_query(text),
        search_fields=_KEYWORD_FIELDS,
        vectors=tuple(
            VectorQuery(vector=vector, field=field, k=count)
            for field in dict.fromkeys(_VECTOR_FIELDS.values())
        ),
        filter=search_in("block_id", block_ids),
        select=("block_id",),
        top=count,
    )


def as_hit(row: Mapping[str, object], score: float) -> Hit:
    """Convert an index row to a hit. The score is rounded to six decimals."""
    values = {name: row[name] for name in FIELDS if row.get(name) is not None}
    return Hit.model_validate({**values, "score": round(score, 6)})


class RankerPause:
    """A pause of the semantic ranker, which starts when the service refuses to rank. One instance per
    process.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._ends = clock()

    @property
    def is_on(self) -> bool:
        return self._clock() < self._ends

    def begin(self, reason: str) -> None:
        """Log the refusal and skip the ranker for the next RANKER_PAUSE_S seconds."""
        self._ends = self._clock() + RANKER_PAUSE_S
        get_logger().warning("search.ranker_refused", error_type=reason)


_PAUSE = RankerPause()


async def semantically_ranked(
    index: SecuredIndex,
    question: str,
    vector: tuple[float, ...],
    hits: Sequence[Hit],
    pause: RankerPause = _PAUSE,
) -> list[Hit]:
    """Reorder the hits by semantic ranker score, unranked ones last. If the ranker fails or is paused, the
    order is unchanged.

    Fused scores are kept and reassigned in the new order, so the best hit has the best score. The ranker's
    own scores use another scale, and thresholds must not depend on whether the ranker is available. Without a
    ranker, or with its quota used up, the service rejects the query or omits the scores.
    """
    if not hits or pause.is_on:
        return list(hits)
    ids = [hit.block_id for hit in hits[:_MAX_RERANKED]]
    request = by_words_and_meaning(question, vector, ids)
    ranking_request = request.model_copy(
        update={"semantic_configuration": SEMANTIC_CONFIGURATION, "semantic_query": question}
    )
    try:
        # Returns the ids and scores of hits whose permissions were already checked.
        page = await index.candidates(ranking_request)
    except GroundworkError as failed:
        pause.begin(failed.code)
        return list(hits)
    read = {str(row["block_id"]): row.get(_RERANKER_SCORE) for row in page.rows}
    scores = {block_id: float(score) for block_id, score in read.items() if score is not None}
    if not scores:
        pause.begin("no_scores")
        return list(hits)
    # Hits without a ranker score come last, because ranker scores are at least 0.
    ordered = sorted(hits, key=lambda hit: -scores.get(hit.block_id, -1.0))
    fused = sorted((hit.score for hit in hits), reverse=True)
    return [hit.model_copy(update={"score": score}) for hit, score in zip(ordered, fused, strict=True)]


@dataclass(frozen=True)
class BlockLookup:
    """Lookup of blocks by id for one user."""

    index: SecuredIndex

    async def get_many(self, block_ids: Sequence[str]) -> list[Hit]:
        """Return the blocks with these ids in the given order, without duplicates. Missing and unreadable
        blocks are omitted; scores are 0.
        """
        ids = list(dict.fromkeys(block_ids))
        if not ids:
            return []
        request = SearchRequest(filter=search_in("block_id", ids), select=FIELDS, top=len(ids))
        page = await self.index.search(request)
        rows = {row["block_id"]: row for row in page.rows}
        return [as_hit(rows[block_id], 0.0) for block_id in ids if block_id in rows]


@dataclass(frozen=True)
class DocumentBlocks:
    """Reader of the blocks of a document for one user."""

    index: SecuredIndex

    async def pages(self, doc_id: str, first: int, last: int) -> list[Hit]:
        """Return the blocks of pages `first` to `last` (counted from 1, inclusive) in reading order.

        Blocks without a page number are always included.
        """
        on_pages = f"page_number ge {first} and page_number le {last}"
        request = SearchRequest(
            filter=all_of(f"doc_id eq {quote(doc_id)}", _PASSAGES, f"({on_pages}) or page_number eq null"),
            select=FIELDS,
            order_by=_READING_ORDER,
            top=_PAGE_ROWS,
        )
        return [as_hit(row, 1.0) for row in (await self.index.search(request)).rows]

    async def whole(self, doc_id: str) -> list[Hit]:
        """Return all blocks of a document except table cards, in reading order. Return none if there are 500
        or more.
        """
        request = SearchRequest(
            filter=all_of(f"doc_id eq {quote(doc_id)}", _PASSAGES),
            select=FIELDS,
            order_by=_READING_ORDER,
            top=_PAGE_ROWS,
        )
        rows = (await self.index.search(request)).rows
        return [as_hit(row, 0.0) for row in rows] if len(rows) < _PAGE_ROWS else []

    async def ids_of_short(self, doc_ids: Collection[str]) -> dict[str, set[str]]:
        """Return the block ids, without table cards, of those documents that are short enough to be listed
        completely.

        Document rows are not checked, so never show these blocks to a user.
        """
        request = SearchRequest(
            filter=search_in("doc_id", doc_ids),
            select=("block_id", "block_type", "ordinal"),
            order_by=_READING_ORDER,
            top=_OUTLINE_ROWS,
        )
        rows = (await self.index.candidates(request)).rows
        ids: dict[str, set[str]] = {doc_id: set() for doc_id in doc_ids}
        counts = Counter(str(row["doc_id"]) for row in rows)
        for row in rows:
            if row["block_type"] != "card":
                ids[str(row["doc_id"])].add(str(row["block_id"]))
        if len(rows) < _OUTLINE_ROWS:
            return ids
        # Rows are sorted by ordinal, and the ordinals of a document have no gaps. A document with fewer rows
        # than the last ordinal was therefore read completely.
        last = int(rows[-1].get("ordinal") or 0)
        return {doc_id: blocks for doc_id, blocks in ids.items() if counts[doc_id] < last}

    async def sizes(self, doc_id: str) -> list[tuple[str, int]]:
        """Return the id and token count of each readable text block in reading order, for at most 20,000
        blocks.
        """
        sizes: list[tuple[str, int]] = []
        for skip in range(0, _MAX_BLOCKS, _PAGE_ROWS):
            request = SearchRequest(
                filter=all_of(f"doc_id eq {quote(doc_id)}", "block_type eq 'text'"),
                select=("block_id", "content"),
                order_by=_READING_ORDER,
                top=_PAGE_ROWS,
                skip=skip,
            )
            page = await self.index.candidates(request)
            rows = await self.index.readable(page.rows)
            sizes += [(str(row["block_id"]), tokens_of(str(row.get("content") or ""))) for row in rows]
            if len(page.rows) < _PAGE_ROWS:
                break
        return sizes
