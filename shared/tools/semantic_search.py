"""The tool `rag_semantic_search`, a hybrid search over text and image blocks."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

from pydantic import Field, field_validator

from shared.documents.figures import image_urls
from shared.platform.search import Filters
from shared.retrieval.blocks import MAX_TOP_K, BlockSearch
from shared.retrieval.filters import SEARCH_FIELDS
from shared.retrieval.models import Hit
from shared.tools.base import Parameters, Tool, ToolEvidence, ToolResult, describe_filters
from shared.tools.binding import Binding

ImageUrls = Callable[[Sequence[Hit]], Awaitable[Mapping[str, str]]]
"""Function that returns the picture URLs of image blocks among the hits, by block_id."""


class SemanticSearchParameters(Parameters):
    """Arguments of `rag_semantic_search`."""

    query: str = Field(description="Search terms or a question.", min_length=1)
    top_k: int = Field(default=10, description=f"Number of results, 1-{MAX_TOP_K}.")
    filters: Filters = Field(default_factory=dict, description=describe_filters(SEARCH_FIELDS))

    @field_validator("top_k")
    @classmethod
    def _clamp(cls, value: int) -> int:
        return min(max(value, 1), MAX_TOP_K)


@dataclass(frozen=True)
class SemanticSearch(Tool):
    """Searches blocks that the user may read. Without `image_urls`, results have no picture URLs."""

    blocks: BlockSearch
    image_urls: ImageUrls | None = None
    evidence: ToolEvidence = field(default_factory=ToolEvidence)

    name = "rag_semantic_search"
    description = "Find passages and figures of the documents that bear on a query."
    parameters = SemanticSearchParameters
    documentation = (
        "Passages and figures, by keyword and vector search: `results` with `block_id`, `doc_id`, "
        "`filename`, `page_number`, `score` (0-1) and `content`, or of a figure `image_url` and "
        "`image_caption`; `result_count`."
    )
    example = '{"query": "pump"}'
    reports_documents = True

    @classmethod
    def bind(cls, binding: Binding) -> Self:
        urls = partial(image_urls, services=binding.services)
        return cls(binding.block_search(), urls, binding.evidence)

    async def _run(self, arguments: SemanticSearchParameters) -> ToolResult:
        known_blocks = self.evidence.known_blocks
        most = min(arguments.top_k + len(known_blocks), MAX_TOP_K)
        candidates = await self.blocks.search([arguments.query], most, arguments.filters)
        hits = _up_to(candidates, known_blocks, arguments.top_k)
        self.evidence.hits.extend(hits)
        urls = await self.image_urls(hits) if self.image_urls else {}
        return search_results(hits, urls)


def _up_to(hits: Sequence[Hit], known_blocks: Collection[str], top_k: int) -> list[Hit]:
    """Return the first hits, up to and including the `top_k`th that isn't in `known_blocks`."""
    new = [place for place, hit in enumerate(hits, 1) if hit.block_id not in known_blocks]
    return list(hits[: new[top_k - 1]] if len(new) >= top_k else hits)


def search_results(hits: Sequence[Hit], image_urls: Mapping[str, str]) -> ToolResult:
    """Convert hits to the result fields of a search. `image_urls` contains a URL per block_id of an image."""
    results = [search_result(hit, image_urls.get(hit.block_id)) for hit in hits]
    return {"results": results, "result_count": len(results)}


def search_result(hit: Hit, image_url: str | None) -> dict[str, Any]:
    """Convert a hit to a result for the model. Text blocks have `content`; image blocks have a URL and a
    caption.
    """
    fields: dict[str, Any] = {
        "block_id": hit.block_id,
        "block_type": hit.block_type,
        "doc_id": hit.doc_id,
        "filename": hit.filename,
        "page_number": hit.page_number,
        "score": hit.score,
    }
    if hit.block_type == "image":
        return {**fields, "image_url": image_url, "image_caption": hit.image_caption}
    return {**fields, "content": hit.content}
