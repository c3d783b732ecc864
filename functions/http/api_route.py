"""The route class of all routers. It authenticates callers before it reads a body, and converts validation
errors to `CallerError`.

FastAPI reads a body before it resolves dependencies, so strangers would get 422 instead of 401, and bodies of
any size would be read. This class authenticates the caller, reads the body within its limits, and then calls
FastAPI.
"""

from difflib import get_close_matches
from typing import Any
from urllib.parse import parse_qsl, urlencode

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from opentelemetry.trace import INVALID_SPAN
from pydantic_core import from_json

from functions.http.bodies import MAX_BODY_BYTES, read_body
from functions.http.contracts import body_of, query_of
from functions.http.requests import caller_of
from functions.http.responses import explain
from shared.platform import tracing
from shared.platform.errors import CallerError

# Key under which the request's span is stored in its ASGI scope.
SPAN = "groundwork_span"
# Unknown parameter names are truncated to this length in error messages.
_SHOWN_CHARS = 60


class ApiRoute(APIRoute):
    """A route whose handler runs inside the tracing span of the request. Frames streamed after the handler
    returns are outside the span.

    Routes with a JSON body require authentication. Blank query parameters, which forms send, are dropped.
    """

    def get_route_handler(self) -> Any:
        """Return FastAPI's handler, wrapped so that query parameters are cleaned, the caller is authenticated
        and the body is read first.
        """
        handle = super().get_route_handler()

        async def checked(request: Request) -> Response:
            with tracing.inside(request.scope.get(SPAN, INVALID_SPAN)):
                if self.dependant.query_params:
                    _drop_blank_parameters(request)
                if self.body_field is not None:
                    await caller_of(request)
                    await _read_json(request)
                return await handle(request)

        return checked


def invalid_request(request: Request, error: RequestValidationError) -> CallerError:
    """Convert FastAPI's validation error to a `CallerError` about the first invalid field."""
    route: APIRoute = request.scope["route"]
    first = error.errors()[0]
    place, *path = first["loc"]
    shape = body_of(route) if place == "body" else query_of(route)
    parameters = list(shape.model_fields) if shape else []
    if place == "query" and first["type"] == "extra_forbidden":
        return unknown_parameter(str(path[0]), parameters)
    return CallerError(*explain({**first, "loc": path}, parameters))


def unknown_parameter(name: str, names: list[str]) -> CallerError:
    """Return the error for an unknown query parameter, with the most similar known name as a hint. Ignoring
    the parameter would hide a typing mistake.
    """
    shortened = name[:_SHOWN_CHARS]
    all_known = f"Known parameters: {', '.join(names)}." if names else "This route has no query parameters."
    nearest = get_close_matches(shortened, names, n=1)
    hint = f"Did you mean {nearest[0]!r}?" if nearest else all_known
    return CallerError(f"Unknown query parameter {shortened!r}.", hint)


def _drop_blank_parameters(request: Request) -> None:
    query: bytes = request.scope["query_string"]
    request.scope["query_string"] = urlencode(parse_qsl(query.decode("latin-1"))).encode()


async def _read_json(request: Request) -> None:
    """Read the body, and make FastAPI treat it as JSON whatever its Content-Type. curl, for example, sends
    the type of a form by default.

    Raises:
        PayloadTooLargeError, SlowBodyError: as `read_body`.
        CallerError: the body isn't JSON.
    """
    body = await read_body(request.stream(), MAX_BODY_BYTES)
    try:
        content = from_json(body, allow_inf_nan=False)
    except ValueError:
        raise CallerError(*explain({"type": "json_invalid"}, ())) from None
    headers = [pair for pair in request.scope["headers"] if pair[0] != b"content-type"]
    request.scope["headers"] = [*headers, (b"content-type", b"application/json")]
    del request._headers  # Starlette has cached the original headers, so the cache must be dropped.
    request._body, request._json = body, content
