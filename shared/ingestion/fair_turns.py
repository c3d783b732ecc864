"""Fair scheduling among users, within one process.

One user's many or large files never delay another user's small one: the next turn goes to the user who has
waited longest since their last turn, and one user's files never occupy all places.
"""

import asyncio
import itertools
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from shared.platform.errors import DependencyError, GroundworkError

_MOST_KNOWN = 1000  # users; the time of very old turns doesn't matter


class NoPlaceFreeError(DependencyError):
    """All places are occupied by other files. Neither this file nor a service has failed."""

    def __init__(self) -> None:
        super().__init__("Other files are being read.", "This one comes next.")


@dataclass(eq=False)
class Waiter:
    """A wait for one turn; `granted` is set in the waiter's event loop."""

    whose: str
    granted: asyncio.Future[None] | None = field(default=None, repr=False)


class FairOrder:
    """The order of turns. It only decides; the caller takes turns and tracks them."""

    def __init__(self, most_of_one: int | None = None) -> None:
        """Limit each user to `most_of_one` concurrent turns; None = no limit."""
        self._most_of_one = most_of_one
        self._waiting: list[Waiter] = []
        self._last: dict[str, int] = {}
        self._numbers = itertools.count(1)

    def add(self, waiter: Waiter) -> None:
        """Add a waiter."""
        self._waiting.append(waiter)

    def remove(self, waiter: Waiter) -> None:
        """Remove a waiter."""
        if waiter in self._waiting:
            self._waiting.remove(waiter)

    def next(self, at_work: Collection[str]) -> Waiter | None:
        """Return the next waiter; None if no waiter may have a turn.

        Args:
            at_work: users with a turn, once per turn.
        """
        counts = Counter(at_work) if self._most_of_one is not None else Counter[str]()
        may = [one for one in self._waiting if counts[one.whose] < (self._most_of_one or 1)]
        # Ties go to the first waiter.
        return min(may, key=lambda one: self._last.get(one.whose, 0), default=None)

    def took(self, waiter: Waiter) -> None:
        """Record that the waiter got its turn."""
        self.remove(waiter)
        self._last.pop(waiter.whose, None)
        self._last[waiter.whose] = next(self._numbers)
        while len(self._last) > _MOST_KNOWN:
            del self._last[next(iter(self._last))]


class FairTurns:
    """A fair semaphore with `places` turns."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._order = FairOrder()

    @asynccontextmanager
    async def turn(self, whose: str) -> AsyncIterator[None]:
        """Wait for a turn, which ends with the block."""
        await self._wait(whose)
        try:
            yield
        finally:
            self._free += 1
            self._hand_on()

    async def _wait(self, whose: str) -> None:
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiter = Waiter(whose, granted)
        self._order.add(waiter)
        self._hand_on()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():  # granted while its waiter was cancelled
                self._free += 1
                self._hand_on()
            else:
                self._order.remove(waiter)
            raise

    def _hand_on(self) -> None:
        while self._free and (chosen := self._order.next(())) is not None:
            if chosen.granted is None or chosen.granted.done():
                self._order.remove(chosen)
                continue
            self._order.took(chosen)
            self._free -= 1
            chosen.granted.set_result(None)


class Shares:
    """Shares of concurrent ingestion steps by user.

    Steps beyond a share are rejected rather than queued, because a waiting step occupies the place of another
    user's step or question. Uploads of a user with several files in progress yield to short work.
    """

    def __init__(self, places: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._places = places
        self._clock = clock
        self._at_work: Counter[str] = Counter()
        self._questions = 0
        self._question_until = -math.inf

    def is_full(self, whose: str) -> bool:
        """Return whether a user's share is used up; one share is reserved for the next user."""
        people = len(self._at_work.keys() | {whose})
        return self._at_work[whose] >= max(_LEAST_SHARE, self._places // (people + 1))

    @contextmanager
    def taken(self, whose: str) -> Iterator[None]:
        """Occupy a step for the duration of the block.

        Raises:
            NoPlaceFreeError: the user's share is used up.
        """
        if self.is_full(whose):
            raise NoPlaceFreeError
        self._at_work[whose] += 1
        try:
            yield
        finally:
            self._at_work[whose] -= 1
            if not self._at_work[whose]:
                del self._at_work[whose]

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Count a question as in progress for the duration of the block."""
        self._questions += 1
        try:
            yield
        finally:
            self._questions -= 1
            self._question_until = self._clock() + _BETWEEN_STEPS_S

    async def give_way(self, whose: str) -> None:
        """Wait briefly for other users' short work if a user has several files in progress.

        Receiving files keeps this process busier than reading them.
        """
        ends = self._clock() + _GIVE_WAY_S
        while True:
            has_many = self._at_work[whose] > 1
            if not (has_many and self.is_busy_for_others(whose)) or self._clock() >= ends:
                return
            await asyncio.sleep(_LOOK_S)

    def is_busy_for_others(self, whose: str) -> bool:
        """Return whether a question, or another user's only file, is in progress."""
        if self._questions or self._clock() < self._question_until:
            return True
        return any(steps == 1 for other, steps in self._at_work.items() if other != whose)


_LEAST_SHARE = 2  # steps
_GIVE_WAY_S = 1.0  # per upload; short, because questions never stop and 60 files a minute are allowed
_LOOK_S = 0.02
_BETWEEN_STEPS_S = 0.05  # between two steps of a question, started by the host
_PLACES = 12  # of the 32 activities that an instance performs at once (host.json): the rest is for questions
SHARES = Shares(_PLACES)
_WORTH_A_REQUEST = 16  # texts


class EmbeddingPace:
    """The number of texts per request, adapted to the duration of earlier requests."""

    def __init__(
        self,
        smallest: int = 4,
        largest: int = 64,
        wanted_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Aim at `wanted_s` per request, because questions and other users' files wait for it."""
        self._smallest = smallest
        self._largest = largest
        self._wanted_s = wanted_s
        self._clock = clock
        self.texts = largest

    @asynccontextmanager
    async def measured(self, texts: int) -> AsyncIterator[None]:
        """Measure a request; a failed one counts as too slow."""
        # A few texts may be slow because the service is far away or busy, which says nothing about many.
        are_few = texts < min(self.texts, _WORTH_A_REQUEST)
        began = self._clock()
        try:
            yield
        except GroundworkError:
            if not are_few:
                self.texts = max(self._smallest, min(self.texts, texts // 2))
            raise
        fitting = int(texts * self._wanted_s / max(self._clock() - began, 0.001))
        # At most double: short texts say little about long ones. A distant service
        # is slow for few texts too, and smaller requests would only increase their number.
        least = self.texts if are_few else max(self._smallest, min(texts, _WORTH_A_REQUEST))
        self.texts = min(self._largest, max(least, min(fitting, 2 * max(texts, self.texts))))
