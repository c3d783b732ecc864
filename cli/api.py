"""The HTTP API for the command line: one client, errors as the API words them, waits when it says to."""

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
_TIMEOUT = httpx.Timeout(60.0, connect=5.0)  # of silence; streams send a comment every 15 s
_OK = range(200, 300)
_TOO_MANY = 429
_UNAUTHORISED = 401
_BROKEN = 500
_LONGEST_WAIT_S = 90.0  # for a limit that is counted by the minute; longer ones are an error
_PAGE = 100  # items of a list
_LOOPBACK = ("localhost", "127.0.0.1", "::1")

TokenSource = Callable[[bool], str]
"""The token of now; a new one when it is called with True. "" when there is none to be had."""
OnWait = Callable[[float, str], None]


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    number: int
    name: str
    data: dict[str, Any]


def read_events(response: httpx.Response) -> Iterator[Event]:
    """Yield the complete events of a stream.

    Raises:
        httpx.TransportError: the connection broke, or the response is no event stream.
    """
    for event in EventSource(response).iter_sse():
        if event.data:  # a comment after an event with an id makes an event without data
            yield Event(int(event.id or 0), event.event, event.json())


class _Bearer(httpx.Auth):
    """The token with each request, and again with a new one when it was not believed."""

    def __init__(self, token: TokenSource) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        sent = self._token(False)
        request.headers["Authorization"] = f"Bearer {sent}"
        answered = yield request
        # A body that is read from a file cannot be sent twice.
        if answered.status_code == _UNAUTHORISED and isinstance(request.stream, httpx.ByteStream):
            renewed = self._token(True)
            if renewed not in ("", sent):
                request.headers["Authorization"] = f"Bearer {renewed}"
                yield request


class Api:
    """Calls the app as the user whose token it has. A context manager; many threads may use one.

    Args:
        url: the app's address, without `/api`.
        token: it, or what gives it.
        on_wait: called when the app asks to wait, with the seconds and the reason.

    Raises:
        CommandError: the address is none, or would carry the token over a network in the open.
    """

    def __init__(self, url: str, token: str | TokenSource, on_wait: OnWait | None = None) -> None:
        self.url = checked_url(url)
        self._on_wait = on_wait or (lambda _seconds, _why: None)
        given = token
        source = (lambda _renew: given) if isinstance(given, str) else given
        self._client = httpx.Client(base_url=f"{self.url}/api", auth=_Bearer(source), timeout=_TIMEOUT)

    def call(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        """The JSON of an answer; {} of one without content. Waits when the app says for how long.

        Raises:
            CommandError: no connection, or the app answered with an error.
        """
        answered = self.send(method, path, **request)
        if not answered.content:
            return {}
        try:
            return dict(answered.json())
        except (ValueError, TypeError):
            raise CommandError(
                f"{self.url} does not answer as Groundwork does.", "Does GROUNDWORK_URL name the right app?"
            ) from None

    def items(
        self, path: str, name: str, limit: int, given: Mapping[str, str] | None = None
    ) -> list[dict[str, Any]]:
        """The first `limit` items of a list that is narrowed by `given`, over as many pages as it takes."""
        found: list[dict[str, Any]] = []
        cursor: str | None = ""
        while len(found) < limit and cursor is not None:
            parameters = {**(given or {}), "limit": min(_PAGE, limit - len(found))}
            page = self.call("GET", path, params=parameters | ({"cursor": cursor} if cursor else {}))
            found += page[name]
            cursor = page.get("cursor") or None
        return found[:limit]

    def send(self, method: str, path: str, *, also: int = 200, **request: Any) -> httpx.Response:
        """An answer that is no error, or has the status `also`; read to its end.

        Raises:
            CommandError: no connection, or the app answered with an error.
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
            if "files" in request:  # read already: the caller opens them again
                raise _repeatable(answered)

    def events(
        self, method: str, path: str, *, after: int = 0, body: Any = None, key: str = ""
    ) -> Iterator[tuple[httpx.Headers, Event | None]]:
        """Yield a stream's events to its end, each with the response's headers; first None, once connected.

        Args:
            after: the number of the last event that was seen.
            key: an Idempotency-Key: the same one is the same run, however often it is sent.

        Raises:
            CommandError: the app answered with an error.
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
        """A file, piece by piece.

        Raises:
            CommandError: no connection, it broke, or the app answered with an error.
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
        """An address of the app as one that can be opened; others as they are."""
        return f"{self.url}{address}" if address.startswith("/") else address

    def unreachable(self, failed: httpx.HTTPError) -> NoConnectionError:
        """The error when nobody answers."""
        return NoConnectionError(
            f"No answer from {self.url} ({type(failed).__name__}).",
            "Is it running? `make run` starts a local stack; GROUNDWORK_URL says where to look.",
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _has_waited(self, answered: httpx.Response, until: float) -> bool:
        """Whether the app said when to come again, and that moment has come."""
        said = answered.headers.get("retry-after", "")
        if answered.status_code != _TOO_MANY or not said.isdigit():
            return False
        seconds = float(said) + 0.1
        if time.monotonic() + seconds > until:
            return False
        self._on_wait(seconds, _problem(answered)[0])
        time.sleep(seconds)
        return True


def checked_url(url: str) -> str:
    """The address without a slash at its end.

    Raises:
        CommandError: it is none, or plain http to another machine: the token could be read on the way.
    """
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment or parts.username:
        raise CommandError(
            f"{url[:100]!r} is not the address of an app.", "Such as https://NAME.azurewebsites.net."
        )
    if parts.scheme == "http" and host not in _LOOPBACK and os.environ.get("GROUNDWORK_PLAIN_HTTP") != "1":
        raise CommandError(
            "A token is not sent to another machine over plain http.",
            "Use https, or set GROUNDWORK_PLAIN_HTTP=1 in a network that you trust.",
        )
    return url.strip().rstrip("/").removesuffix("/api")


def segment(text: str) -> str:
    """A word as one part of a path, whatever it holds.

    Raises:
        CommandError: it is empty, or a dot: the address would be another one.
    """
    if not text.strip() or set(text) == {"."}:
        raise CommandError(f"{text!r} is not an id.")
    return quote(text, safe="")


def refuse_errors(answered: httpx.Response) -> None:
    """Raises CommandError, in the words of the app, unless the answer is a good one."""
    if answered.status_code not in _OK:
        detail, hints, code = _problem(answered)
        request_id = answered.headers.get("x-request-id", "")
        if answered.status_code >= _BROKEN and request_id:
            hints.append(f"The app's log knows it as request {request_id}.")
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
