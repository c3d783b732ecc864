"""Body of the search endpoint."""

from pydantic import Field

from shared.models.base import Model
from shared.models.search import Filters


class SearchBody(Model):
    """A query and what narrows it; `top_k` is clamped to 1-50."""

    query: str = Field(min_length=1, max_length=8000)
    top_k: int = 10
    filters: Filters = Field(default_factory=dict)
