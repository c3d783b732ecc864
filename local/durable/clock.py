"""The clock of the executor, which tests replace to move time forward."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol


class Timer(Protocol):
    """A callback that has been scheduled."""

    def cancel(self) -> None:
        """Drop the callback; without effect once it has run."""


class Clock(Protocol):
    """Time as timers and timestamps see it."""

    def now(self) -> datetime:
        """Return the current time in UTC."""

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        """Schedule a callback in the running event loop."""


class SystemClock:
    """Wall-clock time."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay_s, callback)
