"""Routes HTTP requests to functions in the worker, and forwards their responses.

Requests that the real host rejects before routing are rejected too; docs/internals/host.md lists them.
"""

import asyncio
import json
import logging
import re
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from multidict import CIMultiDict
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from local.host.settings import AppError, HostOptions
from local.host.wire import CALL_HEADER, INVOCATION_HEADER, FunctionDocument
from local.host.worker_process import Body, Worker, WorkerLostError

# These headers apply to a single connection, so they aren't forwarded. The server sets Content-Length itself.
_HOP_BY_HOP = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"te", b"upgrade", b"expect"})


_MAX_HEADERS, _MAX_HEADER_BYTES, _MAX_LINE_BYTES = (
    100,
    32 * 1024,
    8 * 1024,
)  # same limits as in Kestrel, the web server of the real host


_NOT_IN_A_TARGET = re.compile(r"[^\x21-\x7e]")
_TEMPLATE = re.compile(r"([^{}]*?)((?:^|/)\{\*\w+\})?")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HttpRoute:
    """The route of an HTTP function: a fixed path and, if `takes_rest` is set, all paths below it."""

    function: FunctionDocument
    path: str
    takes_rest: bool

    def matches(self, path: str) -> bool:
        """Return whether the route serves a raw path, given without outer slashes. Case is ignored."""
        path = path.lower()
        above = f"{self.path}/" if self.path else ""
        return path == self.path or (self.takes_rest and path.startswith(above))


def http_routes(functions: Sequence[FunctionDocument]) -> list[HttpRoute]:
    """Return the routes of all HTTP functions, sorted by function name, which is the order of matching.

    Raises:
        AppError: if a route has parameters other than a final catch-all or is limited to some methods, or two
            functions share a route.
    """
    routes = [_route_of(function) for function in functions if function.kind == "httpTrigger"]
    names: dict[tuple[str, bool], str] = {}
    for route in routes:
        name = route.function.name
        if (other := names.setdefault((route.path, route.takes_rest), name)) != name:
            raise AppError(f"functions {other} and {name} share the route {route.path!r}")
    return sorted(routes, key=lambda route: route.function.name)


def _route_of(function: FunctionDocument) -> HttpRoute:
    template = str(function.trigger.get("route") or function.name)
    matched = _TEMPLATE.fullmatch(template.strip("/"))
    if matched is None or function.trigger.get("methods"):
        raise AppError(
            f"function {function.name}: the route {template!r} is not supported; use a fixed path, which may "
            "end in {*name}, without a list of methods"
        )
    return HttpRoute(function, matched[1].lower(), matched[2] is not None)


class HttpFront:
    """ASGI application that forwards requests below the route prefix to the worker."""

    def __init__(self, routes: Sequence[HttpRoute], options: HostOptions, worker: Worker) -> None:
        self._routes = routes
        self._prefix = f"/{options.route_prefix}/" if options.route_prefix else "/"
        self._max_body_bytes = options.max_body_bytes
        self._worker = worker

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = _without_dots((scope.get("raw_path") or scope["path"].encode()).decode("latin-1"))
        function = self._find(path)
        refusal = _refusal(scope, path)
        if function is None or refusal is not None:
            await PlainTextResponse("", status_code=refusal or 404)(scope, receive, send)
            return
        request = _IncomingRequest(scope, receive, self._max_body_bytes)
        if request.declared_bytes > self._max_body_bytes:
            await PlainTextResponse("", status_code=500)(scope, receive, send)
            return
        call = {"id": str(uuid.uuid4()), "function": function.name}
        await self._pass_on(request, path, call, send)

    def _find(self, path: str) -> FunctionDocument | None:
        if not path.lower().startswith(self._prefix.lower()):
            return None
        below = path[len(self._prefix) :].rstrip("/")
        return next((route.function for route in self._routes if route.matches(below)), None)

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
        # In the real host, a request with non-ASCII headers never reaches its function. Here, an invalid
        # invocation id has the same effect.
        is_lost = any(not value.isascii() for _, value in request.scope["headers"])
        headers.add(INVOCATION_HEADER, "lost" if is_lost else str(call["id"]))
        headers[CALL_HEADER] = json.dumps(call)
        target = _NOT_IN_A_TARGET.sub(lambda match: quote(match[0], safe="", encoding="latin-1"), path)
        if query := request.scope["query_string"]:
            target += f"?{query.decode('latin-1')}"
        has_begun = False
        try:
            body = await request.body()
            async with self._worker.request(request.scope["method"], target, headers, body) as answer:
                headers_out = [pair for pair in answer.raw_headers if pair[0].lower() not in _HOP_BY_HOP]
                start = {"type": "http.response.start", "status": answer.status, "headers": headers_out}
                async for piece in answer.content.iter_any():
                    # The status and headers are sent together with the first piece of the body.
                    if not has_begun:
                        has_begun = True
                        await send(start)
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                if not has_begun:
                    has_begun = True
                    await send(start)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except (WorkerLostError, BodyTooLargeError) as lost:
            log.warning("no response to %s %s: %s", request.scope["method"], call["function"], lost)
            if not has_begun:
                await PlainTextResponse("", status_code=500)(request.scope, request.receive, send)


def _refusal(scope: Scope, path: str) -> int | None:
    """Return the status for a request that the real host rejects before routing, or None."""
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
    is_tunnel = scope["method"] == "CONNECT"  # whose target must be a host and a port
    return 400 if "%00" in path or is_foreign or is_tunnel else None


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _without_dots(path: str) -> str:
    segments: list[str] = []
    for segment in path.split("/"):
        plain = segment.lower().replace("%2e", ".")
        if plain == "..":
            del segments[max(1, len(segments) - 1) :]
        elif plain != ".":
            segments.append(segment)
    return "/".join(segments)


class BodyTooLargeError(Exception):
    """Error raised if a chunked body exceeds the size limit of the host."""


class _IncomingRequest:
    """An incoming request. A body with a Content-Length is read completely; a chunked body is forwarded in
    pieces.
    """

    def __init__(self, scope: Scope, receive: Receive, max_bytes: int) -> None:
        self.scope = scope
        self.receive = receive
        self._max_bytes = max_bytes
        self._is_read = asyncio.Event()
        self._has_left = False

    @property
    def headers(self) -> CIMultiDict[str]:
        """The headers to forward, without connection headers and Content-Length."""
        return CIMultiDict(
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in self.scope["headers"]
            if name not in _HOP_BY_HOP and name != b"content-length"
        )

    @property
    def declared_bytes(self) -> int:
        """The value of Content-Length, or 0 if it is missing."""
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
                # the client has disconnected, so wait until this task is cancelled
                await asyncio.Event().wait()
            size_bytes += len(message.get("body", b""))
            if size_bytes > self._max_bytes:
                raise BodyTooLargeError(f"the body exceeds {self._max_bytes:,} bytes")
            yield message.get("body", b"")
            if not message.get("more_body", False):
                break
        self._is_read.set()
