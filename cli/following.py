"""A run's events, each once, over as many connections as it takes."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx

from cli.api import Api, Event, segment
from cli.commands import program_name
from cli.errors import CommandError

ENDS = ("complete", "error")
_GIVE_UP_S = 90.0  # without an event or a lasting connection: a host that restarts needs less
_SETTLED_S = 10.0  # longer than connecting may take, so what lasted this long was a connection
_PAUSES_S = (0.1, 0.5, 1.0, 2.0)  # the last one again and again
_BROKEN = 500  # from here on it is the server's fault, and may pass: it is just being started
_FIRST_TRIES = 5  # a start that broke off may have begun the run: its key makes it the same one


class RunStream:
    """Follows one run from its beginning, or one that is there already.

    Args:
        body: of POST /chat; None follows `run_id`.
        key: an Idempotency-Key, by which a start that is repeated asks once.
        on_trouble: called with a message when the connection broke and when it is back.

    Attributes:
        run_id: "" until the app has said it.
        last: the number of the last event.
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
        self._lived_at = time.monotonic()

    def __iter__(self) -> Iterator[Event]:
        """Every event once, to the run's last.

        Raises:
            CommandError: the question was refused, or the connection is lost for good.
        """
        while True:
            try:
                yield from self._connection()
            except httpx.TransportError as failed:
                self._wait(failed)
            except CommandError as failed:
                if not self.run_id or (failed.status or 0) < _BROKEN:
                    raise
                self._wait(failed)
            else:
                if self._lost < 0:
                    return
                self._check_time(None)  # ended on purpose, to be resumed

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
                    self._lost = -1
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
                f"The run continues: `{program_name()} runs show {self.run_id}` shows what became of it.",
            )
