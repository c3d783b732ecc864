"""The HTTP API for the command line: one client, errors as the API words them."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import httpx

from cli.token_file import read_token

DEFAULT_URL = "http://127.0.0.1:7071"
_TIMEOUT = httpx.Timeout(60.0, connect=5.0)  # of silence; streams send a comment every 15 s
_OK = range(200, 300)


class CommandError(Exception):
    """Something went wrong that the user can read about.

    Attributes:
        hints: what to do about it, one sentence each.
    """

    def __init__(self, message: str, *hints: str, status: int | None = None) -> None:
        super().__init__(message)
        self.hints = hints
        self.status = status


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    number: int
    name: str
    data: dict[str, Any]


class Api:
    """Calls the app as the user whose token it has. A context manager; many threads may use one."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url.rstrip("/")
        headers = {"Authorization": f"Bearer {token}"}
        self._client = httpx.Client(base_url=f"{self.url}/api", headers=headers, timeout=_TIMEOUT)

    @classmethod
    def from_environment(cls) -> Self:
        """The app at GROUNDWORK_URL, with GROUNDWORK_TOKEN or the token that `login` kept.

        Raises:
            CommandError: there is no token.
        """
        token = os.environ.get("GROUNDWORK_TOKEN", "").strip() or read_token()
        if not token:
            raise CommandError(
                "You are not signed in.",
                "Set GROUNDWORK_TOKEN, or run `python -m cli login`.",
                "A local stack prints tokens as it starts.",
            )
        return cls(os.environ.get("GROUNDWORK_URL", "").strip() or DEFAULT_URL, token)

    def call(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        """The JSON of an answer.

        Raises:
            CommandError: no connection, or the app answered with an error.
        """
        try:
            answered = self._client.request(method, path, **request)
        except httpx.HTTPError as failed:
            raise self._unreachable(failed) from None
        _refuse_errors(answered)
        return dict(answered.json())

    def put_elsewhere(self, url: str, content: Any, headers: dict[str, str]) -> None:
        """Send a file to a signed address, which must not be told who we are.

        Raises:
            CommandError: it was not taken.
        """
        try:
            answered = httpx.put(url, content=content, headers=headers, timeout=_TIMEOUT)
        except httpx.HTTPError as failed:
            raise CommandError(f"The storage did not take the file ({type(failed).__name__}).") from None
        if answered.status_code not in _OK:
            raise CommandError(f"The storage answered with HTTP {answered.status_code}.", "Try again.")

    def events(
        self, method: str, path: str, *, after: int = 0, body: Any = None
    ) -> Iterator[tuple[httpx.Headers, Event | None]]:
        """One stream to its end: the answer's headers with each event; None for a comment.

        Raises:
            CommandError: no connection, or the app answered with an error.
            httpx.TransportError: the connection broke in the middle; resume with the last event's number.
        """
        headers = {"Last-Event-ID": str(after)} if after else {}
        try:
            with self._client.stream(method, path, json=body, headers=headers) as stream:
                if stream.status_code not in _OK:
                    stream.read()
                    _refuse_errors(stream)
                for event in read_events(stream.iter_lines()):
                    yield stream.headers, event
        except httpx.ConnectError as failed:
            raise self._unreachable(failed) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def _unreachable(self, failed: httpx.HTTPError) -> CommandError:
        return CommandError(
            f"No answer from {self.url} ({type(failed).__name__}).",
            "Is it running? `make run` starts a local stack; GROUNDWORK_URL says where to look.",
        )


def read_events(lines: Iterator[str]) -> Iterator[Event | None]:
    """Server-sent events; None for each comment, which tells that the connection lives."""
    fields: dict[str, str] = {}
    for line in lines:
        if line.startswith(":"):
            yield None
        elif line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield Event(int(fields.get("id", 0)), fields.get("event", ""), json.loads(fields["data"]))
            fields = {}


def _refuse_errors(answered: httpx.Response) -> None:
    if answered.status_code in _OK:
        return
    try:
        problem = answered.json()
        detail, hints = str(problem["detail"]), [str(hint) for hint in problem.get("hints", [])]
    except (ValueError, KeyError, TypeError):
        detail, hints = f"HTTP {answered.status_code} without an explanation.", []
    raise CommandError(detail, *hints, status=answered.status_code)
