"""A proxy that forwards requests unchanged, and records requests and responses."""

import json
import time
from dataclasses import dataclass
from typing import Any

import httpx

from tests.http_server import Answer, HttpServer, Request

_FORWARDED = ("content-type", "authorization")
_RETURNED = ("content-type", "retry-after")
_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Exchange:
    """A recorded request with its response. `at` is the time.monotonic() of its arrival; `body` and `answer`
    are JSON, or None.
    """

    at: float
    method: str
    path: str
    body: Any
    status: int
    answer: Any


class Recorder(HttpServer):
    """A proxy on a free loopback port. It is a context manager. `target` is a URL without a path."""

    def __init__(self, target: str = "") -> None:
        super().__init__(self._forward)
        self.target = target
        self.exchanges: list[Exchange] = []

    def _forward(self, request: Request) -> Answer:
        """Forward a request to the target, record both sides, and return the response."""
        at = time.monotonic()
        method, path, body = request.method, request.target, request.body
        request_headers = {
            name: value for name, value in request.headers.items() if name.lower() in _FORWARDED
        }
        response = httpx.request(
            method, self.target + path, headers=request_headers, content=body, timeout=_TIMEOUT_S
        )
        content = response.content
        self.exchanges.append(
            Exchange(at, method, path, _json_of(body), response.status_code, _json_of(content))
        )
        headers = {name: response.headers[name] for name in _RETURNED if name in response.headers}
        return response.status_code, headers, content


def _json_of(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None
