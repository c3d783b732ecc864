"""A client of the app's HTTP API: JSON requests, and questions with streamed answers."""

import contextlib
import http.client
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from local.run_all.stack_settings import CallRefusedError

CALL_TIMEOUT_S = 60.0
STREAM_TIMEOUT_S = 60.0  # longest silence of a stream; the app sends a comment every 15 s
LAST_EVENTS = ("complete", "error")


@dataclass(frozen=True)
class StreamEvent:
    """A server-sent event. `frame` is its text as received."""

    number: int
    name: str
    data: dict[str, Any]
    frame: str


@dataclass
class Reply:
    """The events of a streamed answer and the data of its last one.

    Attributes:
        answer: data of the event `complete`: text, citations, abstained.
        error: data of the event `error`, or None.
    """

    events: list[StreamEvent] = field(default_factory=list)
    answer: dict[str, Any] = field(default_factory=dict)
    error: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        return str(self.answer.get("text", ""))

    @property
    def citations(self) -> list[dict[str, Any]]:
        return list(self.answer.get("citations", []))

    @property
    def abstained(self) -> bool:
        return bool(self.answer.get("abstained"))

    @property
    def everything_seen(self) -> str:
        """All text received from the app, for leak checks."""
        return "\n".join(event.frame for event in self.events)


class ApiClient:
    """A client of the app that acts as one user."""

    def __init__(self, base_url: str, token: str) -> None:
        self._address = urlsplit(base_url).netloc
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def get(self, path: str) -> Any:
        """Send a GET request and return the parsed JSON.

        Raises:
            CallRefusedError: if the status isn't 200.
        """
        connection = http.client.HTTPConnection(self._address, timeout=CALL_TIMEOUT_S)
        with contextlib.closing(connection):
            connection.request("GET", path, headers=self._headers)
            response = connection.getresponse()
            body = response.read()
        if response.status != 200:
            raise CallRefusedError(f"GET {path}", response.status, body[:500].decode(errors="replace"))
        return json.loads(body)

    def ask(self, question: str, on_event: Callable[[StreamEvent], None] = lambda _: None) -> Reply:
        """Ask a question and read its events to the end. `on_event` is called with each event as it arrives.

        Raises:
            CallRefusedError: if the question is rejected.
        """
        body = json.dumps({"question": question})
        events = self._stream("POST", "/api/chat", body, {})
        return collect(events, on_event)

    def resume(self, run_id: str, after: int) -> Iterator[StreamEvent]:
        """Yield the events of a run that follow the event with number `after`."""
        return self._stream("GET", f"/api/runs/{run_id}/events", None, {"Last-Event-ID": str(after)})

    def _stream(
        self, method: str, path: str, body: str | None, headers: dict[str, str]
    ) -> Iterator[StreamEvent]:
        connection = http.client.HTTPConnection(self._address, timeout=STREAM_TIMEOUT_S)
        with contextlib.closing(connection):
            connection.request(method, path, body=body, headers={**self._headers, **headers})
            response = connection.getresponse()
            if response.status != 200:
                detail = response.read()[:500].decode(errors="replace")
                raise CallRefusedError(f"{method} {path}", response.status, detail)
            yield from read_events(response)


def read_events(lines: Iterable[bytes]) -> Iterator[StreamEvent]:
    """Yield the server-sent events in a response. Comments are skipped."""
    frame: list[str] = []
    for line in lines:
        text = line.decode("utf-8").rstrip("\r\n")
        if text:
            frame.append(text)
            continue
        fields = dict(part.split(": ", 1) for part in frame if not part.startswith(":"))
        if "data" in fields:
            data = json.loads(fields["data"])
            yield StreamEvent(int(fields["id"]), fields["event"], data, "\n".join(frame))
        frame = []


def collect(events: Iterable[StreamEvent], on_event: Callable[[StreamEvent], None]) -> Reply:
    """Read all events and return them as a reply. `on_event` is called with each event as it arrives."""
    reply = Reply()
    for event in events:
        reply.events.append(event)
        on_event(event)
        if event.name == "complete":
            reply.answer = event.data["answer"]
        elif event.name == "error":
            reply.error = event.data
    return reply
