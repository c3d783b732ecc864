"""Queries to a search index, their results, and the ports of the search service. Pure."""

# Annotations stay text, so that their types need not be imported at start.
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from pydantic import Field

from shared.platform.models import Model

IndexRow = dict[str, Any]
"""A JSON document of an index: its shape is the index schema's, checked by the service."""

FilterValue = str | int | float | bool | tuple[str, ...] | tuple[int, ...]


class DateRange(Model):
    """A range of instants in ISO 8601 with offset. Both ends are inclusive and optional."""

    start: str | None = Field(default=None, description="Start in ISO 8601; a bare date means midnight UTC.")
    end: str | None = Field(default=None, description="End in ISO 8601; a bare date means midnight UTC.")


Filters = dict[str, FilterValue | DateRange]
"""Field name -> value: equality for scalars, any-of for lists, a range for dates."""


class VectorQuery(Model):
    """A nearest-neighbour search: the `k` rows whose `field` is closest to `vector`."""

    vector: tuple[float, ...]
    field: str
    k: int


class SearchRequest(Model):
    """One query to one index.

    Attributes:
        filter: OData; None = all rows, which only ingestion may request.
        order_by: OData order clauses, such as "upload_date desc".
        top: number of rows, 1-1000.
        semantic_configuration: name in the index; the service's semantic ranker then reranks the rows for
            `semantic_query`. `text` uses the simple syntax.
    """

    text: str | None = None
    search_fields: tuple[str, ...] = ()
    search_mode: Literal["any", "all"] = "any"
    query_type: Literal["simple", "full"] = "simple"
    vectors: tuple[VectorQuery, ...] = ()
    filter: str | None = None
    select: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    top: int = 50
    skip: int = 0
    facets: tuple[str, ...] = ()
    count: bool = False
    semantic_configuration: str | None = None
    semantic_query: str | None = None


class FacetValue(Model):
    """The number of rows with one value of a field."""

    value: str = Field(description="The value.")
    count: int = Field(description="Number of rows with it.")


class SearchPage(Model):
    """Rows in rank order, each with `@search.score` and, if reranked, `@search.reranker_score`.

    Attributes:
        positions: of the rows among all matches, counted from 0; empty unless unreadable rows were removed.
    """

    rows: tuple[IndexRow, ...]
    positions: tuple[int, ...] = ()
    count: int | None = None
    facets: dict[str, tuple[FacetValue, ...]] = Field(default_factory=dict)


class SearchIndex(Protocol):
    """One index of the search service, without permission filters: readers use `retrieval.secured_index`."""

    async def search(self, request: SearchRequest) -> SearchPage: ...

    async def upload(self, rows: Sequence[IndexRow]) -> None:
        """Insert or replace rows by key, in batches within the service's limits."""

    async def merge(self, rows: Sequence[IndexRow]) -> None:
        """Update the given fields of existing rows. Raise DependencyError if a key doesn't exist."""

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete rows by key. Missing keys are ignored."""


class SearchAdmin(Protocol):
    """Creates the indexes that ingestion writes to."""

    async def ensure_index(self, definition: IndexRow) -> bool:
        """Create the index or add missing fields. Return whether anything changed."""
