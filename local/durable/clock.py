"""The executor's clock, which tests replace to advance time."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol


class Timer(Protocol):
    """A scheduled callback."""

    def cancel(self) -> None:
        """Cancel the callback; no effect once it has run."""


class Clock(Protocol):
    """A source of time for timers and timestamps."""

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
