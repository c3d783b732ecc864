"""The Starlette application of the search server: routes, API key check and shared state."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from local.search_server.aliases import AliasStore, alias_routes
from local.search_server.catalog import Catalog
from local.search_server.document_routes import Stats, document_routes
from local.search_server.errors import RequestError
from local.search_server.http_io import OPEN_PATH, WORKER_THREADS, KeyCheck, on_defect, on_request_error
from local.search_server.index_routes import index_routes


def create_app(data_folder: Path, key: str, further_routes: Sequence[Route] = ()) -> Starlette:
    """Create the application and load all indexes from a folder.

    Args:
        data_folder: contains one SQLite file per index; created if missing. Only one server may use it at a
        time. key: value that requests must send as `api-key`. further_routes: routes added after the server's
        own.
    """
    catalog = Catalog(data_folder)
    aliases = AliasStore(data_folder / "aliases.json")

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        catalog.close()

    app = Starlette(
        routes=[
            *document_routes(),
            *index_routes(),
            *alias_routes(),
            *further_routes,
            Route(OPEN_PATH, health),
        ],
        middleware=[Middleware(KeyCheck, key=key)],
        exception_handlers={RequestError: on_request_error, Exception: on_defect},
        lifespan=lifespan,
    )
    app.state.workers = anyio.CapacityLimiter(WORKER_THREADS)
    app.state.catalog = catalog
    app.state.aliases = aliases
    app.state.stats = Stats()
    return app


async def health(request: Request) -> JSONResponse:
    """Report that the server is ready. It starts listening only after all indexes are loaded."""
    return JSONResponse({"status": "ok"})
