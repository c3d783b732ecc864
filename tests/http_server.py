"""An HTTP server on loopback whose responses come from a function in the test."""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Answer = tuple[int, Mapping[str, str], bytes]
"""Status, headers and body."""


@dataclass(frozen=True)
class Request:
    """A received request. `target` is its path with the query string; header names are case-insensitive."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


class HttpServer:
    """A server on a free port. Its URL is known immediately, but it answers requests only within its
    context.
    """

    def __init__(self, respond: Callable[[Request], Answer]) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(respond))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """The server's address without a path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def json_answer(body: Any, status: int = 200, media_type: str = "application/json") -> Answer:
    """Return an answer with a JSON body."""
    return status, {"Content-Type": media_type}, json.dumps(body).encode()


def _handler_of(respond: Callable[[Request], Answer]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Otherwise, each response waits 40 ms for an acknowledgement of its headers.
        disable_nagle_algorithm = True

        def _respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, headers, content = respond(Request(self.command, self.path, self.headers, body))  # type: ignore[arg-type]
            try:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except ConnectionError:
                self.close_connection = True  # the client has disconnected

        do_GET = do_POST = do_PUT = do_DELETE = _respond  # noqa: N815  # the names that the base class looks for

        def log_message(self, *_: object) -> None:
            """Suppress the access log."""

    return Handler
