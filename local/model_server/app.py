"""The HTTP application: routes, keys, and the way from a request to its reply. Decides nothing about content.

Two bases lead to the same handlers: /v1, and Azure's /openai/v1.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from local.model_server.embedding.service import MINILM_NAME
from local.model_server.knobs import parse_knobs
from local.model_server.protocol.errors import ApiError
from local.model_server.protocol.keys import Keys
from local.model_server.protocol.replies import model_card
from local.model_server.respond import CHAT_MODEL
from local.model_server.server import ModelServer

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
        server = await ModelServer.load(knobs)
        app.state.server = server
        try:
            yield
        finally:
            server.close()

    routes = [
        Route(f"{base}{path}", _endpoint(handler, keys), methods=[method])
        for base in ("/v1", "/openai/v1")
        for path, method, handler in _ROUTES
    ]
    return Starlette(
        routes=[Route("/health", _endpoint(_health, Keys())), *routes],
        lifespan=lifespan,
        exception_handlers={ApiError: _show_api_error, HTTPException: _show_http_error},
    )


def _endpoint(handler: Handler, keys: Keys) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        if not keys.admit(request.headers):
            raise ApiError(401, "Incorrect API key provided.", code="invalid_api_key")
        return await handler(request, request.app.state.server)

    return handle


async def _health(_: Request, server: ModelServer) -> Response:
    return JSONResponse({"status": "ok", "chat_model": CHAT_MODEL, "embedding_model": MINILM_NAME})


async def _models(_: Request, server: ModelServer) -> Response:
    cards = [model_card(name, server.started_at) for name in (CHAT_MODEL, MINILM_NAME)]
    return JSONResponse({"object": "list", "data": cards})


async def _model(request: Request, server: ModelServer) -> Response:
    name = server.resolve(request.path_params["model"]).base
    return JSONResponse(model_card(name, server.started_at))


async def _stats(request: Request, server: ModelServer) -> Response:
    if request.method == "POST":
        server.stats.reset()
    return JSONResponse(server.stats.body)


async def _chat(request: Request, server: ModelServer) -> Response:
    return await server.chat(await request.body(), request.is_disconnected)


async def _embeddings(request: Request, server: ModelServer) -> Response:
    return await server.embed(await request.body(), request.is_disconnected)


_ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("/models", "GET", _models),
    ("/models/{model}", "GET", _model),
    ("/stats", "GET", _stats),
    ("/stats/reset", "POST", _stats),
    ("/chat/completions", "POST", _chat),
    ("/embeddings", "POST", _embeddings),
)


async def _show_api_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)  # noqa: S101  (what the handler is registered for)
    return error.response()


async def _show_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  (what the handler is registered for)
    message = f"{error.detail}: no such route or method"
    return ApiError(error.status_code, message, code="unknown_url").response()
