"""Protects the host's own routes: they require a key and reject requests from foreign web pages.

In Azure, `/admin` requires the master key and `/runtime` the durable extension's key. Here one key is used
for both, in the header x-functions-key or the parameter `code`. Only the worker calls `/durabletask`; the SDK
sends no key there, so the URL contains the worker's key.
"""

import re
import secrets
from urllib.parse import unquote, urlsplit

import h11
from starlette.datastructures import Headers, QueryParams
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from local.durable.http_api import RPC_PREFIX

_KEYED = ("/admin", "/runtime")
_FOLD = re.compile(rb"\r?\n[ \t]")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Guard:
    """ASGI middleware that rejects requests to the host's own routes without its key. Like Kestrel, it
    accepts absolute URLs in request lines.
    """

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._key = key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = _with_path_alone(scope)
            if refusal := self._refusal(scope):
                await PlainTextResponse("", status_code=refusal)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> int | None:
        path = scope["path"].lower()
        if not path.startswith((*_KEYED, RPC_PREFIX)):
            return None
        headers = Headers(scope=scope)
        own_host = headers.get("host", "")
        if not _is_loopback(f"//{own_host}") or headers.get("origin") not in (None, f"http://{own_host}"):
            return 403  # status 403 for DNS rebinding and for requests from pages of other sites
        key = headers.get("x-functions-key") or QueryParams(scope["query_string"]).get("code", "")
        if path.startswith(_KEYED) and not secrets.compare_digest(key.encode(), self._key):
            return 401
        return None


def _with_path_alone(scope: Scope) -> Scope:
    target = (scope.get("raw_path") or b"").decode("latin-1")
    if not target.lower().startswith(("http://", "https://")):
        return scope
    path = f"/{target.partition('://')[2].partition('/')[2]}"
    return {**scope, "path": unquote(path), "raw_path": path.encode("latin-1")}


def _is_loopback(authority: str) -> bool:
    try:
        return urlsplit(authority).hostname in _LOOPBACK
    except ValueError:
        return False


class StrictProtocol(H11Protocol):
    """An HTTP/1.1 protocol that rejects folded headers with status 400, as Kestrel does. h11 alone would join
    their lines.
    """

    def data_received(self, data: bytes) -> None:
        unread, _ = self.conn.trailing_data
        is_head = self.conn.their_state is h11.IDLE
        if is_head and _FOLD.search(_HEAD_END.split(unread + data, maxsplit=1)[0]):
            self.send_400_response("")
            return
        super().data_received(data)
