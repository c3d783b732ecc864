"""The HTTP application: routes, keys, and the way from a request to its reply. Decides nothing about content.

Two bases lead to the same handlers: /v1, and Azure's /openai/v1.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from local.model_server.embedding.service import find_weights
from local.model_server.knobs import parse_knobs
from local.model_server.plain_chat import CHAT_MODEL
from local.model_server.protocol.errors import ApiError
from local.model_server.protocol.keys import Keys
from local.model_server.protocol.replies import model_card, model_list
from local.model_server.server import ModelServer

_log = logging.getLogger(__name__)
Handler = Callable[[Request, ModelServer], Awaitable[Response]]


def create_app(key: str | None = None, token: str | None = None, knobs: str = "") -> Starlette:
    """The application. With a key or a token every route but /health asks for it (`protocol/keys.py`).

    Raises:
        ApiError: `knobs`, those of requests whose model's name has none, are none.
    """
    keys = Keys(key, token)
    parse_knobs(knobs)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        server = await ModelServer.load(find_weights(), knobs)
        if not server.embedder.understands_meaning:
            _log.warning("weights.absent model=%s: embeddings by feature hashing", server.embedder.model)
        app.state.server = server
        try:
            yield
        finally:
            server.close()

    return Starlette(
        routes=_routes(keys),
        lifespan=lifespan,
        exception_handlers={ApiError: _show_api_error, HTTPException: _show_http_error},
    )


def _routes(keys: Keys) -> list[Route]:
    routes = [Route("/health", _endpoint(_health, Keys()))]
    for base in ("/v1", "/openai/v1"):
        routes += [
            Route(f"{base}/models", _endpoint(_models, keys)),
            Route(f"{base}/models/{{model}}", _endpoint(_model, keys)),
            Route(f"{base}/stats", _endpoint(_stats, keys)),
            Route(f"{base}/stats/reset", _endpoint(_reset_stats, keys), methods=["POST"]),
            Route(f"{base}/chat/completions", _endpoint(_chat, keys), methods=["POST"]),
            Route(f"{base}/embeddings", _endpoint(_embeddings, keys), methods=["POST"]),
        ]
    return routes


def _endpoint(handler: Handler, keys: Keys) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        if not keys.admit(request.headers):
            raise ApiError(401, "Incorrect API key provided.", code="invalid_api_key")
        server: ModelServer = request.app.state.server
        return await handler(request, server)

    return handle


async def _health(_: Request, server: ModelServer) -> Response:
    return JSONResponse({"status": "ok", "chat_model": CHAT_MODEL, "embedding_model": server.embedder.model})


async def _models(_: Request, server: ModelServer) -> Response:
    return JSONResponse(model_list([CHAT_MODEL, server.embedder.model], server.started_at))


async def _model(request: Request, server: ModelServer) -> Response:
    name = server.resolve(request.path_params["model"]).base
    return JSONResponse(model_card(name, server.started_at))


async def _stats(_: Request, server: ModelServer) -> Response:
    return JSONResponse(server.stats.body)


async def _reset_stats(_: Request, server: ModelServer) -> Response:
    server.stats.reset()
    return JSONResponse(server.stats.body)


async def _chat(request: Request, server: ModelServer) -> Response:
    deployment = request.path_params.get("model")
    return await server.chat(await request.body(), deployment, request.is_disconnected)


async def _embeddings(request: Request, server: ModelServer) -> Response:
    deployment = request.path_params.get("model")
    return await server.embed(await request.body(), deployment, request.is_disconnected)


async def _show_api_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)  # noqa: S101  (what the handler is registered for)
    return error.response()


async def _show_http_error(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = error.detail if isinstance(error, HTTPException) else "Internal error"
    return ApiError(status, f"{detail}: no such route or method", code="unknown_url").response()
