"""`/api/search`: passages and figures that match a query, without an answer."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from functions.http import models as http
from functions.http.api_route import ApiRoute
from functions.http.contracts import contract, json_reply
from functions.http.models import SearchBody, SearchQuery, SearchResults
from functions.http.requests import Caller, Ready, admitted, note_act
from functions.http.responses import json_response
from shared.access.models import UserContext
from shared.documents.figures import image_urls
from shared.platform.errors import InvalidQueryError
from shared.tools.registry import block_search
from shared.tools.semantic_search import search_results
from shared.wiring import Services

router = APIRouter(tags=["Search"], route_class=ApiRoute)


@router.post(
    "/api/search",
    **contract(
        "Passages and figures for a query, without an answer",
        json_reply(200, "What was found, best first.", http.SearchResults),
        errors=(InvalidQueryError,),
        costs=True,
    ),
)
async def search(req: Request, body: SearchBody, user: Caller, services: Ready) -> Response:
    """Search the blocks that the caller may read. No result is a success."""
    return await _found(req, body, user, services)


@router.get(
    "/api/search",
    **contract(
        "Passages and figures for a query, with filters as query parameters",
        json_reply(200, "What was found, best first.", http.SearchResults),
        errors=(InvalidQueryError,),
        costs=True,
    ),
)
async def search_by_address(
    req: Request, query: Annotated[SearchQuery, Query()], user: Caller, services: Ready
) -> Response:
    """Search as `search`, with query parameters instead of a body."""
    wanted = SearchBody(query=query.q, top_k=query.top_k, filters=query.filters)
    return await _found(req, wanted, user, services)


async def _found(req: Request, body: SearchBody, user: UserContext, services: Services) -> Response:
    await admitted(req, user, services)
    hits = await block_search(services, user).search([body.query], body.top_k, body.filters)
    await note_act(req, user, services, "search", *dict.fromkeys(hit.doc_id for hit in hits))
    found = search_results(hits, await image_urls(hits, services))
    return json_response(SearchResults.model_validate(found))
