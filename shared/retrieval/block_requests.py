"""Requests to the search service for blocks, and conversion of its rows to hits. No I/O."""

from collections.abc import Mapping, Sequence

from shared.platform.odata import all_of, search_in
from shared.platform.search import IndexRow, SearchRequest, VectorQuery
from shared.retrieval.keyword_query import keyword_query, question_query
from shared.retrieval.models import BlockType, Hit

# Number of blocks per ranking. Larger values did not improve recall@10 on the test sets of decision 0006.
CANDIDATES = 50
PASSAGES = "block_type ne 'card'"

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


def keyword_request(query: str, condition: str | None) -> SearchRequest:
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
    return keyword_request(question_query(text), "block_type eq 'card'"), vector_request("card", vector, None)


def vector_request(
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


def focused_vector_request(
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
    request = vector_request("text", vector, all_of(" or ".join(either), condition), top)
    # The keyword search has already returned these rows; only their vector scores are missing.
    return request if doc_ids else request.model_copy(update={"select": ("block_id",)})


def keyword_score_request(query: str, block_ids: Sequence[str]) -> SearchRequest:
    """Return a request for the keyword scores of the given blocks. It selects only their ids."""
    request = keyword_request(query, search_in("block_id", block_ids))
    return request.model_copy(update={"select": ("block_id",), "top": len(block_ids)})


def ranker_request(text: str, vector: tuple[float, ...], block_ids: Sequence[str]) -> SearchRequest:
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
