"""The HTTP application of the model server: routes, authentication and error responses.

/v1 and Azure's /openai/v1 have the same handlers.
"""

import asyncio
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from local.model_server.embedding.service import MINILM_NAME, EmbeddingService
from local.model_server.protocol.requests import ApiError
from local.model_server.respond import CHAT_MODEL
from local.model_server.server import ModelServer

Handler = Callable[[Request, ModelServer], Awaitable[Response]]


def create_app(
    key: str | None = None, token: str | None = None, server_type: type[ModelServer] = ModelServer
) -> Starlette:
    """Create the model server's application. If a key or token is given, every route except /health requires
    it.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        server = server_type(await asyncio.to_thread(EmbeddingService))
        app.state.server = server
        try:
            yield
        finally:
            server.close()

    def endpoint(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            if request.url.path != "/health" and not admits(request.headers, key, token):
                raise ApiError(401, "Incorrect API key provided.", code="invalid_api_key")
            return await handler(request, request.app.state.server)

        return handle

    return Starlette(
        routes=[Route(path, endpoint(handler), methods=[method]) for path, method, handler in _ROUTES],
        lifespan=lifespan,
        exception_handlers={ApiError: _show_error, HTTPException: _show_error},
    )


def admits(headers: Mapping[str, str], key: str | None, token: str | None) -> bool:
    """Return whether a request's headers authenticate it. If neither key nor token is configured, every
    request is accepted.

    As with Azure OpenAI, a key is sent as `api-key` or as a bearer token, a directory's token as a bearer
    token.
    """
    if key is None and token is None:
        return True
    credential, expected = headers.get("api-key"), [key]
    if credential is None:
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        credential, expected = (bearer if scheme.lower() == "bearer" else ""), [key, token]
    return any(hmac.compare_digest(credential.encode(), one.encode()) for one in expected if one)


async def _health(_: Request, server: ModelServer) -> Response:
    return JSONResponse({"status": "ok", "chat_model": CHAT_MODEL, "embedding_model": MINILM_NAME})


async def _model(request: Request, server: ModelServer) -> Response:
    name = request.path_params["model"]
    server.knobs_of(name, CHAT_MODEL, MINILM_NAME)
    return JSONResponse({"id": name, "object": "model", "created": 0, "owned_by": "groundwork-local"})


async def _stats(_: Request, server: ModelServer) -> Response:
    return JSONResponse(server.stats.body)


async def _chat(request: Request, server: ModelServer) -> Response:
    return await server.chat(await request.body())


async def _embeddings(request: Request, server: ModelServer) -> Response:
    return await server.embed(await request.body())


_ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("/health", "GET", _health),
    *(
        (f"{base}{path}", method, handler)
        for base in ("/v1", "/openai/v1")
        for path, method, handler in (
            ("/models/{model}", "GET", _model),
            ("/stats", "GET", _stats),
            ("/chat/completions", "POST", _chat),
            ("/embeddings", "POST", _embeddings),
        )
    ),
)


async def _show_error(_: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        error = ApiError(error.status_code, f"{error.detail}: no such route or method", code="unknown_url")
    assert isinstance(error, ApiError)  # noqa: S101  (what the handler is registered for)
    return JSONResponse(error.body, error.status, headers=error.headers)
