"""Client that asks a question and reads its events to the end, reconnecting when the stream breaks."""

import contextlib
import http.client
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from local.run_all.api_client import LAST_EVENTS, StreamEvent, read_events

# Seconds without data after which a stream counts as broken. The app sends a comment every 15 s.
SILENCE_S = 20.0
# Pause before reconnecting.
PAUSE_S = 0.1
Watcher = Callable[[StreamEvent], None]


@dataclass
class Followed:
    """The events of a run that its reader has received.

    Attributes:
        began, ended: time.monotonic() when the question (or a choice) was sent, and at the last event.
        reconnects: number of reconnections.
    """

    run_id: str = ""
    began: float = 0.0
    ended: float | None = None
    events: list[StreamEvent] = field(default_factory=list)
    reconnects: int = 0

    @property
    def last(self) -> StreamEvent | None:
        """The event `complete` or `error` that ended the run, or None if it has not arrived."""
        event = self.events[-1] if self.events else None
        return event if event is not None and event.name in LAST_EVENTS else None


class Caller:
    """A client of the app that acts as one user."""

    def __init__(self, port: Callable[[], int], token: str) -> None:
        self._port = port
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(
        self, question: str, give_up_s: float, watch: Watcher = lambda _: None, agent: str | None = None
    ) -> Followed:
        """Ask a question and read its events until the run ends or `give_up_s` seconds have passed. `watch`
        is called with each event.

        Raises:
            OSError, http.client.HTTPException: if the question isn't accepted.
        """
        seen = Followed(began=time.monotonic())
        body = json.dumps({"question": question, "agent": agent})
        with contextlib.closing(self._connection()) as connection:
            connection.request("POST", "/api/chat", body=body, headers=self._headers)
            response = connection.getresponse()
            if response.status != 200:
                raise http.client.HTTPException(f"{response.status} {response.read()[:300]!r}")
            seen.run_id = response.headers["X-Run-Id"] or ""
            self._record_events(response, seen, give_up_s, watch)
        while seen.last is None and time.monotonic() - seen.began < give_up_s:
            seen.reconnects += 1
            time.sleep(PAUSE_S)
            self._resume(seen, give_up_s, watch)
        return seen

    def replay(self, run_id: str) -> list[StreamEvent]:
        """Request the events of an ended run again, starting with the first one."""
        with contextlib.closing(self._connection()) as connection:
            connection.request("GET", f"/api/runs/{run_id}/events", headers=self._headers)
            return list(read_events(connection.getresponse()))

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Send a request. Return the status and the JSON of the response, or None in place of the JSON if the
        body is empty.
        """
        content = None if body is None else json.dumps(body)
        with contextlib.closing(self._connection()) as connection:
            connection.request(method, path, body=content, headers=self._headers)
            response = connection.getresponse()
            answered = response.read()
        return response.status, json.loads(answered) if answered else None

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._port(), timeout=SILENCE_S)

    def _resume(self, seen: Followed, give_up_s: float, watch: Watcher) -> None:
        after = str(seen.events[-1].number if seen.events else 0)
        headers = {**self._headers, "Last-Event-ID": after}
        with (
            contextlib.suppress(OSError, http.client.HTTPException),
            contextlib.closing(self._connection()) as connection,
        ):
            connection.request("GET", f"/api/runs/{seen.run_id}/events", headers=headers)
            response = connection.getresponse()
            if response.status == 200:
                self._record_events(response, seen, give_up_s, watch)

    def _record_events(
        self, response: http.client.HTTPResponse, seen: Followed, give_up_s: float, watch: Watcher
    ) -> None:
        """Record events until the run ends, the time limit is reached or the connection breaks."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            for event in read_events(_lines(response, seen, give_up_s)):
                seen.events.append(event)
                watch(event)
                if event.name in LAST_EVENTS:
                    seen.ended = time.monotonic()
                    return
                if event.name == "ask_user":
                    self._choose(seen)

    def _choose(self, seen: Followed) -> None:
        """Choose the first option of a clarification, and restart the clock, because the time budget doesn't
        include the user's time.
        """
        self.call("POST", f"/api/runs/{seen.run_id}/answer", {"choice": 1})
        seen.began = time.monotonic()


def _lines(response: http.client.HTTPResponse, seen: Followed, give_up_s: float) -> Iterator[bytes]:
    # Comments are lines too, so the caller checks the time even while the run sends no events.
    for line in response:
        yield line
        if time.monotonic() - seen.began > give_up_s:
            return
