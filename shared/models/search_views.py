"""Body and answer of the search endpoint."""

from typing import Annotated, Literal

from pydantic import Field

from shared.models.base import Model
from shared.models.search import Filters


class SearchBody(Model):
    """A query and what narrows it; `top_k` is clamped to 1-50."""

    query: str = Field(min_length=1, max_length=8000, description="In words, or as a question.")
    top_k: int = Field(default=10, description="How many results at most.")
    filters: Filters = Field(
        default_factory=dict, description="Field to value, list of values, or {start, end} for dates."
    )


class _Found(Model):
    block_id: str
    doc_id: str
    filename: str
    page_number: int | None
    score: float = Field(description="0-1, comparable between queries.")


class PassageView(_Found):
    """A passage that was found."""

    block_type: Literal["text"]
    content: str


class PictureView(_Found):
    """A picture that was found, with a signed address that is good for an hour at least."""

    block_type: Literal["image"]
    image_url: str | None = Field(repr=False)
    image_caption: str | None


class SearchResults(Model):
    """Answer of POST /api/search, best first. No result is a success."""

    results: tuple[Annotated[PassageView | PictureView, Field(discriminator="block_type")], ...]
    result_count: int
