"""Routes for index definitions: list, create, read, update and delete."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from local.search_server.aliases import refuse_index_of_alias, refuse_name_of_alias, served_index
from local.search_server.catalog import Catalog
from local.search_server.definition import IndexDefinition
from local.search_server.errors import RequestError
from local.search_server.http_io import conditions, in_worker, json_response, parse, read_object
from local.search_server.index import Index
from local.search_server.schema import JsonObject


def index_routes() -> list[Route]:
    one = "/indexes('{name}')"
    return [
        Route("/indexes", list_indexes, methods=["GET"]),
        Route("/indexes", create_index, methods=["POST"]),
        Route(one, get_index, methods=["GET"]),
        Route(one, put_index, methods=["PUT"]),
        Route(one, delete_index, methods=["DELETE"]),
    ]


def catalog_of(request: Request) -> Catalog:
    catalog: Catalog = request.app.state.catalog
    return catalog


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
        raise RequestError("The index name in the body differs from the name in the URL.")
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


def _echo(index: Index) -> JsonObject:
    body: JsonObject = index.schema.definition.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {"@odata.etag": index.etag, **body}
