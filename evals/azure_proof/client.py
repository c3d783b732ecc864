"""HTTP client of the app for one user, with JSON calls and resumable streams."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

from local.run_all.api_client import LAST_EVENTS, StreamEvent, read_events

CALL_TIMEOUT_S = 120.0
# Seconds without data after which a stream counts as broken. The app sends a comment every 15 s.
SILENCE_S = 60.0
JsonObject = dict[str, Any]
# Transient statuses, returned during a restart or when a rate limit is exceeded. Such calls are retried.
_RETRIED = frozenset({429, 502, 503, 504})
_PAUSE_S = 1.0


class AppClient:
    """A client of the app. It requests a token for each call, because Azure tokens expire after an hour.

    Args:
        url: URL of the app, without `/api`.
        token: returns the caller's token.
    """

    def __init__(self, url: str, token: Callable[[], str]) -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._http = httpx.Client(base_url=self.url, timeout=CALL_TIMEOUT_S)

    def close(self) -> None:
        """Close the HTTP connections."""
        self._http.close()

    def send(self, method: str, path: str, *, signed_in: bool = True, **arguments: Any) -> httpx.Response:
        """Send one request and return the response, whatever its status."""
        headers = {**arguments.pop("headers", {})}
        if signed_in:
            headers["Authorization"] = f"Bearer {self._token()}"
        return self._http.request(method, path, headers=headers, **arguments)

    def call(self, method: str, path: str, *, patience_s: float = 60.0, **arguments: Any) -> JsonObject:
        """Send a request and return the JSON of the response. Transient errors are retried for up to
        `patience_s` seconds.

        Raises:
            httpx.HTTPError: the app refused the request or didn't respond.
        """
        until = time.monotonic() + patience_s
        while True:
            try:
                answer = self.send(method, path, **arguments)
                if answer.status_code not in _RETRIED or time.monotonic() > until:
                    content: JsonObject = answer.raise_for_status().json() if answer.content else {}
                    return content
            except httpx.TransportError:
                if time.monotonic() > until:
                    raise
            time.sleep(_PAUSE_S)

    def upload(self, path: Path) -> str:
        """Upload a file that only the caller can read, and return its document id."""
        with path.open("rb") as content:
            document = self.call("POST", "/api/documents", files={"file": (path.name, content)})
        return str(document["doc_id"])

    def document(self, doc_id: str) -> JsonObject | None:
        """Return a document, or None if it doesn't exist or the caller can't read it."""
        answer = self.send("GET", f"/api/documents/{doc_id}")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        content: JsonObject = answer.raise_for_status().json()
        return content

    def documents_named(self, filename: str) -> list[JsonObject]:
        """Return the caller's readable documents with this file name, including those still being
        ingested.
        """
        params = {"filename": filename, "limit": "100"}
        listed: list[JsonObject] = self.call("GET", "/api/documents", params=params)["documents"]
        return [one for one in listed if one["filename"] == filename]

    def ask(self, question: str) -> JsonObject:
        """Ask a question, wait for the end of the run and return it with its answer."""
        return self.call("POST", "/api/chat", json={"question": question, "stream": False})

    def stream(self, question: str) -> Iterator[StreamEvent]:
        """Ask a question and yield the events of the run, until the stream ends or breaks."""
        return self._events("POST", "/api/chat", {"json": {"question": question}}, {})

    def resume(self, run_id: str, after: int) -> Iterator[StreamEvent]:
        """Yield the events of a run that follow the event with number `after`."""
        return self._events("GET", f"/api/runs/{run_id}/events", {}, {"Last-Event-ID": str(after)})

    def _events(
        self, method: str, path: str, arguments: JsonObject, headers: dict[str, str]
    ) -> Iterator[StreamEvent]:
        signed = {**headers, "Authorization": f"Bearer {self._token()}", "Accept": "text/event-stream"}
        timeout = httpx.Timeout(SILENCE_S)
        with self._http.stream(method, path, headers=signed, timeout=timeout, **arguments) as answer:
            if answer.is_error:
                answer.read()
                answer.raise_for_status()
            yield from read_events(f"{line}\n".encode() for line in answer.iter_lines())


def is_last(event: StreamEvent) -> bool:
    """Return whether this event ends its run."""
    return event.name in LAST_EVENTS


def as_json(value: object) -> str:
    """Return a value as a single line of JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
