"""A clock that tests can advance."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from local.durable.clock import Clock, Timer


class MovingClock(Clock):
    """A clock that shows real time plus the time that tests have added, so that timestamps keep the order of
    events.
    """

    def __init__(self) -> None:
        self._skew = timedelta()
        self._waiting: list[tuple[datetime, asyncio.TimerHandle, Callable[[], None]]] = []

    def now(self) -> datetime:
        return datetime.now(UTC) + self._skew

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        handle = asyncio.get_running_loop().call_later(delay_s, callback)
        self._waiting.append((self.now() + timedelta(seconds=delay_s), handle, callback))
        return handle

    def advance(self, seconds: float) -> None:
        """Advance the clock, and run every callback that becomes due."""
        self._skew += timedelta(seconds=seconds)
        now = self.now()
        due = [entry for entry in self._waiting if entry[0] <= now]
        self._waiting = [entry for entry in self._waiting if entry[0] > now]
        for _, handle, callback in due:
            if not handle.cancelled() and handle.when() > asyncio.get_running_loop().time():
                handle.cancel()
                callback()
