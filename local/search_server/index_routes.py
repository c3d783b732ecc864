"""Routes over index definitions and the service itself."""

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from local.search_server import analyzers
from local.search_server.aliases import refuse_index_of_alias, refuse_name_of_alias, served_index
from local.search_server.catalog import Catalog
from local.search_server.definition import IndexDefinition
from local.search_server.errors import RequestError
from local.search_server.http_io import conditions, in_worker, json_response, parse, read_object
from local.search_server.index import Index
from local.search_server.requests import AnalyzeRequest
from local.search_server.schema import JsonObject

if TYPE_CHECKING:
    from pydantic import JsonValue


EMPTY_KINDS = ("synonymmaps", "datasources", "indexers", "skillsets")  # the live tests clean these up


def index_routes() -> list[Route]:
    one = "/indexes('{name}')"
    return [
        Route("/indexes", list_indexes, methods=["GET"]),
        Route("/indexes", create_index, methods=["POST"]),
        Route(one, get_index, methods=["GET"]),
        Route(one, put_index, methods=["PUT"]),
        Route(one, delete_index, methods=["DELETE"]),
        Route(one + "/search.stats", index_statistics, methods=["GET"]),
        Route(one + "/search.analyze", analyze, methods=["POST"]),
        Route("/servicestats", service_statistics, methods=["GET"]),
        *(Route(f"/{kind}", list_nothing, methods=["GET"]) for kind in EMPTY_KINDS),
    ]


def catalog_of(request: Request) -> Catalog:
    catalog: Catalog = request.app.state.catalog
    return catalog


def index_of(request: Request) -> Index:
    return catalog_of(request).get(request.path_params["name"])


async def list_indexes(request: Request) -> Response:
    definitions = [_echo(index) for index in catalog_of(request).all()]
    selected = [name for name in request.query_params.get("$select", "").split(",") if name not in ("", "*")]
    if selected:
        definitions = [{name: body[name] for name in selected if name in body} for body in definitions]
    return json_response({"value": list(definitions)})


async def create_index(request: Request) -> Response:
    definition = parse(IndexDefinition, await read_object(request))
    refuse_name_of_alias(request, definition.name)
    index = await in_worker(request, catalog_of(request).create, definition)
    return json_response(_echo(index), 201)


async def get_index(request: Request) -> Response:
    return json_response(_echo(served_index(request)))


async def put_index(request: Request) -> Response:
    definition = parse(IndexDefinition, await read_object(request))
    if definition.name != request.path_params["name"]:
        raise RequestError("The index name in the body differs from the one in the address.")
    refuse_name_of_alias(request, definition.name)
    if_match, if_none_match = conditions(request)
    index, is_new = await in_worker(
        request, catalog_of(request).create_or_update, definition, if_match, if_none_match
    )
    return json_response(_echo(index), 201 if is_new else 200)


async def delete_index(request: Request) -> Response:
    if_match, if_none_match = conditions(request)
    name = request.path_params["name"]
    refuse_index_of_alias(request, name)
    await in_worker(request, catalog_of(request).delete, name, if_match, if_none_match)
    return Response(status_code=204)


async def index_statistics(request: Request) -> Response:
    index = index_of(request)
    storage, vectors = index.size_bytes()
    return json_response({"documentCount": index.count(), "storageSize": storage, "vectorIndexSize": vectors})


async def analyze(request: Request) -> Response:
    index_of(request)
    asked = parse(AnalyzeRequest, await read_object(request))
    unsupported = [asked.tokenizer, asked.normalizer, asked.token_filters, asked.char_filters]
    if asked.analyzer is None or any(unsupported):
        raise RequestError(
            "Only 'analyzer' is supported: no tokenizer, normalizer or filters of the request's own."
        )
    if not analyzers.is_known(asked.analyzer):
        raise RequestError(f"The analyzer '{asked.analyzer}' is not supported by the local search server.")
    tokens: list[JsonValue] = [
        {
            "token": token.text,
            "startOffset": token.char_offset_from,
            "endOffset": token.char_offset_to,
            "position": token.position,
        }
        for token in analyzers.analyzer(asked.analyzer).pre_tokenize(asked.text).tokens
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


def _echo(index: Index) -> JsonObject:
    body: JsonObject = index.schema.definition.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {"@odata.etag": index.etag, **body}
