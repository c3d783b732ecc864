"""Hybrid search over blocks: keyword and vector searches run separately, and their scores are fused here.

The service itself fuses by rank, which loses to fused scores on every set measured (decision 0006).
While a question is embedded, the documents that it names and the blocks that share its words are found. Then
blocks of similar meaning are searched for: anywhere, and among what words and names found. Blocks that the
keyword search missed are scored in one more request, by id, so that scores are compared and never
guessed. At most six requests for a question and five for each further phrasing, in three
rounds; the first round runs in parallel with the embedding.

Everything found is a candidate until `merge` has read the rows of the best blocks' documents; scores and
order are computed again without what these rows refuse.

Over 500 lines: the rounds of a search, and the other ways to read blocks, share one table of fields.
"""

import asyncio
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
from shared.retrieval.documents import DocumentSearch
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

CANDIDATES = 50  # per ranking; recall at 10 rose no further above this on the sets of decision 0006
MAX_TOP_K = 50
_MAX_RERANKED = 50  # the service reranks no more
RANKER_PAUSE_S = 600.0  # after a refusal; that of a used-up quota lasts until the next month
_PAGE_ROWS = 500  # of one query; a block has about 1 kB
_MAX_BLOCKS = 20_000  # far more than a summary reads; the service pages to 100,000

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

# Not the heading path nor the file name: as fields of equal weight they cost 6 points of hit@1.
_KEYWORD_FIELDS = ("content", "image_caption")
_VECTOR_FIELDS: Mapping[BlockType, str] = {
    "text": "content_vector",
    "image": "image_caption_vector",
    "card": "content_vector",
}
_PASSAGES = "block_type ne 'card'"
_READING_ORDER = ("ordinal", "block_id")
_MOST_LOST = 1 / 3  # of the best hits: with more gone, others that the rankings lack may be better
_NO_DOCUMENT = "-"  # no document has this id
_RERANKER_SCORE = "@search.reranker_score"

Missed = Literal["meaning", "late"]


@dataclass(frozen=True)
class DegradationPolicy:
    """How a search continues without the parts that fail or are late, where an answer is better than none.

    Attributes:
        embed_limits: for embedding the question; when that fails, only the keyword search runs.
        patience_s: counted from the start of a search; vector searches that take longer are given up.
    """

    embed_limits: CallLimits
    patience_s: float


@dataclass(frozen=True)
class _Phrasing:
    """One phrasing, with its embedding, if it could be embedded, and what the keyword search found."""

    text: str
    vector: tuple[float, ...] | None
    found: SearchPage


class Ranking:
    """The blocks for one phrasing. They are candidates: `BlockSearch.merge` decides which are shown.

    Attributes:
        vector: None when the phrasing could not be embedded.
        filters: those of the search.
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
        """Drop blocks of unreadable documents (None) and of older versions; of others the row is kept."""
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
            documents: the index of documents for the same user; None = no document is preferred.
            semantic_ranker: the service's own ranker orders the result; one more request.
            relevant_cosine: what the embedding model gives a question and a passage that answers it.
            degradation: None = any failure fails the search. `missed` says what a search had to do without.
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
        found = await self.rank_each(queries, filters)
        return await self.merge(found, top_k)

    async def rank_each(
        self, queries: Sequence[str], filters: Filters, *, without: Collection[str] = ()
    ) -> list[Ranking]:
        """Rank blocks for each phrasing, to `merge` with others. Arguments and errors as `search`.

        Args:
            without: ids of documents to leave out.
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
        vectors, (named, pages) = await run_together(
            self._embedded(phrasings),
            run_together(
                self._named(phrasings[0], filters, until),
                run_together(*(self._index.candidates(by_words(text, passages)) for text in phrasings)),
            ),
        )
        named = {doc_id: score for doc_id, score in named.items() if doc_id not in without}
        asked = list(map(_Phrasing, phrasings, vectors, pages))
        found = await run_together(
            *(
                self._one_phrasing(
                    phrasing, condition, named, () if position else documents_to_narrow_to(named), until
                )
                for position, phrasing in enumerate(asked)
            )
        )
        return [Ranking(phrasing, one, filters) for phrasing, one in zip(asked, found, strict=True)]

    async def _of_blocks(self, filters: Filters) -> Filters:
        """The filters as blocks have them: what only documents have becomes their ids."""
        of_documents = {field: value for field, value in filters.items() if field not in BLOCK_FIELDS}
        if not of_documents or self._documents is None:
            return filters
        render_filters(filters, SEARCH_FIELDS)  # names the fields that there are
        shared = {field: value for field, value in filters.items() if field in DOCUMENT_FIELDS}
        doc_ids = await self._documents.ids_of(shared)
        kept = {field: value for field, value in filters.items() if field in BLOCK_FIELDS}
        return {**kept, "doc_id": tuple(doc_ids) or _NO_DOCUMENT}

    async def merge(self, rankings: Sequence[Ranking], top_k: int) -> list[Hit]:
        """Return the best readable blocks of all rankings, best first.

        The documents of these blocks are checked, and what their rows refuse leaves all rankings. If that is
        a third of the hits or more, the search runs once more without those documents.

        Args:
            rankings: the first one is of the most important phrasing.
            top_k: as for `search`.

        Raises:
            DependencyError: a service failed.
        """
        if not rankings:
            return []
        first, top_k = rankings[0], min(max(top_k, 1), MAX_TOP_K)
        # The ranker may move any of these to the front.
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
        """Return the best readable blocks, the unreadable documents, and how many of the best these had."""
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

    async def _embedded(self, phrasings: Sequence[str]) -> Sequence[tuple[float, ...] | None]:
        """A vector for each phrasing; None for each when embedding failed and the policy allows that."""
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

    async def _named(self, question: str, filters: Filters, until: float | None) -> Mapping[str, float]:
        """The documents that the question names. They only help, so a failure is logged and ignored."""
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
        named: Mapping[str, float],
        doc_ids: Sequence[str],
        until: float | None,
    ) -> "_Candidates":
        """Search for one phrasing.

        Args:
            doc_ids: documents to search on their own, too.
            until: on the event loop's clock; searches that take longer are given up. None = never.
        """
        vector, found = phrasing.vector, phrasing.found
        seen = _Candidates(found, (), named, self._relevant_cosine)
        if vector is None:
            return seen
        requests = [
            by_meaning("text", vector, condition),
            by_meaning("image", vector, condition),
            focused(vector, condition, doc_ids, found.rows),
        ]
        try:
            async with asyncio.timeout_at(until):
                pages = await run_together(
                    *(self._index.candidates(request) for request in requests if request)
                )
                seen = _Candidates(found, pages, named, self._relevant_cosine)
                if unknown := seen.without_words():
                    seen.add_words(await self._index.candidates(keyword_scores(phrasing.text, unknown)))
        except TimeoutError:
            get_logger().warning("search.timed_out", error_type=CallTimeoutError.code)
            self.missed.add("late")
        return seen


def _merged(rankings: Sequence[Ranking]) -> list[Hit]:
    """Return the hits of all rankings, best first; a block keeps the best score that any ranking gave it."""
    if len(rankings) == 1:
        return list(rankings[0].hits)
    best: dict[str, Hit] = {}
    for hit in (hit for ranking in rankings for hit in ranking.hits):
        if hit.block_id not in best or best[hit.block_id].score < hit.score:
            best[hit.block_id] = hit
    ranked = fuse_ranks([[hit.block_id for hit in ranking.hits] for ranking in rankings])
    return [best[block_id] for block_id, _ in ranked]


def _with_copies(best: Iterable[Hit], ordered: Iterable[Hit]) -> set[str]:
    """Return the documents of the best hits, and of other hits with the same words (`originals_first`)."""
    doc_ids = {hit.doc_id for hit in best}
    words = {_words_of(hit.block_id) for hit in best} - {""}
    return doc_ids | {hit.doc_id for hit in ordered if _words_of(hit.block_id) in words}


def _words_of(block_id: str) -> str:
    """Return the part of a block's id that is equal for equal words in any document."""
    return block_id.partition("-")[2]


class _Candidates:
    """Blocks found for one phrasing, with the scores of the service: by keyword, and by vector."""

    def __init__(
        self,
        by_keyword: SearchPage,
        by_vector: Sequence[SearchPage],
        named: Mapping[str, float],
        relevant_cosine: float,
    ) -> None:
        self._named = named
        self._relevant_cosine = relevant_cosine
        self._documents: dict[str, DocumentRow] = {}
        pages = (*by_vector, by_keyword)  # the row of the keyword search wins: it has all fields
        self._rows: dict[str, IndexRow] = {str(row["block_id"]): row for page in pages for row in page.rows}
        self._keyword = _scores(by_keyword)
        self._vector = {block_id: score for page in by_vector for block_id, score in _scores(page).items()}
        # Fewer rows than asked for: no other block shares a word, so all others score 0.
        self._knows_all_words = len(by_keyword.rows) < CANDIDATES

    def without_words(self) -> list[str]:
        """The blocks whose keyword score is not known."""
        if self._knows_all_words:
            return []
        return [block_id for block_id in self._rows if block_id not in self._keyword]

    def add_words(self, page: SearchPage) -> None:
        """Add keyword scores of blocks that the vector searches found."""
        self._keyword.update(_scores(page))

    def check(self, documents: Mapping[str, DocumentRow | None]) -> None:
        """Drop blocks that the rows of these documents refuse (None), or that are of an older version."""
        self._documents |= {doc_id: row for doc_id, row in documents.items() if row is not None}
        for block_id, row in list(self._rows.items()):
            doc_id = str(row["doc_id"])
            if doc_id in documents and not is_current(row, documents[doc_id]):
                for known in (self._rows, self._keyword, self._vector):
                    known.pop(block_id, None)

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
    """Return the same order, but of equal words in equal files, the blocks of the oldest document first.

    So a copy under a name that fits better, or that more people may read, does not displace the document that
    was there before it, for those who may read that one.

    Args:
        documents: the rows of the blocks' documents by block, as far as they are known.
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


def by_words(text: str, condition: str | None) -> SearchRequest:
    """The blocks that share words with a question."""
    return SearchRequest(
        text=question_query(text),
        query_type="full",
        search_fields=_KEYWORD_FIELDS,
        filter=condition,
        select=FIELDS,
        top=CANDIDATES,
    )


def card_requests(text: str, vector: tuple[float, ...]) -> tuple[SearchRequest, SearchRequest]:
    """The cards of tables that fit a question: by words, and by meaning."""
    return by_words(text, "block_type eq 'card'"), by_meaning("card", vector, None)


def by_meaning(
    kind: BlockType, vector: tuple[float, ...], condition: str | None, top: int = CANDIDATES
) -> SearchRequest:
    """The blocks of one type whose meaning is close to that of a question."""
    # Text blocks have no caption vector and image blocks no content vector; the type keeps rows without
    # the field out, whatever score a service would give them.
    return SearchRequest(
        vectors=(VectorQuery(vector=vector, field=_VECTOR_FIELDS[kind], k=top),),
        filter=all_of(f"block_type eq '{kind}'", condition),
        select=FIELDS,
        top=top,
    )


def focused(
    vector: tuple[float, ...], condition: str | None, doc_ids: Sequence[str], rows: Sequence[IndexRow]
) -> SearchRequest | None:
    """Text blocks by meaning, among those that the keyword search found and in the documents named.

    One request for both; None when there is neither.
    """
    block_ids = [str(row["block_id"]) for row in rows if row.get("block_type") == "text"]
    either = [
        *([search_in("doc_id", doc_ids)] if doc_ids else []),
        *([search_in("block_id", block_ids)] if block_ids else []),
    ]
    if not either:
        return None
    top = len(block_ids) + (CANDIDATES if doc_ids else 0)
    asked = by_meaning("text", vector, all_of(" or ".join(either), condition), top)
    # Rows of the keyword search are known; only their score is missing.
    return asked if doc_ids else asked.model_copy(update={"select": ("block_id",)})


def keyword_scores(text: str, block_ids: Sequence[str]) -> SearchRequest:
    """The keyword scores of some blocks for a question, without any other field."""
    found = by_words(text, search_in("block_id", block_ids))
    return found.model_copy(update={"select": ("block_id",), "top": len(block_ids)})


def by_words_and_meaning(text: str, vector: tuple[float, ...], block_ids: Sequence[str]) -> SearchRequest:
    """All of the given blocks, however little they fit: the input of the semantic ranker."""
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
    """A row as a hit."""
    values = {name: row[name] for name in FIELDS if row.get(name) is not None}
    return Hit.model_validate({**values, "score": round(score, 6)})


class RankerPause:
    """Whether the semantic ranker is left alone for a while, because it refused. One for each process."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._ends = clock()

    @property
    def is_on(self) -> bool:
        return self._clock() < self._ends

    def begin(self, reason: str) -> None:
        """Ask no more for RANKER_PAUSE_S seconds."""
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
    """The same hits in the ranker's order, those that it passed over last; unchanged when it does not answer.

    The scores stay those of the fusion, and only move with the order: the best hit has the best of them. The
    ranker's own have another scale, and every threshold would mean something else whenever it is away.
    A service without the ranker, or one whose quota is used up, refuses the query or leaves the scores out.
    """
    if not hits or pause.is_on:
        return list(hits)
    ids = [hit.block_id for hit in hits[:_MAX_RERANKED]]
    request = by_words_and_meaning(question, vector, ids)
    asked = request.model_copy(
        update={"semantic_configuration": SEMANTIC_CONFIGURATION, "semantic_query": question}
    )
    try:
        page = await index.candidates(asked)  # only scores of hits that are checked already
    except GroundworkError as failed:
        pause.begin(failed.code)
        return list(hits)
    read = {str(row["block_id"]): row.get(_RERANKER_SCORE) for row in page.rows}
    scores = {block_id: float(score) for block_id, score in read.items() if score is not None}
    if not scores:
        pause.begin("no_scores")
        return list(hits)
    ordered = sorted(hits, key=lambda hit: -scores.get(hit.block_id, -1.0))  # the scale begins at 0
    fused = sorted((hit.score for hit in hits), reverse=True)
    return [hit.model_copy(update={"score": score}) for hit, score in zip(ordered, fused, strict=True)]


@dataclass(frozen=True)
class BlockLookup:
    """Gets blocks that one user may read."""

    index: SecuredIndex

    async def get_many(self, block_ids: Sequence[str]) -> list[Hit]:
        """Those of the blocks that exist and are readable, in the order asked for, each once; score 0."""
        wanted = list(dict.fromkeys(block_ids))
        if not wanted:
            return []
        request = SearchRequest(filter=search_in("block_id", wanted), select=FIELDS, top=len(wanted))
        page = await self.index.search(request)
        found = {row["block_id"]: row for row in page.rows}
        return [as_hit(found[block_id], 0.0) for block_id in wanted if block_id in found]


@dataclass(frozen=True)
class DocumentBlocks:
    """Reads documents block by block."""

    index: SecuredIndex

    async def pages(self, doc_id: str, first: int, last: int) -> list[Hit]:
        """The blocks of some pages (1-based, both included) in reading order; of a document without pages
        all blocks, as if it were one page."""
        on_pages = f"page_number ge {first} and page_number le {last}"
        request = SearchRequest(
            filter=all_of(f"doc_id eq {quote(doc_id)}", _PASSAGES, f"({on_pages}) or page_number eq null"),
            select=FIELDS,
            order_by=_READING_ORDER,
            top=_PAGE_ROWS,
        )
        return [as_hit(row, 1.0) for row in (await self.index.search(request)).rows]

    async def whole(self, doc_id: str) -> list[Hit]:
        """All blocks in reading order; none if there are more than one request gives."""
        request = SearchRequest(
            filter=all_of(f"doc_id eq {quote(doc_id)}", _PASSAGES),
            select=FIELDS,
            order_by=_READING_ORDER,
            top=_PAGE_ROWS,
        )
        rows = (await self.index.search(request)).rows
        return [as_hit(row, 0.0) for row in rows] if len(rows) < _PAGE_ROWS else []

    async def sizes(self, doc_id: str) -> list[tuple[str, int]]:
        """(block id, tokens) of each text block in reading order; at most 20,000."""
        found: list[tuple[str, int]] = []
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
            found += [(str(row["block_id"]), tokens_of(str(row.get("content") or ""))) for row in rows]
            if len(page.rows) < _PAGE_ROWS:
                break
        return found
