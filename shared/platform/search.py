"""Requests, results and interfaces of the search service. Pure."""

# Annotations remain strings, so that their types need not be imported at startup.
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from pydantic import Field

from shared.platform.models import Model

IndexRow = dict[str, Any]
"""A row of an index as JSON. The search service validates it against the index schema."""

FilterValue = str | int | float | bool | tuple[str, ...] | tuple[int, ...]


class DateRange(Model):
    """Range of instants in ISO 8601. Both bounds are inclusive, and either may be omitted."""

    start: str | None = Field(
        default=None,
        description="Start in ISO 8601 with a UTC offset. A date without a time means midnight UTC.",
    )
    end: str | None = Field(
        default=None,
        description="End in ISO 8601 with a UTC offset. A date without a time means midnight UTC.",
    )


Filters = dict[str, FilterValue | DateRange]
"""Filters by field name: a scalar must be equal, a list must contain the value, a date must be in range."""


class VectorQuery(Model):
    """Nearest-neighbour query for the `k` rows whose `field` is closest to `vector`."""

    vector: tuple[float, ...]
    field: str
    k: int


class SearchRequest(Model):
    """Query to a search index.

    Attributes:
        filter: OData filter; None = all rows, which is reserved for ingestion.
        order_by: OData order clauses, such as "upload_date desc".
        top: maximum number of rows, from 1 to 1000.
        semantic_configuration: name of a configuration of the index. If given, the service's semantic ranker
            reranks the rows for `semantic_query`, and `text` must use the simple query syntax.
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
    """A value of a field, and the number of rows that have this value."""

    value: str = Field(description="Value of the field.")
    count: int = Field(description="Number of rows with this value.")


class SearchPage(Model):
    """Rows in rank order. Each contains `@search.score` and, if reranked, `@search.reranker_score`.

    Attributes:
        positions: positions of the rows among all matches, counted from 0. Empty unless unreadable rows were
            removed.
    """

    rows: tuple[IndexRow, ...]
    positions: tuple[int, ...] = ()
    count: int | None = None
    facets: dict[str, tuple[FacetValue, ...]] = Field(default_factory=dict)


class SearchIndex(Protocol):
    """Interface of a search index without permission checks. Reads for users go through
    `retrieval.secured_index`.
    """

    async def search(self, request: SearchRequest) -> SearchPage: ...

    async def upload(self, rows: Sequence[IndexRow]) -> None:
        """Insert rows, replacing rows with the same key. Large uploads are split into batches."""

    async def merge(self, rows: Sequence[IndexRow]) -> None:
        """Update the given fields of existing rows. Raise `DependencyError` if a row doesn't exist."""

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete rows by key. Missing keys are ignored."""


class SearchAdmin(Protocol):
    """Interface for creating and extending search indexes."""

    async def ensure_index(self, definition: IndexRow) -> bool:
        """Create the index or add its missing fields. Return whether anything was changed."""
