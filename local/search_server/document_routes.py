"""Routes for documents (index, look up, count, search) and for usage counters."""

from collections import Counter
from collections.abc import Sequence

from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from local.search_server import store
from local.search_server.aliases import served_index
from local.search_server.documents import Action, parse_batch
from local.search_server.errors import not_found
from local.search_server.http_io import in_worker, json_response, parse, read_json, read_object
from local.search_server.index import Index, Outcome
from local.search_server.projection import Projection
from local.search_server.requests import SearchRequest
from local.search_server.schema import JsonObject
from local.search_server.search import run_search


class Stats:
    """Counters of document writes and searches since the start of the server or the last reset."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Set all counters to zero."""
        self._writes: dict[str, Counter[str]] = {}
        self._searches: Counter[str] = Counter()

    def count_writes(self, index: str, actions: Sequence[Action]) -> None:
        """Count the document actions of an applied batch, by kind."""
        self._writes.setdefault(index, Counter()).update(action.kind.value for action in actions)

    def count_search(self, index: str) -> None:
        """Count one search of an index."""
        self._searches[index] += 1

    @property
    def body(self) -> JsonObject:
        """The counters as JSON: writes by index and kind of action, searches by index."""
        return {
            "writes": {index: dict(kinds) for index, kinds in sorted(self._writes.items())},
            "searches": dict(sorted(self._searches.items())),
        }


def document_routes() -> list[Route]:
    documents = "/indexes('{name}')/docs"
    return [
        Route(documents + "/search.post.search", search_documents, methods=["POST"]),
        Route(documents + "/search.index", index_documents, methods=["POST"]),
        Route(documents + "('{key}')", get_document, methods=["GET"]),
        Route(documents + "/$count", count_documents, methods=["GET"]),
        Route("/stats", show_stats, methods=["GET"]),
        Route("/stats/reset", reset_stats, methods=["POST"]),
    ]


async def index_documents(request: Request) -> Response:
    index = served_index(request)
    actions, outcomes = await in_worker(request, _apply, index, await read_json(request))
    stats_of(request).count_writes(request.path_params["name"], actions)
    rows: list[JsonValue] = [
        {
            "key": outcome.key,
            "status": outcome.error is None,
            "errorMessage": outcome.error,
            "statusCode": outcome.status,
        }
        for outcome in outcomes
    ]
    return json_response({"value": rows}, 207 if any(outcome.error for outcome in outcomes) else 200)


async def get_document(request: Request) -> Response:
    selected = request.query_params.get("$select", "")
    paths = [path.strip() for path in selected.split(",") if path.strip()]
    return json_response(
        await in_worker(request, _look_up, served_index(request), request.path_params["key"], paths)
    )


async def count_documents(request: Request) -> Response:
    return PlainTextResponse(str(served_index(request).count()))


async def search_documents(request: Request) -> Response:
    index = served_index(request)
    body = await read_object(request)
    stats_of(request).count_search(request.path_params["name"])
    return await in_worker(request, _search, index, parse(SearchRequest, body), body)


async def show_stats(request: Request) -> Response:
    return json_response(stats_of(request).body)


async def reset_stats(request: Request) -> Response:
    stats_of(request).reset()
    return json_response(stats_of(request).body)


def stats_of(request: Request) -> Stats:
    stats: Stats = request.app.state.stats
    return stats


def _apply(index: Index, batch: JsonValue) -> tuple[list[Action], list[Outcome]]:
    actions = parse_batch(index.schema, batch)
    return actions, index.apply(actions)


def _look_up(index: Index, key: str, paths: list[str]) -> JsonObject:
    with index.view() as view:
        projection = Projection(view.schema, paths)
        slot = store.find_slot(view.connection, key)
        if slot is None:
            raise not_found(f"No document with the key '{key}' was found in the index.")
        document = store.read_document(view.connection, slot)
        return projection.apply(document.body, document.vectors)


def _search(index: Index, request: SearchRequest, body: JsonObject) -> Response:
    with index.view() as view:
        answer = run_search(view, request, body)
    return json_response(answer)
