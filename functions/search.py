"""POST /api/search: the passages and figures that bear on a query, without an answer."""

import azure.functions as func

from functions.http.requests import caller_and_services
from functions.http.responses import Request, Response, json_response, read_model, route

blueprint = func.Blueprint()


@route(blueprint, "POST", "search")
async def search(req: Request) -> Response:
    """Hybrid search, trimmed to what the caller may read. An empty result is a success."""
    from functions.http.models import SearchBody, SearchResults
    from functions.http.requests import admitted, note_act
    from shared.documents.figures import image_urls
    from shared.tools.registry import block_search
    from shared.tools.semantic_search import search_results

    user, services = await caller_and_services(req)
    body = await read_model(req, SearchBody)
    await admitted(req, user, services)
    hits = await block_search(services, user).search([body.query], body.top_k, body.filters)
    await note_act(req, user, services, "search", *dict.fromkeys(hit.doc_id for hit in hits))
    found = search_results(hits, await image_urls(hits, services))
    return json_response(SearchResults.model_validate(found))
