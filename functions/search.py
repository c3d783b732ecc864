"""`/api/search`: passages and figures that match a query, without an answer."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from functions.http.api_route import ApiRoute
from functions.http.contracts import contract, json_reply
from functions.http.models import PLAIN_DIGITS, MetadataQuery
from functions.http.requests import Caller, Ready, admitted, note_act
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

    q: str = Field(min_length=1, max_length=2000, description="Search terms or a question.")
    top_k: Annotated[int, Field(ge=1, le=50), PLAIN_DIGITS] = Field(
        default=10, description="Maximum number of results."
    )


class SearchBody(Model):
    """A query with filters; `top_k` is clamped to 1-50."""

    query: str = Field(min_length=1, max_length=8000, description="Search terms or a question.")
    top_k: int = Field(default=10, description="Maximum number of results.")
    filters: Filters = Field(
        default_factory=dict,
        description="Maps a field to a value, a list of values, or {start, end} for dates.",
    )


class _Found(Model):
    block_id: str = Field(description="Block id; it changes only with the content.")
    doc_id: str = Field(description="Document id.")
    filename: str = Field(description="Name of the file.")
    page_number: int | None = Field(
        description="Page, slide or sheet, counted from 1; null if the document has none."
    )
    score: float = Field(description="Score from 0 to 1, comparable between queries.")


class PassageView(_Found):
    """A passage that matches the query."""

    block_type: Literal["text"] = Field(description="Type of the result.")
    content: str = Field(description="Text, with tables as Markdown.")


class PictureView(_Found):
    """A picture that matches the query, with a signed URL that is valid for at least an hour."""

    block_type: Literal["image"] = Field(description="Type of the result.")
    image_url: str | None = Field(repr=False, description="Signed URL of the picture.")
    image_caption: str | None = Field(description="Description of the picture.")


class SearchResults(Model):
    """Response of POST /api/search, best first. An empty list is a success."""

    results: tuple[Annotated[PassageView | PictureView, Field(discriminator="block_type")], ...] = Field(
        description="Results, best first."
    )
    result_count: int = Field(description="Number of results.")


router = APIRouter(tags=["Search"], route_class=ApiRoute)


@router.post(
    "/api/search",
    **contract(
        "Passages and figures for a query, without an answer",
        json_reply(200, "What was found, best first.", SearchResults),
        errors=(InvalidQueryError,),
        costs=True,
    ),
)
async def search(req: Request, body: SearchBody, user: Caller, services: Ready) -> Response:
    """Search the blocks that the caller may read. No result is a success."""
    return await _search(req, body, user, services)


@router.get(
    "/api/search",
    **contract(
        "Passages and figures for a query, with filters as query parameters",
        json_reply(200, "What was found, best first.", SearchResults),
        errors=(InvalidQueryError,),
        costs=True,
    ),
)
async def search_by_address(
    req: Request, query: Annotated[SearchQuery, Query()], user: Caller, services: Ready
) -> Response:
    """Search as `search`, with query parameters instead of a body."""
    body = SearchBody(query=query.q, top_k=query.top_k, filters=query.filters)
    return await _search(req, body, user, services)


async def _search(req: Request, body: SearchBody, user: UserContext, services: Services) -> Response:
    await admitted(req, user, services)
    hits = await block_search(services, user).search([body.query], body.top_k, body.filters)
    await note_act(req, user, services, "search", *dict.fromkeys(hit.doc_id for hit in hits))
    results = search_results(hits, await image_urls(hits, services))
    return json_response(SearchResults.model_validate(results))
