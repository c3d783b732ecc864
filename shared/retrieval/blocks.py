"""Hybrid search over blocks: keyword and vector searches run separately, and their scores are fused here.

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

CANDIDATES = 50  # per ranking; more did not improve recall at 10 on the sets of decision 0006
MAX_TOP_K = 50
_MAX_RERANKED = 50  # the service's limit
RANKER_PAUSE_S = 600.0  # after a refusal; an exhausted quota lasts until the next month
_PAGE_ROWS = 500  # per query; a block has about 1 kB
_OUTLINE_ROWS = 300  # without text; an answer shows up to ten documents, a short one has under 30 blocks
_MAX_BLOCKS = 20_000  # far more than a summary reads; the service's paging ends at 100,000

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

# Without heading path and file name, which as fields of equal weight cost 6 points of hit@1.
_KEYWORD_FIELDS = ("content", "image_caption")
_VECTOR_FIELDS: Mapping[BlockType, str] = {
    "text": "content_vector",
    "image": "image_caption_vector",
    "card": "content_vector",
}
_PASSAGES = "block_type ne 'card'"
_READING_ORDER = ("ordinal", "block_id")
_MOST_LOST = 1 / 3  # share of the best hits; beyond this, blocks missing from the rankings may be better
_NO_DOCUMENT = "-"  # no document has this id
_RERANKER_SCORE = "@search.reranker_score"

Missed = Literal["meaning", "late"]


@dataclass(frozen=True)
class DegradationPolicy:
    """The parts of a search that may fail or be slow without failing the search.

    Attributes:
        embed_limits: limits of embedding the question; if that fails, only the keyword search runs.
        patience_s: time from the start of the search after which vector searches are abandoned.
    """

    embed_limits: CallLimits
    patience_s: float


@dataclass(frozen=True)
class _Phrasing:
    """A phrasing with its embedding, if available, its keyword query and that query's results."""

    text: str
    vector: tuple[float, ...] | None
    query: str
    found: SearchPage


class Ranking:
    """Candidate blocks for one phrasing. `BlockSearch.merge` decides which are shown.

    Attributes:
        vector: None if the phrasing could not be embedded.
        filters: of the search.
    """

    def __init__(self, phrasing: "_Phrasing", candidates: "_Candidates", filters: Filters) -> None:
        self.text = phrasing.text
        self.vector = phrasing.vector
        self.filters = filters
        self._candidates = candidates
        self._hits: Sequence[Hit] | None = None

    @property
    def hits(self) -> Sequence[Hit]:
        """The candidates, best first, without those that a check refused."""
        if self._hits is None:
            self._hits = self._candidates.hits()
        return self._hits

    def check(self, documents: Mapping[str, DocumentRow | None]) -> None:
        """Drop blocks of unreadable documents (None) and of older versions, and store the other rows."""
        self._candidates.check(documents)
        self._hits = None


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
        degradation: DegradationPolicy | None = None,
        relevant_cosine: float = REFERENCE_COSINE,
    ) -> None:
        """Search for one user.

        Args:
            documents: the index of documents for the same user; None = prefer no document.
            semantic_ranker: whether the service reranks the result, with one more request.
            relevant_cosine: the embedding model's typical cosine of a question and a relevant passage.
            degradation: None = any failure fails the search. `missed` lists what a search did without.
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
        """Return the best blocks for any of the phrasings, best first.

        Each phrasing is searched by keyword and by vector. Several phrasings are merged by reciprocal rank,
        and a block keeps its best score. A hit's score measures its relevance; the order also considers its
        document and neighbours, so scores need not decrease.

        Args:
            queries: phrasings of one question, the most important first; blank ones are ignored.
            top_k: clamped to 1-50.

        Raises:
            InvalidQueryError: a filter field is unknown, or there is no phrasing.
        """
        rankings = await self.rank_each(queries, filters)
        return await self.merge(rankings, top_k)

    async def rank_each(
        self, queries: Sequence[str], filters: Filters, *, without: Collection[str] = ()
    ) -> list[Ranking]:
        """Rank blocks for each phrasing, to be merged by `merge`. Arguments and errors as `search`.

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
        """Convert filters on document fields to document ids, because blocks lack those fields."""
        of_documents = {field: value for field, value in filters.items() if field not in BLOCK_FIELDS}
        if not of_documents or self._documents is None:
            return filters
        render_filters(filters, SEARCH_FIELDS)  # raises for unknown fields
        shared = {field: value for field, value in filters.items() if field in DOCUMENT_FIELDS}
        doc_ids = await self._documents.ids_of(shared)
        supported = {field: value for field, value in filters.items() if field in BLOCK_FIELDS}
        return {**supported, "doc_id": tuple(doc_ids) or _NO_DOCUMENT}

    async def merge(self, rankings: Sequence[Ranking], top_k: int) -> list[Hit]:
        """Return the best readable blocks of all rankings, best first.

        Blocks of documents whose rows refuse them leave all rankings. If that removes a third of the hits,
        the search runs once more without those documents.

        Args:
            rankings: the most important phrasing first.
            top_k: as for `search`.

        Raises:
            DependencyError: a service failed.
        """
        if not rankings:
            return []
        first, top_k = rankings[0], min(max(top_k, 1), MAX_TOP_K)
        # The ranker may move any of these to the top.
        most = MAX_TOP_K if self._semantic_ranker else top_k
        hits, refused, lost = await self._checked(rankings, most)
        if lost >= _MOST_LOST * (len(hits) + lost) and refused:
            texts = [ranking.text for ranking in rankings]
            again = await self.rank_each(texts, first.filters, without=refused)
            hits, _, _ = await self._checked(again, most)
        if self._semantic_ranker and first.vector is not None:
            hits = await semantically_ranked(self._index, first.text, first.vector, hits)
        return hits[:top_k]

    async def _checked(self, rankings: Sequence[Ranking], most: int) -> tuple[list[Hit], set[str], int]:
        """Return the best readable blocks, the unreadable documents, and the number of best blocks lost with
        them.
        """
        checked: set[str] = set()
        refused: set[str] = set()
        lost = 0
        while True:
            ordered = _merged(rankings)
            best = ordered[:most]
            unchecked = _with_copies(best, ordered) - checked
            if not unchecked:
                return best, refused, lost
            readable = await self._index.readable_documents(sorted(unchecked))
            for ranking in rankings:
                ranking.check({doc_id: readable.get(doc_id) for doc_id in unchecked})
            checked |= unchecked
            refused |= unchecked - readable.keys()
            lost += sum(hit.doc_id in unchecked and hit.doc_id not in readable for hit in best)

    async def _by_names_and_words(
        self,
        phrasings: Sequence[str],
        filters: Filters,
        condition: str | None,
        without: Collection[str],
        until: float | None,
    ) -> tuple[Mapping[str, float], list[str], Sequence[SearchPage]]:
        """Return the scores of the documents that the question names, and each phrasing's query and results.

        Queries give little weight to the names of these documents.
        """
        named = await self._named(phrasings[0], filters, until)
        scores = {doc_id: document.score for doc_id, document in named.items() if doc_id not in without}
        names = {name for doc_id in documents_to_narrow_to(scores) for name in named[doc_id].names}
        queries = [question_query(text, names) for text in phrasings]
        pages = await run_together(*(self._index.candidates(by_words(query, condition)) for query in queries))
        return scores, queries, list(pages)

    async def _embedded(self, phrasings: Sequence[str]) -> Sequence[tuple[float, ...] | None]:
        """Embed each phrasing; None for each if embedding fails and the policy allows that."""
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
        """Return the documents that the question names. They only improve ranking, so failures are logged."""
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
        """Search for one phrasing.

        Args:
            doc_ids: documents to search separately as well.
            until: on the event loop's clock; slower searches are abandoned. None = never.
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
    """Merge the hits of all rankings, best first; a block keeps its best score."""
    if len(rankings) == 1:
        return list(rankings[0].hits)
    best: dict[str, Hit] = {}
    for hit in (hit for ranking in rankings for hit in ranking.hits):
        if hit.block_id not in best or best[hit.block_id].score < hit.score:
            best[hit.block_id] = hit
    ranked = fuse_ranks([[hit.block_id for hit in ranking.hits] for ranking in rankings])
    return [best[block_id] for block_id, _ in ranked]


def _with_copies(best: Iterable[Hit], ordered: Iterable[Hit]) -> set[str]:
    """Return the documents of the best hits, and of other hits with identical words
    (see `originals_first`).
    """
    doc_ids = {hit.doc_id for hit in best}
    words = {_words_of(hit.block_id) for hit in best} - {""}
    return doc_ids | {hit.doc_id for hit in ordered if _words_of(hit.block_id) in words}


def _words_of(block_id: str) -> str:
    """Return the part of a block id that depends only on the block's words."""
    return block_id.partition("-")[2]


class _Candidates:
    """The blocks found for one phrasing, with the service's keyword and vector scores."""

    def __init__(
        self,
        by_keyword: SearchPage,
        by_vector: Sequence[SearchPage],
        name_scores: Mapping[str, float],
        relevant_cosine: float,
    ) -> None:
        self._named = name_scores
        self._relevant_cosine = relevant_cosine
        self._documents: dict[str, DocumentRow] = {}
        pages = (*by_vector, by_keyword)  # the keyword search's row wins, because it has all fields
        self._rows: dict[str, IndexRow] = {str(row["block_id"]): row for page in pages for row in page.rows}
        self._keyword = _scores(by_keyword)
        self._vector = {block_id: score for page in by_vector for block_id, score in _scores(page).items()}
        # Fewer rows than requested: no other block shares a word, so all others score 0.
        self._knows_all_words = len(by_keyword.rows) < CANDIDATES

    def without_words(self) -> list[str]:
        """Return the blocks without a keyword score."""
        if self._knows_all_words:
            return []
        return [block_id for block_id in self._rows if block_id not in self._keyword]

    def add_words(self, page: SearchPage) -> None:
        """Add keyword scores of blocks found by the vector searches."""
        self._keyword.update(_scores(page))

    def check(self, documents: Mapping[str, DocumentRow | None]) -> None:
        """Drop blocks whose document rows refuse them (None) and blocks of older versions."""
        self._documents |= {doc_id: row for doc_id, row in documents.items() if row is not None}
        for block_id, row in list(self._rows.items()):
            doc_id = str(row["doc_id"])
            if doc_id in documents and not is_current(row, documents[doc_id]):
                for scores in (self._rows, self._keyword, self._vector):
                    scores.pop(block_id, None)

    def hits(self) -> list[Hit]:
        """Return the blocks with fused scores, best first."""
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
        ordered = originals_first(order_blocks(fused, places, self._named), documents)
        return [as_hit(self._rows[block_id], fused[block_id]) for block_id in ordered]


def originals_first(block_ids: Sequence[str], documents: Mapping[str, DocumentRow]) -> list[str]:
    """Return the order, but with blocks of identical files sorted by document age.

    This prevents a copy with a better name or more readers from displacing the original for its readers.

    Args:
        documents: known document rows by block.
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
    """Return a request for blocks that share words with a question, given as `question_query` returns it."""
    return SearchRequest(
        text=query,
        query_type="full",
        search_fields=_KEYWORD_FIELDS,
        filter=condition,
        select=FIELDS,
        top=CANDIDATES,
    )


def card_requests(text: str, vector: tuple[float, ...]) -> tuple[SearchRequest, SearchRequest]:
    """Return two requests for table cards: by words and by meaning."""
    return by_words(question_query(text), "block_type eq 'card'"), by_meaning("card", vector, None)


def by_meaning(
    kind: BlockType, vector: tuple[float, ...], condition: str | None, top: int = CANDIDATES
) -> SearchRequest:
    """Return a request for blocks of one type with a meaning similar to the question's."""
    # Text blocks have no caption vector and image blocks no content vector. Filtering by type excludes
    # rows without the searched field, which a service might score anyway.
    return SearchRequest(
        vectors=(VectorQuery(vector=vector, field=_VECTOR_FIELDS[kind], k=top),),
        filter=all_of(f"block_type eq '{kind}'", condition),
        select=FIELDS,
        top=top,
    )


def focused(
    vector: tuple[float, ...], condition: str | None, doc_ids: Sequence[str], rows: Sequence[IndexRow]
) -> SearchRequest | None:
    """Return one vector request within the keyword results and the named documents; None without either."""
    block_ids = [str(row["block_id"]) for row in rows if row.get("block_type") == "text"]
    either = [
        *([search_in("doc_id", doc_ids)] if doc_ids else []),
        *([search_in("block_id", block_ids)] if block_ids else []),
    ]
    if not either:
        return None
    top = len(block_ids) + (CANDIDATES if doc_ids else 0)
    request = by_meaning("text", vector, all_of(" or ".join(either), condition), top)
    # The keyword search returned these rows without a score.
    return request if doc_ids else request.model_copy(update={"select": ("block_id",)})


def keyword_scores(query: str, block_ids: Sequence[str]) -> SearchRequest:
    """Return a request for the keyword scores of given blocks, without other fields."""
    request = by_words(query, search_in("block_id", block_ids))
    return request.model_copy(update={"select": ("block_id",), "top": len(block_ids)})


def by_words_and_meaning(text: str, vector: tuple[float, ...], block_ids: Sequence[str]) -> SearchRequest:
    """Return a request for all given blocks, however irrelevant: the input of the semantic ranker."""
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
    """Convert a row to a hit."""
    values = {name: row[name] for name in FIELDS if row.get(name) is not None}
    return Hit.model_validate({**values, "score": round(score, 6)})


class RankerPause:
    """A pause of the semantic ranker after a refusal. One per process."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._ends = clock()

    @property
    def is_on(self) -> bool:
        return self._clock() < self._ends

    def begin(self, reason: str) -> None:
        """Skip the ranker for RANKER_PAUSE_S seconds."""
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
    """Return the hits in the ranker's order, unranked ones last; unchanged if the ranker fails.

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
        page = await index.candidates(ranking_request)  # only scores of hits that were already checked
    except GroundworkError as failed:
        pause.begin(failed.code)
        return list(hits)
    read = {str(row["block_id"]): row.get(_RERANKER_SCORE) for row in page.rows}
    scores = {block_id: float(score) for block_id, score in read.items() if score is not None}
    if not scores:
        pause.begin("no_scores")
        return list(hits)
    ordered = sorted(hits, key=lambda hit: -scores.get(hit.block_id, -1.0))  # the scale starts at 0
    fused = sorted((hit.score for hit in hits), reverse=True)
    return [hit.model_copy(update={"score": score}) for hit, score in zip(ordered, fused, strict=True)]


@dataclass(frozen=True)
class BlockLookup:
    """Gets blocks by id for one user."""

    index: SecuredIndex

    async def get_many(self, block_ids: Sequence[str]) -> list[Hit]:
        """Return the existing, readable blocks in the requested order, each once, with score 0."""
        ids = list(dict.fromkeys(block_ids))
        if not ids:
            return []
        request = SearchRequest(filter=search_in("block_id", ids), select=FIELDS, top=len(ids))
        page = await self.index.search(request)
        rows = {row["block_id"]: row for row in page.rows}
        return [as_hit(rows[block_id], 0.0) for block_id in ids if block_id in rows]


@dataclass(frozen=True)
class DocumentBlocks:
    """Reads documents block by block."""

    index: SecuredIndex

    async def pages(self, doc_id: str, first: int, last: int) -> list[Hit]:
        """Return the blocks of pages `first` to `last` (1-based, inclusive) in reading order.

        A document without pages counts as one page.
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
        """Return all blocks in reading order; none if they exceed one request."""
        request = SearchRequest(
            filter=all_of(f"doc_id eq {quote(doc_id)}", _PASSAGES),
            select=FIELDS,
            order_by=_READING_ORDER,
            top=_PAGE_ROWS,
        )
        rows = (await self.index.search(request)).rows
        return [as_hit(row, 0.0) for row in rows] if len(rows) < _PAGE_ROWS else []

    async def ids_of_short(self, doc_ids: Collection[str]) -> dict[str, set[str]]:
        """Return the ids of all blocks, cards excepted, of those documents that have few.

        Readable or not: show nothing of them.
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
        # Ordinals have no gaps, so a shorter document's next block would precede the last row.
        last = int(rows[-1].get("ordinal") or 0)
        return {doc_id: blocks for doc_id, blocks in ids.items() if counts[doc_id] < last}

    async def sizes(self, doc_id: str) -> list[tuple[str, int]]:
        """Return (block id, tokens) of up to 20,000 text blocks in reading order."""
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
