"""A proxy that forwards requests unchanged and records both sides."""

import json
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import httpx

_HANDED_ON = ("content-type", "authorization")
_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Exchange:
    """One request. `at`: time.monotonic() of its arrival; `body`, `answer`: JSON, or None."""

    at: float
    method: str
    path: str
    body: Any
    status: int
    answer: Any


class Recorder:
    """A proxy on a free loopback port. A context manager. `target`: a URL without a path."""

    def __init__(self, target: str = "") -> None:
        self.target = target
        self.exchanges: list[Exchange] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def hand_on(self, method: str, path: str, headers: dict[str, str], body: bytes) -> httpx.Response:
        """Return the target's response, which is recorded as well."""
        at = time.monotonic()
        given = {name: value for name, value in headers.items() if name.lower() in _HANDED_ON}
        answer = httpx.request(method, self.target + path, headers=given, content=body, timeout=_TIMEOUT_S)
        kept = Exchange(at, method, path, _json_of(body), answer.status_code, _json_of(answer.content))
        self.exchanges.append(kept)
        return answer


def _json_of(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


def _handler_of(recorder: Recorder) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else each response waits 40 ms for an acknowledgement of its headers

        def _hand_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            answer = recorder.hand_on(self.command, self.path, dict(self.headers.items()), body)
            self.send_response(answer.status_code)
            for name in ("content-type", "retry-after"):
                if name in answer.headers:
                    self.send_header(name, answer.headers[name])
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        def do_GET(self) -> None:
            self._hand_on()

        def do_POST(self) -> None:
            self._hand_on()

        def do_PUT(self) -> None:
            self._hand_on()

        def log_message(self, *_: object) -> None:
            """Suppress the access log."""

    return Handler
