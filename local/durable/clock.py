"""Interface of the executor's clock. Tests use an implementation that they can advance."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol


class Timer(Protocol):
    """A scheduled callback that can be cancelled."""

    def cancel(self) -> None:
        """Cancel the callback. This has no effect after it has run."""


class Clock(Protocol):
    """A source of time, for timestamps and timers."""

    def now(self) -> datetime:
        """Return the current time in UTC."""

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        """Schedule a callback on the running event loop and return its timer."""


class SystemClock:
    """The clock of the operating system and the running event loop."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay_s, callback)
