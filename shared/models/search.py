"""Requests to a search index and what comes back, in the index's own terms."""

from typing import Any, Literal

from pydantic import Field

from shared.models.base import Model
from shared.models.blocks import BlockType

IndexRow = dict[str, Any]
"""A JSON document of an index: its shape is the index schema's, checked by the service."""

FilterValue = str | int | float | bool | tuple[str, ...] | tuple[int, ...]


class DateRange(Model):
    """Instants in ISO 8601 with offset; either end may be open. Both ends are included."""

    start: str | None = None
    end: str | None = None


Filters = dict[str, FilterValue | DateRange]
"""Field name -> value: equality for scalars, any-of for lists, a range for dates."""


class VectorQuery(Model):
    """One nearest-neighbour search: `k` rows whose `field` is closest to `vector`."""

    vector: tuple[float, ...]
    field: str
    k: int


class SearchRequest(Model):
    """One query to one index.

    Attributes:
        filter: OData; None means every row, which only the ingestion side may ask for.
        order_by: OData order clauses, such as "upload_date desc".
        top: rows wanted, 1-1000.
        semantic_configuration: of the index; the service's semantic ranker then reads the rows once more for
            `semantic_query`. `text` is read in the simple syntax.
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
    """How many rows carry one value of a field."""

    value: str
    count: int


class SearchPage(Model):
    """Rows in rank order; each row keeps `@search.score`, and `@search.reranker_score` if it has one."""

    rows: tuple[IndexRow, ...]
    count: int | None = None
    facets: dict[str, tuple[FacetValue, ...]] = Field(default_factory=dict)


class Hit(Model):
    """A block found for a question.

    Attributes:
        score: fused score on 0-1 (shared/core/fusion.py), comparable between queries.
        content: for text blocks; image blocks have image_url (a blob path) and image_caption instead.
    """

    block_id: str
    doc_id: str
    filename: str
    block_type: BlockType = "text"
    page_number: int | None = None
    start_seconds: float | None = None
    heading_path: str = ""
    content: str = ""
    image_url: str | None = None
    image_caption: str | None = None
    score: float = 0.0
