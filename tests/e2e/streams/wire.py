"""Streams as bytes: opened, read up to any position, cut there, and resumed."""

import contextlib
import http.client
import json
import random
import time
from collections.abc import Iterator
from typing import Any

from local.run_all.api_client import LAST_EVENTS
from local.run_all.stack import LocalStack
from samples.acl import ANNA, SampleUser

SILENCE_S = 120.0
PATIENCE_S = 240.0  # far longer than any operation takes unless it hangs
_RETRY_S = 0.1


class BrokenOffError(Exception):
    """Error raised if the server closed the connection."""


def start(stack: LocalStack, question: str, user: SampleUser = ANNA) -> str:
    """Ask a question without reading its events, and return the run's id."""
    with _answered(
        stack, "POST", "/api/chat", user, {"question": question}, {"Prefer": "respond-async"}
    ) as response:
        assert response.status == 202, response.read()
        return str(json.loads(response.read())["run_id"])


def pieces(stack: LocalStack, path: str, after: object = None, user: SampleUser = ANNA) -> Iterator[bytes]:
    """Yield the bytes of a stream as they arrive, until the stream ends.

    Raises:
        BrokenOffError: The stream could not be opened, or the connection was lost before its end.
    """
    headers = {} if after is None else {"Last-Event-ID": str(after)}
    try:
        with _answered(stack, "GET", path, user, None, headers) as response:
            if response.status == 204:
                return
            if response.status != 200:
                raise BrokenOffError(f"{response.status} {response.read()[:300]!r}")
            while piece := response.read1(512):
                yield piece
    except (OSError, http.client.HTTPException) as lost:
        raise BrokenOffError(repr(lost)) from lost


def events_path(run_id: str) -> str:
    return f"/api/runs/{run_id}/events"


def whole(stack: LocalStack, run_id: str) -> bytes:
    """Return all events of a run, as bytes, from an uninterrupted connection."""
    return b"".join(frames_of(b"".join(pieces(stack, events_path(run_id)))))


def status_of(stack: LocalStack, method: str, path: str, headers: dict[str, str]) -> int:
    """Send a request and return the status of the response, without reading its body."""
    with _answered(stack, method, path, ANNA, None, headers) as response:
        return response.status


def call(stack: LocalStack, method: str, path: str) -> tuple[int, dict[str, Any]]:
    """Send a request without a body, and return the status and JSON of the response."""
    with _answered(stack, method, path, ANNA, None, {}) as response:
        return response.status, json.loads(response.read())


def frames_of(received: bytes) -> list[bytes]:
    """Return the complete frames of a stream, without comments and incomplete frames."""
    frames = received.split(b"\n\n")[:-1]
    return [frame + b"\n\n" for frame in frames if not frame.startswith(b":")]


def number_of(frame: bytes) -> int:
    return int(frame.partition(b"\n")[0].removeprefix(b"id: "))


def name_of(frame: bytes) -> str:
    return frame.split(b"\n")[1].removeprefix(b"event: ").decode()


def is_last(frame: bytes) -> bool:
    return name_of(frame) in LAST_EVENTS


class Cutter:
    """A reader of a run whose connections are cut at random bytes, up to a given number of times.

    `cuts` counts the connections that the reader cut, `lost` counts the connections that the server closed.
    """

    def __init__(self, stack: LocalStack, seed: int, limit: int, largest: int) -> None:
        """Create a reader. `limit` is the number of cuts, `largest` the maximum number of bytes before the
        next cut.
        """
        self._stack = stack
        self._chance = random.Random(seed)
        self._limit = limit
        self._largest = largest
        self.cuts = 0
        self.lost = 0

    def read(self, run_id: str, give_up_s: float = PATIENCE_S) -> bytes:
        """Return all frames of a run, joined from the complete frames of each connection."""
        frames: list[bytes] = []
        give_up = time.monotonic() + give_up_s
        while not (frames and is_last(frames[-1])):
            assert time.monotonic() < give_up, f"no end after {len(frames)} frames and {self.cuts} cuts"
            after = number_of(frames[-1]) if frames else None
            frames += frames_of(self._line(run_id, after))
        return b"".join(frames)

    def _line(self, run_id: str, after: int | None) -> bytes:
        """Return the bytes received on one connection, until the connection is cut or ends."""
        until = self._chance.randint(1, self._largest) if self.cuts < self._limit else None
        received = b""
        try:
            for piece in pieces(self._stack, events_path(run_id), after):
                received += piece
                if until is not None and len(received) >= until:
                    self.cuts += 1
                    return received[:until]
        except BrokenOffError:
            self.lost += 1
            time.sleep(_RETRY_S)
        return received


@contextlib.contextmanager
def _answered(
    stack: LocalStack, method: str, path: str, user: SampleUser, body: object, headers: dict[str, str]
) -> Iterator[http.client.HTTPResponse]:
    request_headers = {
        "Authorization": f"Bearer {stack.token(user)}",
        "Content-Type": "application/json",
        **headers,
    }
    connection = http.client.HTTPConnection("127.0.0.1", stack.ports.http, timeout=SILENCE_S)
    with contextlib.closing(connection):
        connection.request(
            method, path, body=None if body is None else json.dumps(body), headers=request_headers
        )
        yield connection.getresponse()
