"""Proxy between an app and its models that records the chat calls of selected questions.

A question is identified by its trace: the request carries a `traceparent`, and the app sends the trace id
with each model call. Chat calls of watched traces go to the hosted endpoint if there is one; all other calls,
such as embeddings and ingestion, go to the stack's model server.
"""

import http.client
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

JsonObject = dict[str, Any]
# Four hours in seconds, because a person may write the reply.
CALL_TIMEOUT_S = 4 * 3600.0
_DROPPED = frozenset({"host", "content-length", "connection", "accept-encoding", "transfer-encoding"})
_PIECE = 1 << 14


@dataclass(frozen=True)
class Endpoint:
    """The address and credentials of a model endpoint.

    Attributes:
        url: base URL, such as `http://127.0.0.1:8100/v1`.
        key, model: override the app's; empty = use the app's.
    """

    url: str
    key: str = ""
    model: str = ""


@dataclass
class ChatCall:
    """A recorded chat call with its times and token counts.

    Attributes:
        seconds: until the last byte of the reply.
        first_s: until the first text of a stream; None without any.
        tokens_in, tokens_out: as counted by the endpoint, including hidden ones; 0 if not reported.
    """

    request: JsonObject
    status: int = 0
    seconds: float = 0.0
    first_s: float | None = None
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0

    @property
    def text(self) -> str:
        """All text in the messages shown to the model."""
        return "\n".join(_texts(self.request.get("messages", [])))


def _texts(messages: list[JsonObject]) -> Iterator[str]:
    for message in messages:
        content = message.get("content") or ""
        if isinstance(content, str):
            yield content
        else:
            yield from (str(part.get("text", "")) for part in content)


def call_from(stored: Mapping[str, Any]) -> ChatCall:
    """Restore a call from its stored form, as returned by `asdict`."""
    return ChatCall(**stored)


@dataclass
class Recorder:
    """Thread-safe store of recorded calls, with the endpoints that receive the calls."""

    local: Endpoint
    hosted: Endpoint | None = None
    url: str = ""
    _calls: dict[str, list[ChatCall]] = field(default_factory=dict)

    def watch(self, trace_id: str) -> None:
        """Start recording the chat calls with this trace id."""
        self._calls[trace_id] = []

    def take(self, trace_id: str) -> list[JsonObject]:
        """Stop recording the calls with this trace id. Return the recorded calls as JSON objects."""
        return [asdict(call) for call in self._calls.pop(trace_id, [])]

    def begin(self, trace_id: str, request: JsonObject) -> ChatCall | None:
        """Record the start of a chat call and return it, or return None if its trace isn't recorded."""
        calls = self._calls.get(trace_id)
        if calls is None:
            return None
        calls.append(ChatCall(request))
        return calls[-1]


@contextmanager
def recording(local: Endpoint, hosted: Endpoint | None) -> Iterator[Recorder]:
    """Serve the proxy on a free loopback port and yield its recorder."""
    recorder = Recorder(local, hosted)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (_Proxy,), {"recorder": recorder}))
    server.daemon_threads = True
    recorder.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield recorder
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Proxy(BaseHTTPRequestHandler):
    recorder: Recorder
    protocol_version = "HTTP/1.1"
    # With Nagle's algorithm, each response would wait 40 ms for the acknowledgement of its headers.
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Log nothing, because requests contain documents."""

    def do_GET(self) -> None:
        self._forward(b"", self.recorder.local, None)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "/v1/traces" in self.path or "/v1/metrics" in self.path:
            self._reply(200, "application/x-protobuf", b"")
            return
        call = None
        if self.path.endswith("/chat/completions"):
            trace_id = (self.headers.get("traceparent") or "--").split("-")[1]
            call = self.recorder.begin(trace_id, json.loads(body))
        endpoint = self.recorder.local
        if call is not None and self.recorder.hosted is not None:
            endpoint = self.recorder.hosted
            if endpoint.model:
                body = json.dumps({**call.request, "model": endpoint.model}).encode()
        self._forward(body, endpoint, call)

    def _forward(self, body: bytes, endpoint: Endpoint, call: ChatCall | None) -> None:
        began = time.monotonic()
        parts = urlsplit(endpoint.url)
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(parts.netloc, timeout=CALL_TIMEOUT_S)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _DROPPED}
        if endpoint.key:
            headers["Authorization"] = f"Bearer {endpoint.key}"
        try:
            connection.request(self.command, parts.path + self.path.removeprefix("/v1"), body, headers)
            self._pass_back(connection.getresponse(), call, began)
        except (BrokenPipeError, ConnectionResetError):
            # The app has closed the connection.
            self.close_connection = True
        except (OSError, http.client.HTTPException) as failed:
            with suppress(OSError):
                problem = {"error": {"message": f"{type(failed).__name__} at the model endpoint"}}
                self._reply(502, "application/json", json.dumps(problem).encode())
        finally:
            if call is not None:
                call.seconds = round(time.monotonic() - began, 3)
            connection.close()

    def _pass_back(self, reply: http.client.HTTPResponse, call: ChatCall | None, began: float) -> None:
        kind = reply.getheader("Content-Type", "application/json")
        if call is not None:
            call.status = reply.status
        if "event-stream" not in kind:
            content = reply.read()
            if call is not None:
                with suppress(ValueError):
                    _note_usage(call, json.loads(content))
            self._reply(reply.status, kind, content, reply.getheader("Retry-After"))
            return
        self.send_response(reply.status)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for line in reply:
            self.wfile.write(line)
            self.wfile.flush()
            if call is not None and line.startswith(b"data: {"):
                _note_chunk(call, json.loads(line[6:]), time.monotonic() - began)

    def _reply(self, status: int, kind: str, content: bytes, retry_after: str | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if retry_after:
            self.send_header("Retry-After", retry_after)
        self.end_headers()
        self.wfile.write(content)


def _note_chunk(call: ChatCall, chunk: JsonObject, seconds: float) -> None:
    if call.first_s is None and any(choice["delta"].get("content") for choice in chunk.get("choices", [])):
        call.first_s = round(seconds, 3)
    _note_usage(call, chunk)


def _note_usage(call: ChatCall, reply: JsonObject) -> None:
    usage = reply.get("usage") or {}
    call.tokens_in = usage.get("prompt_tokens") or call.tokens_in
    call.tokens_out = usage.get("completion_tokens") or call.tokens_out
    call.tokens_cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or call.tokens_cached
