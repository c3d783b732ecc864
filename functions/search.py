"""Routes under `/api/search`, which find passages and figures for a query without generating an answer."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from functions.http.api_route import ApiRoute
from functions.http.contracts import contract, json_reply
from functions.http.models import PLAIN_DIGITS, MetadataQuery
from functions.http.requests import Caller, Ready, count_call, note_act
from functions.http.responses import json_response
from shared.access.models import UserContext
from shared.documents.figures import image_urls
from shared.platform.errors import InvalidQueryError
from shared.platform.models import Model
from shared.platform.search import Filters
from shared.tools.registry import block_search
from shared.tools.semantic_search import search_results
from shared.wiring import Services


class SearchQuery(MetadataQuery):
    """Query parameters of GET /api/search."""

    q: str = Field(min_length=1, max_length=2000, description="Search terms, or a question.")
    top_k: Annotated[int, Field(ge=1, le=50), PLAIN_DIGITS] = Field(
        default=10, description="Maximum number of results."
    )


class SearchBody(Model):
    """Body of POST /api/search."""

    query: str = Field(min_length=1, max_length=8000, description="Search terms, or a question.")
    top_k: int = Field(
        default=10, description="Maximum number of results. Values outside 1 to 50 are clamped."
    )
    filters: Filters = Field(
        default_factory=dict,
        description="Index filters. Maps each field to a value, a list of values, or {start, end} for dates.",
    )


class _Found(Model):
    block_id: str = Field(description="Id of the block, which changes only if its content changes.")
    doc_id: str = Field(description="Id of the document that contains the block.")
    filename: str = Field(description="File name of the document.")
    page_number: int | None = Field(
        description="Page, slide or sheet number, counted from 1, or null if the document has no pages."
    )
    score: float = Field(description="Relevance from 0 to 1, comparable between queries.")


class PassageView(_Found):
    """A text passage that matches the query."""

    block_type: Literal["text"] = Field(description="Type of the result, always `text`.")
    content: str = Field(description="Text of the passage, with tables as Markdown.")


class PictureView(_Found):
    """A picture that matches the query. Its signed URL is valid for at least an hour."""

    block_type: Literal["image"] = Field(description="Type of the result, always `image`.")
    image_url: str | None = Field(
        repr=False, description="Signed URL of the picture, or null if none could be created."
    )
    image_caption: str | None = Field(description="Generated description of the picture.")


class SearchResults(Model):
    """Results of a search. An empty list is a valid result."""

    results: tuple[Annotated[PassageView | PictureView, Field(discriminator="block_type")], ...] = Field(
        description="Passages and pictures, best match first."
    )
    result_count: int = Field(description="Number of results.")


router = APIRouter(tags=["Search"], route_class=ApiRoute)


@router.post(
    "/api/search",
    **contract(
        "Passages and figures for a query, without an answer",
        json_reply(200, "Passages and pictures, best match first.", SearchResults),
        errors=(InvalidQueryError,),
        costs=True,
    ),
)
async def search(req: Request, body: SearchBody, user: Caller, services: Ready) -> Response:
    """Search for passages and pictures that the caller may read. An empty result is a success."""
    return await _search(req, body, user, services)


@router.get(
    "/api/search",
    **contract(
        "Passages and figures for a query, with filters as query parameters",
        json_reply(200, "Passages and pictures, best match first.", SearchResults),
        errors=(InvalidQueryError,),
        costs=True,
    ),
)
async def search_by_address(
    req: Request, query: Annotated[SearchQuery, Query()], user: Caller, services: Ready
) -> Response:
    """Search for passages and pictures like POST /api/search, with query parameters instead of a JSON
    body.
    """
    body = SearchBody(query=query.q, top_k=query.top_k, filters=query.filters)
    return await _search(req, body, user, services)


async def _search(req: Request, body: SearchBody, user: UserContext, services: Services) -> Response:
    await count_call(req, user, services)
    hits = await block_search(services, user).search([body.query], body.top_k, body.filters)
    await note_act(req, user, services, "search", *dict.fromkeys(hit.doc_id for hit in hits))
    results = search_results(hits, await image_urls(hits, services))
    return json_response(SearchResults.model_validate(results))
