"""Turns that are shared out fairly: the next one goes to the person who had none for longest.

Ingestion takes turns at the embedding service: a question's request waits behind a few of them at most, and
nobody's large file holds back another person's small one.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from shared.platform.errors import GroundworkError

_MOST_KNOWN = 1000  # people; of those who had no turn for long it doesn't matter when


class FairTurns:
    """At most `places` at a time, in one process."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []
        self._last: dict[str, int] = {}
        self._numbers = itertools.count(1)

    @asynccontextmanager
    async def turn(self, whose: str) -> AsyncIterator[None]:
        """Wait for a turn; it ends with the block."""
        await self._wait(whose)
        try:
            yield
        finally:
            self._free += 1
            self._hand_on()

    async def _wait(self, whose: str) -> None:
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((whose, granted))
        self._hand_on()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():  # the turn came while its waiter was cancelled
                self._free += 1
                self._hand_on()
            else:
                self._waiting = [one for one in self._waiting if one[1] is not granted]
            raise

    def _hand_on(self) -> None:
        while self._free and self._waiting:
            # Of those who had their last turn equally long ago, the first to come.
            chosen = min(self._waiting, key=lambda one: self._last.get(one[0], 0))
            self._waiting.remove(chosen)
            whose, granted = chosen
            if granted.done():
                continue
            self._last.pop(whose, None)
            self._last[whose] = next(self._numbers)
            while len(self._last) > _MOST_KNOWN:
                del self._last[next(iter(self._last))]
            self._free -= 1
            granted.set_result(None)


class EmbeddingPace:
    """How many texts go into one request, by how long earlier ones took."""

    def __init__(
        self,
        smallest: int = 4,
        largest: int = 64,
        wanted_s: float = 3.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`wanted_s`: what a request may take; a question waits for no longer one."""
        self._smallest = smallest
        self._largest = largest
        self._wanted_s = wanted_s
        self._clock = clock
        self.texts = largest

    @asynccontextmanager
    async def measured(self, texts: int) -> AsyncIterator[None]:
        """Measure a request of so many texts; one that fails counts as too slow."""
        began = self._clock()
        try:
            yield
        except GroundworkError:
            self.texts = max(self._smallest, texts // 2)
            raise
        fitting = int(texts * self._wanted_s / max(self._clock() - began, 0.001))
        # At most twice as many as this time: a short text says little of long ones.
        self.texts = min(self._largest, max(self._smallest, min(fitting, 2 * max(texts, self.texts))))
