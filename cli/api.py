"""HTTP client of the API, with a connection pool, the app's error messages, and retries after
`Retry-After`.
"""

import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote, urlsplit

import httpx
from httpx_sse import EventSource

from cli.errors import CommandError, NoConnectionError

DEFAULT_URL = "http://127.0.0.1:7071"
_TIMEOUT = httpx.Timeout(
    60.0, connect=5.0
)  # a read timeout of 60 s suffices, because streams send a comment every 15 s
_OK = range(200, 300)
_TOO_MANY = 429
_UNAUTHORISED = 401
_BROKEN = 500
_LONGEST_WAIT_S = 90.0  # limits are per minute, so a longer wait is reported as an error
_PAGE = 100  # number of items per request
_LOOPBACK = ("localhost", "127.0.0.1", "::1")

TokenSource = Callable[[str], str]
"""Function that returns a token. Its argument is the token that the app has just rejected, or "". A source
that can't replace a rejected token returns it again. Threads may call it at the same time.
"""
OnWait = Callable[[float, str], None]


@dataclass(frozen=True)
class Event:
    """A server-sent event."""

    number: int
    name: str
    data: dict[str, Any]


def read_events(response: httpx.Response) -> Iterator[Event]:
    """Yield the complete events of a stream.

    Raises:
        httpx.TransportError: the connection broke, or the response isn't an event stream.
    """
    for event in EventSource(response).iter_sse():
        if event.data:  # a comment after an event id is parsed as an event without data
            yield Event(int(event.id or 0), event.event, event.json())


class _Bearer(httpx.Auth):
    """Bearer authentication that repeats a request once with a new token after a 401."""

    def __init__(self, token: TokenSource) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        token = self._token("")
        request.headers["Authorization"] = f"Bearer {token}"
        answered = yield request
        # A body read from a file can't be sent twice.
        if answered.status_code == _UNAUTHORISED and isinstance(request.stream, httpx.ByteStream):
            renewed = self._token(token)
            if renewed != token:
                request.headers["Authorization"] = f"Bearer {renewed}"
                yield request


class Api:
    """A client of the app that acts for one user. It is a context manager, and threads may share it.

    Args:
        url: URL of the app without `/api`.
        token: a token, or a function that returns one.
        on_wait: called with seconds and reason when the app asks the client to wait.

    Raises:
        CommandError: the URL is invalid, or would send the token unencrypted over a network.
    """

    def __init__(self, url: str, token: str | TokenSource, on_wait: OnWait | None = None) -> None:
        self.url = checked_url(url)
        self._on_wait = on_wait or (lambda _seconds, _why: None)
        supplied = token
        source = (lambda _rejected: supplied) if isinstance(supplied, str) else supplied
        self._client = httpx.Client(base_url=f"{self.url}/api", auth=_Bearer(source), timeout=_TIMEOUT)

    def call(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        """Send a request and return the JSON of the response, or {} if it has no content. If the app responds
        with Retry-After, wait and retry.

        Raises:
            CommandError: no connection, or an error response.
        """
        answered = self.send(method, path, **request)
        if not answered.content:
            return {}
        try:
            return dict(answered.json())
        except (ValueError, TypeError):
            raise CommandError(
                f"{self.url} does not respond like Groundwork.",
                "Check that GROUNDWORK_URL is the URL of your app.",
            ) from None

    def items(
        self, path: str, name: str, limit: int, filters: Mapping[str, str] | None = None
    ) -> list[dict[str, Any]]:
        """Return the first `limit` items of a list, restricted by the query parameters in `filters`. Fetches
        as many pages as necessary.
        """
        items: list[dict[str, Any]] = []
        cursor: str | None = ""
        while len(items) < limit and cursor is not None:
            parameters = {**(filters or {}), "limit": min(_PAGE, limit - len(items))}
            page = self.call("GET", path, params=parameters | ({"cursor": cursor} if cursor else {}))
            items += page[name]
            cursor = page.get("cursor") or None
        return items[:limit]

    def send(self, method: str, path: str, *, also: int = 200, **request: Any) -> httpx.Response:
        """Send a request and return its complete response. Raise CommandError unless the status is a success
        or equals `also`.

        Raises:
            CommandError: no connection, or an error response.
        """
        until = time.monotonic() + _LONGEST_WAIT_S
        while True:
            try:
                answered = self._client.request(method, path, **request)
            except httpx.HTTPError as failed:
                raise self.unreachable(failed) from None
            if not self._has_waited(answered, until):
                if answered.status_code != also:
                    refuse_errors(answered)
                return answered
            if "files" in request:  # the files have been read, so the caller must reopen them
                raise _repeatable(answered)

    def events(
        self, method: str, path: str, *, after: int = 0, body: Any = None, key: str = ""
    ) -> Iterator[tuple[httpx.Headers, Event | None]]:
        """Yield (headers, event) for each event of a stream. The first event is None and signals that the
        stream is connected.

        Args:
            after: number of the last event received.
            key: an Idempotency-Key; equal keys name the same run.

        Raises:
            CommandError: an error response.
            httpx.TransportError: no connection, or it broke; resume after the last event.
        """
        headers = {"Last-Event-ID": str(after)} if after else {}
        headers |= {"Idempotency-Key": key} if key else {}
        until = time.monotonic() + _LONGEST_WAIT_S
        while True:
            with self._client.stream(method, path, json=body, headers=headers) as stream:
                if stream.status_code in _OK:
                    yield stream.headers, None
                    for event in read_events(stream):
                        yield stream.headers, event
                    return
                stream.read()
            if not self._has_waited(stream, until):
                refuse_errors(stream)

    def download(self, path: str) -> Iterator[bytes]:
        """Yield the contents of a file in chunks.

        Raises:
            CommandError: no connection, a broken connection, or an error response.
        """
        try:
            with self._client.stream("GET", path) as stream:
                if stream.status_code not in _OK:
                    stream.read()
                    refuse_errors(stream)
                yield from stream.iter_bytes()
        except httpx.HTTPError as failed:
            raise self.unreachable(failed) from None

    def absolute(self, address: str) -> str:
        """Return a URL of the app as an absolute URL, and any other URL unchanged."""
        return f"{self.url}{address}" if address.startswith("/") else address

    def unreachable(self, failed: httpx.HTTPError) -> NoConnectionError:
        """Return the error for an app that can't be reached."""
        return NoConnectionError(
            f"No response from {self.url} ({type(failed).__name__}).",
            "Is it running? `make run` starts a local stack; GROUNDWORK_URL selects another app.",
        )

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _has_waited(self, answered: httpx.Response, until: float) -> bool:
        """Sleep for the time that the response asks for, unless it would end after `until`. Return whether to
        retry.
        """
        retry_after = answered.headers.get("retry-after", "")
        if answered.status_code != _TOO_MANY or not retry_after.isdigit():
            return False
        seconds = float(retry_after) + 0.1
        if time.monotonic() + seconds > until:
            return False
        self._on_wait(seconds, _problem(answered)[0])
        time.sleep(seconds)
        return True


def checked_url(url: str) -> str:
    """Return the URL of the app without a trailing slash.

    Raises:
        CommandError: the URL is invalid, or plain http to another machine, where the token could be read.
    """
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment or parts.username:
        raise CommandError(
            f"{url[:100]!r} is not the URL of an app.", "Example: https://NAME.azurewebsites.net."
        )
    if parts.scheme == "http" and host not in _LOOPBACK and os.environ.get("GROUNDWORK_PLAIN_HTTP") != "1":
        raise CommandError(
            "A token is not sent to another machine over plain http.",
            "Use https, or set GROUNDWORK_PLAIN_HTTP=1 in a network that you trust.",
        )
    return url.strip().rstrip("/").removesuffix("/api")


def segment(text: str) -> str:
    """Return text as one percent-encoded path segment.

    Raises:
        CommandError: the text is empty or a dot segment, which would change the path.
    """
    if not text.strip() or set(text) == {"."}:
        raise CommandError(f"{text!r} is not a valid id.")
    return quote(text, safe="")


def refuse_errors(answered: httpx.Response) -> None:
    """Raise CommandError with the app's message unless the response is successful."""
    if answered.status_code not in _OK:
        detail, hints, code = _problem(answered)
        request_id = answered.headers.get("x-request-id", "")
        if answered.status_code >= _BROKEN and request_id:
            hints.append(f"The request id in the app's log is {request_id}.")
        raise CommandError(detail, *hints, status=answered.status_code, code=code)


def _repeatable(answered: httpx.Response) -> CommandError:
    error = CommandError(_problem(answered)[0], status=answered.status_code)
    error.may_repeat = True
    return error


def _problem(answered: httpx.Response) -> tuple[str, list[str], str]:
    try:
        problem = answered.json()
        hints = [str(hint) for hint in problem.get("hints", [])]
        return str(problem["detail"]), hints, str(problem.get("title", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        hints = ["Does GROUNDWORK_URL name an app of this command line's version?"]
        return f"HTTP {answered.status_code} without an explanation.", hints, ""
