"""Index aliases. Document operations and requests for a definition accept an alias instead of an index name.

As in the service, deleting an index and analyzing text require the index name. Unlike the service, this
server also requires it for changing a definition.
"""

import json
import threading
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from local.search_server.catalog import Catalog, check_precondition, new_etag
from local.search_server.errors import RequestError, conflict, not_found
from local.search_server.http_io import conditions, json_response, read_object
from local.search_server.index import Index
from local.search_server.schema import JsonObject


class AliasStore:
    """Thread-safe store of all aliases, kept in one file that is replaced atomically.

    Raises:
        RequestError: 404 for an unknown alias, 409 for a name in use, 412 for a different etag, 400 without a
        name.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._aliases: dict[str, JsonObject] = json.loads(path.read_bytes()) if path.exists() else {}
        self._lock = threading.Lock()

    def all(self) -> list[JsonObject]:
        with self._lock:
            return [self._aliases[name] for name in sorted(self._aliases)]

    def has(self, name: str) -> bool:
        return name in self._aliases

    def get(self, name: str) -> JsonObject:
        if (alias := self._aliases.get(name)) is None:
            raise not_found(f"No alias with the name '{name}' was found in the service.")
        return alias

    def create(self, body: JsonObject) -> JsonObject:
        name = body.get("name")
        if not isinstance(name, str) or not name:
            raise RequestError("The request is invalid. Details: a name is required.")
        with self._lock:
            if name in self._aliases:
                raise conflict(f"'{name}' already exists.")
            return self._put(name, body)

    def create_or_update(
        self, name: str, body: JsonObject, *, if_match: str | None, if_none_match: str | None
    ) -> tuple[JsonObject, bool]:
        """Create or replace an alias. Return its definition, and whether it is new."""
        with self._lock:
            is_new = name not in self._aliases
            check_precondition(None if is_new else self._etag(name), if_match, if_none_match)
            return self._put(name, body), is_new

    def delete(self, name: str, *, if_match: str | None, if_none_match: str | None) -> None:
        with self._lock:
            check_precondition(self._etag(name), if_match, if_none_match)
            self._keep({other: body for other, body in self._aliases.items() if other != name})

    def _etag(self, name: str) -> str:
        return str(self.get(name)["@odata.etag"])

    def _put(self, name: str, body: JsonObject) -> JsonObject:
        properties = {key: value for key, value in body.items() if not key.startswith("@odata.")}
        definition: JsonObject = {"@odata.etag": new_etag(), **properties}
        self._keep({**self._aliases, name: definition})
        return definition

    def _keep(self, aliases: dict[str, JsonObject]) -> None:
        draft = self._path.with_suffix(".new")
        draft.write_text(json.dumps(aliases))
        draft.replace(self._path)
        self._aliases = aliases


def alias_routes() -> list[Route]:
    one = "/aliases('{name}')"
    return [
        Route("/aliases", list_aliases, methods=["GET"]),
        Route("/aliases", create_alias, methods=["POST"]),
        Route(one, get_alias, methods=["GET"]),
        Route(one, put_alias, methods=["PUT"]),
        Route(one, delete_alias, methods=["DELETE"]),
    ]


def served_index(request: Request) -> Index:
    """Return the index that the URL names, directly or through an alias.

    Raises:
        RequestError: 404, if the name is neither an index nor an alias.
    """
    name = request.path_params["name"]
    catalog, resources = _catalog(request), _aliases(request)
    if catalog.has(name) or not resources.has(name):
        return catalog.get(name)
    return catalog.get(_target(resources.get(name)))


def refuse_name_of_alias(request: Request, name: str) -> None:
    """Raise an error if the name of a new index belongs to an alias.

    Raises:
        RequestError: 409.
    """
    if _aliases(request).has(name):
        raise conflict(f"Cannot create index '{name}' because an alias has that name.")


def refuse_index_of_alias(request: Request, name: str) -> None:
    """Raise an error if an alias points to the index. As in the service, such an index can't be deleted.

    Raises:
        RequestError: 400, naming the aliases.
    """
    aliases = [str(alias["name"]) for alias in _aliases(request).all() if _target(alias) == name]
    if aliases:
        names = ", ".join(sorted(aliases))
        raise RequestError(
            f"Cannot delete index '{name}': delete the aliases mapped to it ({names}), or map them elsewhere."
        )


async def list_aliases(request: Request) -> Response:
    return json_response({"value": list(_aliases(request).all())})


async def create_alias(request: Request) -> Response:
    body = await read_object(request)
    _check(request, body)
    return json_response(_aliases(request).create(body), 201)


async def get_alias(request: Request) -> Response:
    return json_response(_aliases(request).get(request.path_params["name"]))


async def put_alias(request: Request) -> Response:
    body, name = await read_object(request), request.path_params["name"]
    if body.get("name") != name:
        raise RequestError("The alias name in the body differs from the name in the URL.")
    _check(request, body)
    if_match, if_none_match = conditions(request)
    definition, is_new = _aliases(request).create_or_update(
        name, body, if_match=if_match, if_none_match=if_none_match
    )
    return json_response(definition, 201 if is_new else 200)


async def delete_alias(request: Request) -> Response:
    if_match, if_none_match = conditions(request)
    name = request.path_params["name"]
    _aliases(request).delete(name, if_match=if_match, if_none_match=if_none_match)
    return Response(status_code=204)


def _check(request: Request, body: JsonObject) -> None:
    name = body.get("name")
    if isinstance(name, str) and _catalog(request).has(name):
        raise conflict(f"Cannot create alias '{name}' because an index has that name.")
    unknown = [key for key in body if key not in ("name", "indexes") and not key.startswith("@odata.")]
    if unknown:
        raise RequestError(f"An alias has no property '{unknown[0]}'.")
    target = _target(body)
    if not _catalog(request).has(target):
        raise RequestError(f"The alias names the index '{target}', which does not exist.")


def _target(body: JsonObject) -> str:
    indexes = body.get("indexes")
    if not isinstance(indexes, list) or len(indexes) != 1 or not isinstance(indexes[0], str):
        raise RequestError("'indexes' must contain exactly one index.")
    return indexes[0]


def _catalog(request: Request) -> Catalog:
    catalog: Catalog = request.app.state.catalog
    return catalog


def _aliases(request: Request) -> AliasStore:
    aliases: AliasStore = request.app.state.aliases
    return aliases
