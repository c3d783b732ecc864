"""Adapter between Azure Functions and ASGI: registers HTTP-triggered functions that run the ASGI app.

The worker's streaming extension awaits the function's result as a Starlette response. `AppResponse` runs the
app in that call, so the app writes straight to the connection, without a queue or task in between.
"""

import asyncio
import threading
from typing import Any

import azure.durable_functions as df
import azure.functions as func
from azurefunctions.extensions.http.fastapi import Request, Response
from azurefunctions.extensions.http.fastapi.web import WebApp
from fastapi.routing import APIRoute
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.types import ASGIApp, Receive, Scope, Send

from shared.platform.loading import load


class _AnyPath(PathConvertor):
    """A path convertor that also matches line breaks."""

    regex = r"[\s\S]*"


def _serve_everything() -> None:
    """Make the extension pass every request to a function, whatever its path and method.

    The extension itself answers other methods than the eight of its route, and the addresses of FastAPI's own
    documentation. The function then waits for its request, until the host ends the whole worker after
    functionTimeout.
    """
    register_url_convertor("path", _AnyPath())
    add_route = WebApp.route

    def route(web_app: WebApp, function: Any) -> Any:
        handler = add_route(web_app, function)
        (catch_all,) = (one for one in web_app.web_app.routes if isinstance(one, APIRoute))
        catch_all.methods = set()  # Starlette then accepts every method
        web_app.web_app.router.routes[:] = [catch_all]
        return handler

    WebApp.route = route


_serve_everything()
_PRELOAD_AFTER_S = 0.5  # unmeasured delay that lets the host index the functions before the app is loaded
_KEPT = ("type", "asgi", "http_version", "method", "scheme", "raw_path", "query_string", "headers")


class AppResponse(Response):  # type: ignore[misc]  # a Starlette response that the extension re-exports
    """A response that runs the ASGI app. `client` is the Durable Functions client for routes that start
    orchestrations.
    """

    def __init__(self, client: df.DurableOrchestrationClient | None = None) -> None:
        super().__init__()
        self._client = client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the app with a copy of the scope, without the keys that the Azure extension added and without
        trailing slashes in the path.
        """
        app = await asyncio.to_thread(_load_app)
        own = {name: scope[name] for name in (*_KEPT, "client", "server") if name in scope}
        path = scope["path"].rstrip("/") or "/"
        await app({**own, "path": path, "root_path": "", "state": {"client": self._client}}, receive, send)


def _load_app() -> ASGIApp:
    app: ASGIApp = load("functions.api", "app")()
    return app


def _load_all() -> None:
    _load_app()
    load("orchestrations.run_agent", "answer_question")  # load the modules that the first question needs
    load("orchestrations.activities", "perform_step")


def preload() -> None:
    """Load the app in a background thread shortly after start-up, so that the first request doesn't have to
    wait for it.
    """
    timer = threading.Timer(_PRELOAD_AFTER_S, _load_all)
    timer.daemon = True
    timer.start()


def add_function(app: df.DFApp, name: str, route: str, *, starts_work: bool = False) -> None:
    """Register an HTTP-triggered function for all methods of a route. With `starts_work`, it receives a
    Durable Functions client.

    No function key is required: `caller_of` authenticates the caller.
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
