"""Streams the events of a run, each exactly once, and reconnects after a lost connection."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx

from cli.api import Api, Event, segment
from cli.commands import program_name
from cli.errors import CommandError

ENDS = ("complete", "error")
_GIVE_UP_S = 90.0  # give up after this time without an event or stable connection; a host restarts faster
_SETTLED_S = 10.0  # a connection of this age, longer than the connect timeout, is stable
_PAUSES_S = (0.1, 0.5, 1.0, 2.0)  # pauses before reconnecting; the last one repeats
_BROKEN = 500  # the app may respond with server errors while it starts
_FIRST_TRIES = 5  # number of attempts to start a run; the idempotency key makes repeats safe


class RunStream:
    """A resumable stream of a new or existing run.

    Args:
        body: body of POST /chat, or None to follow `run_id`.
        key: an Idempotency-Key, so that a repeated start creates only one run.
        on_trouble: called with a message when the connection breaks and when it is restored.

    Attributes:
        run_id: "" until the app has announced it.
        last: number of the last event.
    """

    def __init__(
        self,
        api: Api,
        body: dict[str, Any] | None = None,
        *,
        key: str = "",
        run_id: str = "",
        last: int = 0,
        on_trouble: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self.run_id = run_id
        self.last = last
        self._api = api
        self._body = body
        self._key = key
        self._on_trouble = on_trouble
        self._lost = 0
        self._has_ended = False
        self._lived_at = time.monotonic()

    def __iter__(self) -> Iterator[Event]:
        """Yield every event once, until the run ends.

        Raises:
            CommandError: the question was refused, or the connection can't be restored.
        """
        while not self._has_ended:
            try:
                yield from self._connection()
            except httpx.TransportError as failed:
                self._wait(failed)
            except CommandError as failed:
                if not self.run_id or (failed.status or 0) < _BROKEN:
                    raise
                self._wait(failed)
            else:
                if not self._has_ended:  # the server ends long streams early; the client then resumes them
                    self._check_time(None)
                    time.sleep(_PAUSES_S[0])

    def _connection(self) -> Iterator[Event]:
        if self.run_id:
            events = self._api.events("GET", f"/runs/{segment(self.run_id)}/events", after=self.last)
        else:
            events = self._api.events("POST", "/chat", body=self._body, key=self._key)
        started = time.monotonic()
        try:
            for headers, event in events:
                self.run_id = self.run_id or headers.get("x-run-id", "")
                if event is None:
                    continue
                self._is_alive()
                if event.number <= self.last:
                    continue
                self.last = event.number
                yield event
                if event.name in ENDS:
                    self._has_ended = True
                    return
        finally:
            if time.monotonic() - started > _SETTLED_S:
                self._lived_at = time.monotonic()

    def _is_alive(self) -> None:
        if self._lost:
            self._on_trouble(f"Connected again; continuing after event {self.last}.")
        self._lost, self._lived_at = 0, time.monotonic()

    def _wait(self, failed: Exception) -> None:
        if self._lost == 0:
            self._on_trouble("The connection broke; trying again.")
        if not self.run_id and (isinstance(failed, httpx.ConnectError) or self._lost >= _FIRST_TRIES):
            raise self._api.unreachable(failed) if isinstance(failed, httpx.HTTPError) else failed
        time.sleep(_PAUSES_S[min(self._lost, len(_PAUSES_S) - 1)])
        self._lost += 1
        self._check_time(failed)

    def _check_time(self, failed: Exception | None) -> None:
        if time.monotonic() - self._lived_at > _GIVE_UP_S:
            why = f" ({type(failed).__name__})" if failed else ""
            raise CommandError(
                f"The connection was lost{why}.",
                f"The run continues: `{program_name()} runs show {self.run_id}` shows its state.",
            )
