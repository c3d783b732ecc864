"""What is asked of the index of blocks, and what its rows become. Pure: builds requests, sends none."""

from collections.abc import Mapping, Sequence

from shared.core.keyword_query import keyword_query, question_query
from shared.core.odata import all_of, search_in
from shared.models.blocks import BlockType
from shared.models.search import Hit, IndexRow, SearchRequest, VectorQuery

CANDIDATES = 50  # per ranking; recall at 10 rose no further above this on the sets of decision 0006
SCORE = "@search.score"
SCORE_OF_RANKER = "@search.reranker_score"
FIELDS = (
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
_VECTOR_FIELDS: Mapping[BlockType, str] = {"text": "content_vector", "image": "image_caption_vector"}


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


def by_meaning(
    kind: BlockType, vector: tuple[float, ...], condition: str | None, top: int = CANDIDATES
) -> SearchRequest:
    """The blocks of one type that mean the like of a question."""
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
    """The meaning of the texts that words found, and of those in the documents named; None if there are none.

    One request for both: each may fill half of it.
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
    # What words found is known but for its score.
    return asked if doc_ids else asked.model_copy(update={"select": ("block_id",)})


def words_of(text: str, block_ids: Sequence[str]) -> SearchRequest:
    """The words that some blocks share with a question: only their scores are wanted."""
    found = by_words(text, search_in("block_id", block_ids))
    return found.model_copy(update={"select": ("block_id",), "top": len(block_ids)})


def by_words_and_meaning(text: str, vector: tuple[float, ...], block_ids: Sequence[str]) -> SearchRequest:
    """Some blocks, all of them, however little they fit: what the semantic ranker is to read."""
    count = len(block_ids)
    return SearchRequest(
        text=keyword_query(text),
        search_fields=_KEYWORD_FIELDS,
        vectors=tuple(VectorQuery(vector=vector, field=field, k=count) for field in _VECTOR_FIELDS.values()),
        filter=search_in("block_id", block_ids),
        select=("block_id",),
        top=count,
    )


def as_hit(row: Mapping[str, object], score: float) -> Hit:
    """A row as a hit."""
    values = {name: row[name] for name in FIELDS if row.get(name) is not None}
    return Hit.model_validate({**values, "score": round(score, 6)})
