"""Finds pictures on the pages of text that was found: a search may find a text and miss its picture."""

from collections.abc import Sequence
from typing import Protocol

from shared.platform.language_models.models import CallLimits, Embedder
from shared.platform.odata import all_of, quote
from shared.platform.search import IndexRow, SearchRequest, VectorQuery
from shared.retrieval.blocks import FIELDS, as_hit
from shared.retrieval.fusion import cosine_of_vector_score
from shared.retrieval.models import Hit
from shared.retrieval.secured_index import SecuredIndex

MAX_PAGES = 8  # the best ones: an answer cites three or four; unmeasured
MAX_FOUND = 4  # unmeasured
_FIELD = "image_caption_vector"


class FigureFinder(Protocol):
    """Finds pictures near blocks."""

    async def near(self, question: str, hits: Sequence[Hit]) -> Sequence[Hit]: ...


class PageFigures:
    """`FigureFinder` over the index of blocks, for one user."""

    def __init__(self, index: SecuredIndex, embedder: Embedder, limits: CallLimits) -> None:
        self._index = index
        self._embedder = embedder
        self._limits = limits

    async def near(self, question: str, hits: Sequence[Hit]) -> list[Hit]:
        """Pictures on the pages of the best text blocks that `hits` does not hold, the best captions first.

        A document without pages counts as one page. The score is the similarity of caption and question.
        """
        pages = list(dict.fromkeys((hit.doc_id, hit.page_number) for hit in hits if hit.block_type == "text"))
        if not pages or not question.strip():
            return []
        (vector,) = await self._embedder.embed([question], self._limits)
        on_pages = " or ".join(f"({_page_filter(*page)})" for page in pages[:MAX_PAGES])
        request = SearchRequest(
            vectors=(VectorQuery(vector=vector, field=_FIELD, k=MAX_FOUND),),
            filter=all_of("block_type eq 'image'", on_pages),
            select=FIELDS,
            top=MAX_FOUND,
        )
        page = await self._index.search(request)
        known = {hit.block_id for hit in hits}
        return [as_hit(row, _similarity(row)) for row in page.rows if row["block_id"] not in known]


def _page_filter(doc_id: str, page_number: int | None) -> str:
    page = "null" if page_number is None else str(page_number)
    return f"doc_id eq {quote(doc_id)} and page_number eq {page}"


def _similarity(row: IndexRow) -> float:
    return min(max(cosine_of_vector_score(float(row["@search.score"])), 0.0), 1.0)
