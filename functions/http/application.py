"""The ASGI app that serves all routes, with the middleware that checks each request, adds its response
headers, and traces it.
"""

import re
import uuid
import warnings
from collections.abc import Iterable, MutableMapping, Sequence
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from opentelemetry.trace import INVALID_SPAN, Span
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from functions.http.api_route import SPAN, invalid_request, unknown_parameter
from functions.http.contracts import OPENAI_PREFIX, contract_of
from functions.http.requests import SignInRedirect
from functions.http.responses import (
    added_headers,
    openai_error,
    problem,
    record_refusal,
)
from shared.platform import tracing
from shared.platform.errors import (
    AccessDeniedError,
    DefectError,
    GroundworkError,
    MethodNotAllowedError,
    NotFoundError,
)
from shared.platform.telemetry import get_logger, log_scope, pseudonym
from shared.wiring import start_telemetry

REQUEST_ID = "X-Request-Id"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LOGGED_PARTS = ("run_id", "thread_id")
# Only this many characters of an unknown path are compared with the routes, because the comparison takes
# quadratic time.
_COMPARED_CHARS = 100

# A response may override these defaults. With the platform's sign-in, a cookie identifies the caller, so a
# shared cache could not tell callers apart. Some bodies also contain signed URLs.
_DEFAULT_HEADERS = {"Cache-Control": "private, no-store", "X-Content-Type-Options": "nosniff"}


def build_app(routers: Iterable[APIRouter]) -> FastAPI:
    """Build a FastAPI app that serves the routes of all routers. If several routes match a request, the first
    one handles it.
    """
    # FastAPI suppresses this warning only while it builds routes, but these routes build their validators on
    # the first request.
    warnings.filterwarnings("ignore", category=UnsupportedFieldAttributeWarning)
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    for router in routers:
        # `include_router` would wrap the routes, but the API description and the tests need them unwrapped in
        # this list.
        app.router.routes.extend(router.routes)
    app.add_exception_handler(GroundworkError, _as_problem)
    app.add_exception_handler(RequestValidationError, _as_problem)
    app.add_exception_handler(SignInRedirect, _to_sign_in)
    app.add_exception_handler(HTTPException, _wrong_address)
    app.add_middleware(RequestScope, routes=routes_of(app))
    return app


def routes_of(app: FastAPI) -> tuple[APIRoute, ...]:
    """Return the API routes of an app in the order in which they are matched."""
    return tuple(route for route in app.router.routes if isinstance(route, APIRoute))


class RequestScope:
    """ASGI middleware that checks each request and adds response headers, a tracing span and log fields."""

    def __init__(self, app: ASGIApp, routes: Sequence[APIRoute]) -> None:
        self._app = app
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request. An unexpected exception becomes a generic 500 response if none has been started;
        otherwise it is raised.
        """
        is_head = scope["method"] == "HEAD"
        scope = {**scope, "method": "GET"} if is_head else scope
        request, route, parts = Request(scope, receive), *self._match(scope)
        await start_telemetry()
        with log_scope(**_fields(request, parts)) as fields:
            span = scope[SPAN] = _server_span(request, route)
            sender = _Sender(send, request, span, fields, is_head=is_head)
            try:
                await self._serve(request, route, receive, sender)
            except _HeadAnsweredError:
                pass
            except BaseException as error:
                if sender.has_begun or not isinstance(error, Exception):
                    # No error response can be sent: either the response has already started, or the request
                    # was cancelled because the client disconnected or the host is stopping.
                    tracing.fail_by(span, error)
                    raise
                get_logger().exception("http.defect", function=route.name if route else "")
                defect = DefectError("Internal error.", "Retry later.")
                await _refusal(request, defect)(scope, receive, sender)
            finally:
                tracing.end(span)

    async def _serve(
        self, request: Request, route: APIRoute | None, receive: Receive, sender: "_Sender"
    ) -> None:
        try:
            _refuse_foreign_page(request)
            if route is not None:
                _refuse_unread_parameters(request, route)
        except GroundworkError as error:
            await _refusal(request, error)(request.scope, receive, sender)
            return
        await self._app(request.scope, receive, sender)

    def _match(self, scope: Scope) -> tuple[APIRoute | None, MutableMapping[str, Any]]:
        for route in self._routes:
            match, child = route.matches(scope)
            if match is Match.FULL:
                return route, child["path_params"]
        return None, {}


class _HeadAnsweredError(Exception):
    """Raised to stop a stream whose response to a HEAD request is complete."""


class _Sender:
    """ASGI `send` wrapper that adds response headers, records the status, and ends HEAD responses after
    their headers.
    """

    def __init__(
        self, send: Send, request: Request, span: Span, fields: dict[str, str], *, is_head: bool
    ) -> None:
        self.has_begun = False
        self._send = send
        self._request = request
        self._span = span
        self._fields = fields
        self._is_head = is_head

    async def __call__(self, message: Message) -> None:
        """Forward an ASGI message of the response, adding headers to its first message.

        Raises:
            _HeadAnsweredError: the request is a HEAD request, and the body is a stream. Its client reuses the
                connection after the headers, so the response must not stay open.
        """
        if message["type"] == "http.response.start":
            self.has_begun = True
            _describe(self._span, message["status"], self._fields)
            await self._send({**message, "headers": self._headers(message["headers"])})
            if self._is_head:
                await self._send({"type": "http.response.body", "body": b""})
        elif not self._is_head:
            await self._send(message)
        elif message.get("more_body"):
            raise _HeadAnsweredError

    def _headers(self, headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        replaced = {**added_headers(self._request), REQUEST_ID: self._fields["request_id"]}
        names = {name.lower() for name in replaced}
        others = [(name, value) for name, value in headers if name.decode("latin-1").lower() not in names]
        present = {name.decode("latin-1").lower() for name, _ in others}
        defaults = {
            name: value for name, value in _DEFAULT_HEADERS.items() if name.lower() not in (present | names)
        }
        additions = {**replaced, **defaults}
        return others + [
            (name.lower().encode(), value.encode("latin-1")) for name, value in additions.items()
        ]


async def _wrong_address(request: Request, error: Exception) -> Response:
    """Return 405 with the allowed methods if the path exists, otherwise 404 with the most similar route as a
    hint.
    """
    routes = routes_of(request.app)
    fitting = [route for route in routes if route.matches(request.scope)[0] is Match.PARTIAL]
    if methods := sorted({method for route in fitting for method in route.methods or ()}):
        allowed = ", ".join(methods)
        refused = f"This URL does not support {request.method}."
        wrong = MethodNotAllowedError(refused, f"Use {allowed}.", headers={"Allow": allowed})
        return _refusal(request, wrong)
    patterns = sorted({route.path_format for route in routes if route.include_in_schema})
    nearest = get_close_matches(request.url.path[:_COMPARED_CHARS], patterns, n=1)
    hint = f"Did you mean {nearest[0]}?" if nearest else "See /api/docs for a list of all routes."
    return _refusal(request, NotFoundError("No route matches this URL.", hint))


async def _to_sign_in(request: Request, error: Exception) -> Response:
    headers = {"Location": str(error), "Cache-Control": "no-store"}
    return Response(status_code=302, headers=headers)


async def _as_problem(request: Request, error: Exception) -> Response:
    if isinstance(error, RequestValidationError):
        error = invalid_request(request, error)
    if not isinstance(error, GroundworkError):
        raise error
    await record_refusal(request, request.scope["route"].path_format, error)
    return _refusal(request, error)


def _refusal(request: Request, error: GroundworkError) -> Response:
    """Render an error as a problem response, or as an OpenAI error on routes of that protocol."""
    is_openai = request.url.path.startswith(OPENAI_PREFIX)
    return openai_error(error) if is_openai else problem(error)


def _refuse_unread_parameters(request: Request, route: APIRoute) -> None:
    """Raise `CallerError` if a request has query parameters but its route accepts none."""
    if request.query_params and not route.dependant.query_params and not contract_of(route).any_query:
        raise unknown_parameter(next(iter(request.query_params)), [])


def _refuse_foreign_page(request: Request) -> None:
    """Reject requests from pages of other sites that could change data with the visitor's cookie.

    Browsers send the origin of a request in its headers. Other clients don't, and need no protection, because
    they send their own credentials.

    Raises:
        AccessDeniedError: a page of another origin sent the request.
    """
    if request.method in ("GET", "HEAD", "OPTIONS"):
        return
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    # Browsers before 2023 send only the Origin header. Behind a proxy, the Host header names the proxy.
    hosts = (request.headers.get("host"), request.headers.get("x-forwarded-host"))
    is_own = site in ("same-origin", "none") if site else origin is None or urlsplit(origin).netloc in hosts
    if not is_own:
        raise AccessDeniedError(
            "Requests from pages of other sites are rejected.", "Use Groundwork's own page."
        )


def _fields(request: Request, parts: MutableMapping[str, Any]) -> dict[str, str]:
    sent_id = request.headers.get(REQUEST_ID, "")
    request_id = sent_id if _REQUEST_ID.fullmatch(sent_id) else uuid.uuid4().hex
    return {"request_id": request_id, **{name: str(parts.get(name, ""))[:64] for name in _LOGGED_PARTS}}


def _server_span(request: Request, route: APIRoute | None) -> Span:
    if not tracing.is_on():
        return INVALID_SPAN
    template = route.path_format if route else "/{path}"
    attributes: tracing.Attributes = {
        "http.request.method": request.method,
        "http.route": template,
        "url.scheme": request.url.scheme,
        "code.function.name": route.name if route else "wrong_address",
    }
    parent = request.headers.get("traceparent", "")
    return tracing.begin(f"{request.method} {template}", attributes, "server", parent=parent)


def _describe(span: Span, status: int, fields: dict[str, str]) -> None:
    user_id = fields.get("user_id")
    tracing.set_attributes(
        span,
        {
            "http.response.status_code": status,
            "request_id": fields["request_id"],
            "run_id": fields.get("run_id"),
            "thread_id": fields.get("thread_id"),
            "user_id": pseudonym(user_id) if user_id else None,
        },
    )
    if status >= 500:
        tracing.fail(span, fields.get("error_type") or str(status))
    elif status >= 400:
        tracing.set_attributes(span, {"error.type": fields.get("error_type") or str(status)})
