"""Operations of Azure AI Search that only Microsoft's live tests use, and the application doesn't.

These are statistics, analyze, suggest, autocomplete, and empty lists of unsupported resources.
"""

from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from local.search_server import analyzers
from local.search_server.aliases import served_index
from local.search_server.definition import WireModel
from local.search_server.errors import RequestError
from local.search_server.http_io import in_worker, json_response, parse, read_object
from local.search_server.index import Index
from local.search_server.index_routes import catalog_of
from local.search_server.schema import JsonObject
from tests.search_operations.suggestions import AutocompleteRequest, SuggestRequest, autocomplete, suggest

# The live tests delete all resources of these kinds, of which there are none.
EMPTY_KINDS = ("synonymmaps", "datasources", "indexers", "skillsets")


class AnalyzeRequest(WireModel):
    text: str
    analyzer: str | None = None
    tokenizer: str | None = None
    normalizer: str | None = None
    token_filters: list[JsonValue] | None = None
    char_filters: list[JsonValue] | None = None


def further_routes() -> list[Route]:
    one = "/indexes('{name}')"
    return [
        Route(one + "/docs/search.post.suggest", suggest_documents, methods=["POST"]),
        Route(one + "/docs/search.post.autocomplete", autocomplete_text, methods=["POST"]),
        Route(one + "/search.stats", index_statistics, methods=["GET"]),
        Route(one + "/search.analyze", analyze, methods=["POST"]),
        Route("/servicestats", service_statistics, methods=["GET"]),
        *(Route(f"/{kind}", list_nothing, methods=["GET"]) for kind in EMPTY_KINDS),
    ]


def index_of(request: Request) -> Index:
    return catalog_of(request).get(request.path_params["name"])


async def suggest_documents(request: Request) -> Response:
    index, order = served_index(request), parse(SuggestRequest, await read_object(request))
    return json_response(await in_worker(request, _suggest, index, order))


async def autocomplete_text(request: Request) -> Response:
    index, order = served_index(request), parse(AutocompleteRequest, await read_object(request))
    return json_response(await in_worker(request, _autocomplete, index, order))


async def index_statistics(request: Request) -> Response:
    index = index_of(request)
    storage, vectors = index.size_bytes()
    return json_response({"documentCount": index.count(), "storageSize": storage, "vectorIndexSize": vectors})


async def analyze(request: Request) -> Response:
    index_of(request)
    order = parse(AnalyzeRequest, await read_object(request))
    unsupported = [order.tokenizer, order.normalizer, order.token_filters, order.char_filters]
    if order.analyzer is None or any(unsupported):
        raise RequestError(
            "Only 'analyzer' is supported, not a tokenizer, normalizer or filters in the request."
        )
    if not analyzers.is_known(order.analyzer):
        raise RequestError(f"The analyzer '{order.analyzer}' is not supported by the local search server.")
    tokens: list[JsonValue] = [
        {
            "token": token.text,
            "startOffset": token.char_offset_from,
            "endOffset": token.char_offset_to,
            "position": token.position,
        }
        for token in analyzers.analyzer(order.analyzer).pre_tokenize(order.text).tokens
    ]
    return json_response({"tokens": tokens})


async def list_nothing(request: Request) -> Response:
    return json_response({"value": []})


async def service_statistics(request: Request) -> Response:
    indexes = catalog_of(request).all()
    usage = {
        "documentCount": sum(index.count() for index in indexes),
        "indexesCount": len(indexes),
        "storageSize": sum(index.size_bytes()[0] for index in indexes),
        "vectorIndexSize": sum(index.size_bytes()[1] for index in indexes),
    }
    counters: JsonObject = {name: {"usage": value, "quota": None} for name, value in usage.items()}
    return json_response({"counters": counters, "limits": {"maxFieldsPerIndex": None}})


def _suggest(index: Index, order: SuggestRequest) -> JsonObject:
    with index.view() as view:
        return suggest(view, order)


def _autocomplete(index: Index, order: AutocompleteRequest) -> JsonObject:
    with index.view() as view:
        return autocomplete(view, order)
