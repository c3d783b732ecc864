"""Bodies of search requests, validated strictly: an unknown parameter is a 400 error."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from local.search_server.definition import WireModel


def _comma_list(value: object) -> object:
    """Split a comma-separated string into a list. Lists are returned unchanged."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


CommaList = Annotated[tuple[str, ...], BeforeValidator(_comma_list)]


class VectorQuery(WireModel):
    """A vector query. Each of its fields is ranked separately and contributes its `k` nearest neighbours."""

    kind: Literal["vector", "text"]
    fields: CommaList = Field(min_length=1)
    vector: list[float] | None = None
    text: str | None = None
    k: int = Field(default=50, ge=1, le=10_000)
    weight: float = Field(default=1.0, gt=0)
    exhaustive: bool | None = None
    oversampling: float | None = None


class SearchRequest(WireModel):
    search: str | None = None
    count: bool = False
    facets: tuple[str, ...] = ()
    filter: str | None = None
    minimum_coverage: float | None = Field(default=None, ge=0, le=100)
    orderby: CommaList = ()
    query_type: Literal["simple", "full", "semantic"] = "simple"
    semantic_query: str | None = None
    semantic_configuration: str | None = None
    semantic_error_handling: Literal["partial", "fail"] | None = None
    semantic_max_wait_in_milliseconds: int | None = None
    search_fields: CommaList = ()
    search_mode: Literal["any", "all"] = "any"
    select: CommaList = ()
    skip: int = Field(default=0, ge=0, le=100_000)
    top: int | None = Field(default=None, ge=0)
    vector_queries: tuple[VectorQuery, ...] = ()
    vector_filter_mode: Literal["preFilter"] = "preFilter"
