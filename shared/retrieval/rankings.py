"""Ranking of the blocks found for one phrasing of a question, by the scores of the search service. No I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared.platform.search import Filters, IndexRow, SearchPage
from shared.retrieval.block_requests import CANDIDATES, as_hit
from shared.retrieval.document_rows import DocumentRow
from shared.retrieval.fusion import (
    BlockPosition,
    calibrated,
    cosine_of_vector_score,
    documents_to_narrow_to,
    fuse_scores,
    order_blocks,
)
from shared.retrieval.models import Hit
from shared.retrieval.secured_index import is_current


@dataclass(frozen=True)
class Phrasing:
    """A phrasing of the question with its embedding (None if embedding failed), its keyword query and that
    query's results.
    """

    text: str
    vector: tuple[float, ...] | None
    query: str
    by_keyword: SearchPage


class Ranking:
    """The blocks found for one phrasing of a question, ranked by their keyword and vector scores.

    They are candidates until `check` has dropped what the user may not read.

    Attributes:
        filters: filters of the search, converted to fields of blocks.
    """

    def __init__(
        self,
        phrasing: Phrasing,
        filters: Filters,
        name_scores: Mapping[str, float],
        relevant_cosine: float,
    ) -> None:
        """Rank the results of the keyword search. `add_vector_results` adds the others.

        Args:
            name_scores: doc_id -> the service's score of names shared by question and document.
            relevant_cosine: the embedding model's typical cosine of a question and a relevant passage.
        """
        self.phrasing = phrasing
        self.filters = filters
        self._name_scores = name_scores
        self._relevant_cosine = relevant_cosine
        self._documents: dict[str, DocumentRow] = {}
        self._rows = _rows(phrasing.by_keyword)
        self._keyword = _scores(phrasing.by_keyword)
        self._vector: dict[str, float] = {}
        self._hits: Sequence[Hit] | None = None

    @property
    def named_ids(self) -> tuple[str, ...]:
        """The ids of the documents that the question names, best first."""
        return documents_to_narrow_to(self._name_scores)

    @property
    def without_keyword_score(self) -> list[str]:
        """The ids of blocks whose keyword score is unknown and must be requested."""
        if len(self.phrasing.by_keyword.rows) < CANDIDATES:
            # Fewer rows than requested means that no other block contains a word of the query, so all others
            # score 0.
            return []
        return [block_id for block_id in self._rows if block_id not in self._keyword]

    @property
    def hits(self) -> Sequence[Hit]:
        """The blocks by fused score, best first. Among identical files, the oldest precedes its copies."""
        if self._hits is None:
            self._hits = self._ranked()
        return self._hits

    def add_vector_results(self, pages: Sequence[SearchPage]) -> None:
        """Add blocks found by vector search, and their scores."""
        for page in pages:
            self._vector |= _scores(page)
        # The complete rows of the keyword search replace partial ones.
        self._rows = {**{key: row for page in pages for key, row in _rows(page).items()}, **self._rows}
        self._hits = None

    def add_keyword_scores(self, page: SearchPage) -> None:
        """Add keyword scores that were requested for blocks found only by vector search."""
        self._keyword |= _scores(page)
        self._hits = None

    def check(self, documents: Mapping[str, DocumentRow | None]) -> None:
        """Drop blocks of unreadable documents (mapped to None) and of outdated versions. Other rows are kept
        for ordering.
        """
        self._documents |= {doc_id: row for doc_id, row in documents.items() if row is not None}
        for block_id, row in list(self._rows.items()):
            doc_id = str(row["doc_id"])
            if doc_id in documents and not is_current(row, documents[doc_id]):
                for scores in (self._rows, self._keyword, self._vector):
                    scores.pop(block_id, None)
        self._hits = None

    def _ranked(self) -> list[Hit]:
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
        ordered = originals_first(order_blocks(fused, places, self._name_scores), documents)
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
            places.setdefault((same_bytes, text_key_of(block_id)), []).append(place)
    ordered = list(block_ids)
    for copies in places.values():
        by_age = sorted((block_ids[place] for place in copies), key=lambda one: documents[one].upload_date)
        for place, block_id in zip(copies, by_age, strict=True):
            ordered[place] = block_id
    return ordered


def text_key_of(block_id: str) -> str:
    """Return the part of a block id that is derived from the block's text and is the same for copies in other
    documents.
    """
    return block_id.partition("-")[2]


def _rows(page: SearchPage) -> dict[str, IndexRow]:
    return {str(row["block_id"]): row for row in page.rows}


def _scores(page: SearchPage) -> dict[str, float]:
    return {str(row["block_id"]): float(row["@search.score"]) for row in page.rows}
