"""Routes an HTTP request to its function in the worker, and forwards the response.

Rejects requests that the real host rejects before routing; docs/internals/host.md lists them.
"""

import asyncio
import json
import logging
import re
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from multidict import CIMultiDict
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from local.host.settings import AppError, HostOptions
from local.host.wire import CALL_HEADER, INVOCATION_HEADER, FunctionDocument
from local.host.worker_process import Body, Worker, WorkerLostError

PARAMETER = re.compile(r"^\{(\*?)(\w+)(\??)\}$")


@dataclass(frozen=True)
class RouteTemplate:
    """A compiled route template."""

    text: str
    pattern: re.Pattern[str]

    def match(self, path: str) -> dict[str, str] | None:
        """Return the route parameters of a path (raw, without a leading slash), or None.

        Values are percent-decoded, except `%2F` and invalid UTF-8. Absent optional parameters are omitted.
        """
        matched = self.pattern.fullmatch(path)
        if matched is None:
            return None
        return {name: _decoded(value) for name, value in matched.groupdict().items() if value is not None}


def compile_route(template: str) -> RouteTemplate:
    """Compile a route template.

    Raises:
        AppError: a segment is unsupported, such as one with a constraint.
    """
    pattern = ""
    for index, segment in enumerate(template.strip("/").split("/")):
        segment_pattern, optional = _compile_segment(segment, template)
        slash = "/" if index else ""
        pattern += f"(?:{slash}{segment_pattern})?" if optional else slash + segment_pattern
    return RouteTemplate(template, re.compile(pattern))


def _decoded(value: str) -> str:
    pieces = re.split(r"(?i)(%2f)", value)
    try:
        return "".join(
            piece if piece.lower() == "%2f" else unquote(piece, errors="strict") for piece in pieces
        )
    except UnicodeDecodeError:
        return value


def _compile_segment(segment: str, template: str) -> tuple[str, bool]:
    if "{" not in segment:
        return f"(?i:{re.escape(segment)})", False
    matched = PARAMETER.match(segment)
    if matched is None:
        raise AppError(f"route {template!r}: this host does not support the segment {segment!r}")
    star, name, optional = matched.groups()
    return (f"(?P<{name}>.*)", True) if star else (f"(?P<{name}>[^/]+)", bool(optional))


# Headers of a connection, not of the message; the server sets lengths itself.
_HOP_BY_HOP = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"te", b"upgrade", b"expect"})


_MAX_HEADERS, _MAX_HEADER_BYTES, _MAX_LINE_BYTES = 100, 32 * 1024, 8 * 1024  # Kestrel's limits


_NOT_IN_A_TARGET = re.compile(r"[^\x21-\x7e]")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HttpRoute:
    """The route of an HTTP function. Without methods it accepts all."""

    function: FunctionDocument
    template: RouteTemplate
    methods: frozenset[str]


def http_routes(functions: Sequence[FunctionDocument]) -> list[HttpRoute]:
    """Return the routes of all HTTP functions, ordered by function name: the first match is called.

    Raises:
        AppError: a route cannot be compiled, or two functions share a route and a method.
    """
    routes = []
    for function in functions:
        if function.kind == "httpTrigger":
            template = compile_route(function.trigger.get("route") or function.name)
            methods = frozenset(str(method).upper() for method in function.trigger.get("methods") or ())
            routes.append(HttpRoute(function, template, methods))
    _refuse_duplicates(routes)
    return sorted(routes, key=lambda route: route.function.name)


def _refuse_duplicates(routes: list[HttpRoute]) -> None:
    taken: dict[tuple[str, str], str] = {}
    for route in routes:
        for method in route.methods or {"*"}:
            other = taken.setdefault((route.template.text.lower(), method), route.function.name)
            if other != route.function.name:
                raise AppError(
                    f"functions {other} and {route.function.name} share {method} {route.template.text}"
                )


class HttpFront:
    """The ASGI app below the route prefix."""

    def __init__(self, routes: Sequence[HttpRoute], options: HostOptions, worker: Worker) -> None:
        self._routes = routes
        self._prefix = f"/{options.route_prefix}/" if options.route_prefix else "/"
        self._max_body_bytes = options.max_body_bytes
        self._worker = worker

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = _without_dots((scope.get("raw_path") or scope["path"].encode()).decode("latin-1"))
        found = self._find(scope["method"], path)
        # The real host returns 404 for a wrong method as well.
        refusal = _refusal(scope, path) or (404 if found is None else None)
        if found is None or refusal is not None:
            await PlainTextResponse("", status_code=refusal or 404)(scope, receive, send)
            return
        function, parameters = found
        request = _IncomingRequest(scope, receive, self._max_body_bytes)
        if request.declared_bytes > self._max_body_bytes:
            await PlainTextResponse("", status_code=500)(scope, receive, send)
            return
        call = {"id": str(uuid.uuid4()), "function": function.name, "parameters": parameters}
        await self._pass_on(request, path, call, send)

    def _find(self, method: str, path: str) -> tuple[FunctionDocument, dict[str, str]] | None:
        if not path.lower().startswith(self._prefix.lower()):
            return None
        for route in self._routes:
            if route.methods and method not in route.methods:
                continue
            parameters = route.template.match(path[len(self._prefix) :].rstrip("/"))
            if parameters is not None:
                return route.function, parameters
        return None

    async def _pass_on(
        self, request: "_IncomingRequest", path: str, call: Mapping[str, object], send: Send
    ) -> None:
        answering = asyncio.create_task(self._answer(request, path, call, send))
        leaving = asyncio.create_task(request.until_the_client_leaves())
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            answering.cancel()
            leaving.cancel()
            ended = await asyncio.gather(answering, leaving, return_exceptions=True)
        for result in ended:
            if isinstance(result, Exception):
                raise result

    async def _answer(
        self, request: "_IncomingRequest", path: str, call: Mapping[str, object], send: Send
    ) -> None:
        headers = request.headers
        # In the real host, a request with non-ASCII headers never reaches its waiting invocation.
        is_lost = any(not value.isascii() for _, value in request.scope["headers"])
        headers.add(INVOCATION_HEADER, "lost" if is_lost else str(call["id"]))
        headers[CALL_HEADER] = json.dumps(call)
        target = _NOT_IN_A_TARGET.sub(lambda found: quote(found[0], safe="", encoding="latin-1"), path)
        if query := request.scope["query_string"]:
            target += f"?{query.decode('latin-1')}"
        has_begun = False
        try:
            body = await request.body()
            async with self._worker.request(request.scope["method"], target, headers, body) as answer:
                kept = [pair for pair in answer.raw_headers if pair[0].lower() not in _HOP_BY_HOP]
                start = {"type": "http.response.start", "status": answer.status, "headers": kept}
                async for piece in answer.content.iter_any():
                    if not has_begun:  # status and headers are sent with the first byte
                        has_begun = True
                        await send(start)
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                if not has_begun:
                    has_begun = True
                    await send(start)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except (WorkerLostError, BodyTooLargeError) as lost:
            log.warning("no answer to %s %s: %s", request.scope["method"], call["function"], lost)
            if not has_begun:
                await PlainTextResponse("", status_code=500)(request.scope, request.receive, send)


def _refusal(scope: Scope, path: str) -> int | None:
    """Return the status of a request that is rejected before routing; None for all others."""
    headers = scope["headers"]
    if (
        len(headers) > _MAX_HEADERS
        or sum(len(name) + len(value) for name, value in headers) > _MAX_HEADER_BYTES
    ):
        return 431
    if len(scope["method"]) + len(path) + len(scope["query_string"]) > _MAX_LINE_BYTES:
        return 414
    names_host = [value for name, value in headers if name == b"host"]
    is_foreign = any(not _is_utf8(value) for _, value in headers) or any(
        b" " in value for value in names_host
    )
    return 400 if "%00" in path or is_foreign else None


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _without_dots(path: str) -> str:
    kept: list[str] = []
    for segment in path.split("/"):
        plain = segment.lower().replace("%2e", ".")
        if plain == "..":
            del kept[max(1, len(kept) - 1) :]
        elif plain != ".":
            kept.append(segment)
    return "/".join(kept)


class BodyTooLargeError(Exception):
    """A chunked body exceeds the host's limit."""


class _IncomingRequest:
    """An incoming request. A body with a length is read whole; a chunked one is forwarded in pieces."""

    def __init__(self, scope: Scope, receive: Receive, max_bytes: int) -> None:
        self.scope = scope
        self.receive = receive
        self._max_bytes = max_bytes
        self._is_read = asyncio.Event()
        self._has_left = False

    @property
    def headers(self) -> CIMultiDict[str]:
        """The message's headers, except its length."""
        return CIMultiDict(
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in self.scope["headers"]
            if name not in _HOP_BY_HOP and name != b"content-length"
        )

    @property
    def declared_bytes(self) -> int:
        """The Content-Length; 0 if it is missing."""
        return int(dict(self.scope["headers"]).get(b"content-length", b"0"))

    async def body(self) -> Body:
        names = {name for name, _ in self.scope["headers"]}
        if b"transfer-encoding" in names:
            return self._pieces()
        if b"content-length" not in names:
            self._is_read.set()
            return None
        return b"".join([piece async for piece in self._pieces()])

    async def until_the_client_leaves(self) -> None:
        await self._is_read.wait()
        while not self._has_left:
            message = await self.receive()
            self._has_left = message["type"] == "http.disconnect"

    async def _pieces(self) -> AsyncIterator[bytes]:
        size_bytes = 0
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                self._has_left = True
                self._is_read.set()
                await asyncio.Event().wait()  # wait for this task's cancellation: the client has disconnected
            size_bytes += len(message.get("body", b""))
            if size_bytes > self._max_bytes:
                raise BodyTooLargeError(f"the body exceeds {self._max_bytes:,} bytes")
            yield message.get("body", b"")
            if not message.get("more_body", False):
                break
        self._is_read.set()
