"""HTTP-triggered functions that pass their requests on to the ASGI app.

The worker's streaming extension awaits what a function returns as a Starlette response. `AppResponse` runs
the app there, so the app writes straight to the connection, without a queue or a task in between.
"""

import asyncio
import threading
from typing import Any

import azure.durable_functions as df
import azure.functions as func
from azurefunctions.extensions.http.fastapi import Request, Response
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.types import ASGIApp, Receive, Scope, Send

from shared.platform.loading import load


class _AnyPath(PathConvertor):
    """A path that may hold line breaks.

    A request that the extension's own route does not match gets no response, and after functionTimeout the
    host ends the whole worker.
    """

    regex = r"[\s\S]*"


register_url_convertor("path", _AnyPath())
_PRELOAD_AFTER_S = 0.5  # by then the host has been told about the functions
_KEPT = ("type", "asgi", "http_version", "method", "scheme", "raw_path", "query_string", "headers")


class AppResponse(Response):  # type: ignore[misc]  # a Starlette response, by the extension's own name
    """A response that runs the app; `client` is the durable client for those routes that start work."""

    def __init__(self, client: df.DurableOrchestrationClient | None = None) -> None:
        super().__init__()
        self._client = client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request on a scope without anything of the extension's own app."""
        app = await asyncio.to_thread(_load_app)
        kept = {name: scope[name] for name in (*_KEPT, "client", "server") if name in scope}
        path = scope["path"].rstrip("/") or "/"
        await app({**kept, "path": path, "root_path": "", "state": {"client": self._client}}, receive, send)


def _load_app() -> ASGIApp:
    app: ASGIApp = load("functions.api", "app")()
    return app


def _load_all() -> None:
    _load_app()
    load("orchestrations.run_agent", "answer_question")  # what the first question needs next
    load("orchestrations.activities", "perform_step")


def preload() -> None:
    """Load the app in the background, so that a first request that comes later doesn't wait for it."""
    timer = threading.Timer(_PRELOAD_AFTER_S, _load_all)
    timer.daemon = True
    timer.start()


def add_function(app: df.DFApp, name: str, route: str, *, starts_work: bool = False) -> None:
    """Register an HTTP function that takes every method; `starts_work` = the app gets a durable client.

    Nobody needs a key of the platform: `caller_of` checks who asks.
    """
    serve: Any = _serve_with_client() if starts_work else _serve_alone()
    serve.__name__ = name
    if starts_work:
        serve = app.durable_client_input(client_name="client")(serve)
    app.route(route=route, auth_level=func.AuthLevel.ANONYMOUS)(serve)


def _serve_alone() -> Any:
    async def serve(req: Request) -> Response:
        return AppResponse()

    return serve


def _serve_with_client() -> Any:
    async def serve(req: Request, client: df.DurableOrchestrationClient) -> Response:
        return AppResponse(client)

    return serve
