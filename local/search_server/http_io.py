"""HTTP input and output of the search server: JSON bodies, error responses and the API key check."""

import json
import logging
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Final, ParamSpec, TypeVar

import anyio
from pydantic import BaseModel, JsonValue, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from local.search_server.documents import MAX_BATCH_BYTES
from local.search_server.errors import RequestError, too_large
from local.search_server.schema import JsonObject

OPEN_PATH: Final = "/health"
# A few threads keep both cores busy, because numpy, tantivy and SQLite release the interpreter lock.
WORKER_THREADS: Final = 4
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")

Model = TypeVar("Model", bound=BaseModel)
Result = TypeVar("Result")
Parameters = ParamSpec("Parameters")

_log = logging.getLogger(__name__)


class KeyCheck:
    """Middleware that rejects requests without the right `api-key` header. Health checks are exempt."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._key = key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] == OPEN_PATH or self._is_right(scope):
            await self._app(scope, receive, send)
            return
        message = "The api-key of the request is missing or wrong."
        await error_response(RequestError(message, status=403, code="Forbidden"))(scope, receive, send)

    def _is_right(self, scope: Scope) -> bool:
        key = dict(scope["headers"]).get(b"api-key", b"")
        return secrets.compare_digest(key, self._key)


async def in_worker(
    request: Request,
    work: Callable[Parameters, Result],
    *arguments: Parameters.args,
    **options: Parameters.kwargs,
) -> Result:
    """Run a blocking function on one of the application's worker threads and return its result."""
    limiter: anyio.CapacityLimiter = request.app.state.workers
    return await anyio.to_thread.run_sync(lambda: work(*arguments, **options), limiter=limiter)


def conditions(request: Request) -> tuple[str | None, str | None]:
    """Return the If-Match and If-None-Match headers, None if missing."""
    return request.headers.get("if-match"), request.headers.get("if-none-match")


async def read_json(request: Request) -> JsonValue:
    """Read and parse the JSON body of a request.

    Raises:
        RequestError: 413 above 16 MB, 400 if not JSON.
    """
    chunks: list[bytes] = []
    size = 0
    # Even a body that is too large is read to its end. Otherwise, the client would be interrupted while
    # sending and never see the response.
    async for chunk in request.stream():
        size += len(chunk)
        if size <= MAX_BATCH_BYTES:
            chunks.append(chunk)
    if size > MAX_BATCH_BYTES:
        raise too_large(f"The request has {size} bytes; at most {MAX_BATCH_BYTES} are allowed.")
    return parse_json(b"".join(chunks))


def parse_json(body: bytes) -> JsonValue:
    try:
        value: JsonValue = json.loads(body or b"{}", parse_constant=_refuse_constant)
        if _SURROGATE.search(body):
            # Encoding the value detects unpaired surrogates, which are valid JSON but can't be encoded as
            # UTF-8 later.
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise RequestError(
            f"The request is invalid. Details: the body is not valid JSON ({error})."
        ) from error
    return value


async def read_object(request: Request) -> JsonObject:
    value = await read_json(request)
    if not isinstance(value, dict):
        raise RequestError("The request is invalid. Details: the body must be a JSON object.")
    return value


def parse(model: type[Model], body: JsonObject) -> Model:
    """Validate a request body as the given model. Properties that are null count as omitted.

    Raises:
        RequestError: 400, naming the first invalid property.
    """
    try:
        # The SDK omits properties that are None; other clients send null.
        return model.model_validate({name: value for name, value in body.items() if value is not None})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RequestError(
            f"The request is invalid. Details: parameters : '{where}': {first['msg']}"
        ) from error


def json_response(body: Mapping[str, JsonValue], status: int = 200) -> Response:
    # ASCII with escapes is fast, and can encode any text that a request contained.
    content = json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
    return Response(content, status_code=status, media_type="application/json; odata.metadata=none")


def error_response(error: RequestError) -> JSONResponse:
    content = {"error": {"code": error.code, "message": error.message.encode("utf-8", "replace").decode()}}
    return JSONResponse(content, status_code=error.status)


async def on_request_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestError):
        raise error
    return error_response(error)


async def on_defect(request: Request, error: Exception) -> Response:
    """Respond to an unexpected error with a 500 that reveals no details. The traceback is logged."""
    _log.error("request.failed %s %s", request.method, request.url.path, exc_info=error)
    return error_response(
        RequestError("The local search server failed.", status=500, code="InternalServerError")
    )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
