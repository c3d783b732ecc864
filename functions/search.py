"""`/api/search`: the passages and figures that bear on a query, without an answer."""

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from functions.http import models as http
from functions.http.application import ObservedRoute
from functions.http.contracts import contract, json_reply
from functions.http.requests import admitted, caller_and_services, note_act
from functions.http.responses import json_response, read_model, read_query
from shared.platform.errors import InvalidQueryError

if TYPE_CHECKING:
    from functions.http.models import SearchBody
    from shared.access.models import UserContext
    from shared.wiring import Services

router = APIRouter(tags=["Search"], route_class=ObservedRoute)


@router.post(
    "/api/search",
    **contract(
        "Passages and figures for a query, without an answer",
        json_reply(200, "What was found, best first.", http.SearchResults),
        errors=(InvalidQueryError,),
        body=http.SearchBody,
        costs=True,
    ),
)
async def search(req: Request) -> Response:
    """Hybrid search, trimmed to what the caller may read. An empty result is a success."""
    from functions.http.models import SearchBody

    user, services = await caller_and_services(req)
    return await _found(req, await read_model(req, SearchBody), user, services)


@router.get(
    "/api/search",
    **contract(
        "The same, with its filters as query parameters",
        json_reply(200, "What was found, best first.", http.SearchResults),
        errors=(InvalidQueryError,),
        query=http.SearchQuery,
        costs=True,
    ),
)
async def search_by_address(req: Request) -> Response:
    """The same, with its filters as query parameters."""
    from functions.http.models import SearchBody, SearchQuery

    user, services = await caller_and_services(req)
    query = read_query(req, SearchQuery)
    wanted = SearchBody(query=query.q, top_k=query.top_k, filters=query.filters)
    return await _found(req, wanted, user, services)


async def _found(req: Request, body: "SearchBody", user: "UserContext", services: "Services") -> Response:
    from functions.http.models import SearchResults
    from shared.documents.figures import image_urls
    from shared.tools.registry import block_search
    from shared.tools.semantic_search import search_results

    await admitted(req, user, services)
    hits = await block_search(services, user).search([body.query], body.top_k, body.filters)
    await note_act(req, user, services, "search", *dict.fromkeys(hit.doc_id for hit in hits))
    found = search_results(hits, await image_urls(hits, services))
    return json_response(SearchResults.model_validate(found))
