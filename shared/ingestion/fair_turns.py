"""Fair scheduling of ingestion work between users, within one process.

A user's many or large files never delay another user's small file: the next turn goes to the user who has
waited longest since their last turn, and the files of one user never occupy all places.
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

_MOST_KNOWN = 1000  # remembered users; users with older turns count as new


class NoPlaceFreeError(DependencyError):
    """All parser workers are busy with other files. The step should be retried later: nothing has failed."""

    def __init__(self) -> None:
        super().__init__("All workers are busy with other files.", "This file is next.")


@dataclass(eq=False)
class Waiter:
    """A place in the queue for one turn. `granted` must be set in the waiter's event loop."""

    whose: str
    granted: asyncio.Future[None] | None = field(default=None, repr=False)


class FairOrder:
    """Waiting list that decides whose turn is next. The caller runs the turns and keeps track of them."""

    def __init__(self, most_of_one: int | None = None) -> None:
        """Limit each user to `most_of_one` concurrent turns; None = no limit."""
        self._most_of_one = most_of_one
        self._waiting: list[Waiter] = []
        self._last: dict[str, int] = {}
        self._numbers = itertools.count(1)

    def add(self, waiter: Waiter) -> None:
        self._waiting.append(waiter)

    def remove(self, waiter: Waiter) -> None:
        """Remove a waiter. Unknown waiters are ignored."""
        if waiter in self._waiting:
            self._waiting.remove(waiter)

    def next(self, at_work: Collection[str]) -> Waiter | None:
        """Return the waiter whose user has waited longest since their last turn. Return None if nobody may
        have a turn.

        Args:
            at_work: users who have a turn now; a user with several turns is listed several times.
        """
        counts = Counter(at_work) if self._most_of_one is not None else Counter[str]()
        may = [one for one in self._waiting if counts[one.whose] < (self._most_of_one or 1)]
        # `min` returns the first of equal waiters.
        return min(may, key=lambda one: self._last.get(one.whose, 0), default=None)

    def took(self, waiter: Waiter) -> None:
        """Record that the waiter got its turn, and remove it from the waiting list."""
        self.remove(waiter)
        self._last.pop(waiter.whose, None)
        self._last[waiter.whose] = next(self._numbers)
        while len(self._last) > _MOST_KNOWN:
            del self._last[next(iter(self._last))]


class FairTurns:
    """Semaphore with `places` slots that are shared fairly between users."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._order = FairOrder()

    @asynccontextmanager
    async def turn(self, whose: str) -> AsyncIterator[None]:
        """Wait for a slot, and hold it until the block exits."""
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
            # the slot was granted before the cancellation arrived
            if granted.done() and not granted.cancelled():
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
    """Limits on concurrent ingestion steps per user.

    Steps beyond the limit are rejected rather than queued, because a waiting step would occupy a place that
    another user's step or question needs. Users with several files in progress also upload more slowly
    while others have short work.
    """

    def __init__(self, places: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._places = places
        self._clock = clock
        self._at_work: Counter[str] = Counter()
        self._questions = 0
        self._question_until = -math.inf

    def is_full(self, whose: str) -> bool:
        """Return whether a user has as many steps in progress as their share allows. One share stays free for
        a new user.
        """
        people = len(self._at_work.keys() | {whose})
        return self._at_work[whose] >= max(_LEAST_SHARE, self._places // (people + 1))

    @contextmanager
    def taken(self, whose: str) -> Iterator[None]:
        """Count a step of this user as in progress until the block exits.

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
        """Count a question as in progress until the block exits."""
        self._questions += 1
        try:
            yield
        finally:
            self._questions -= 1
            self._question_until = self._clock() + _BETWEEN_STEPS_S

    async def give_way(self, whose: str) -> None:
        """If the user has several files in progress, wait up to one second for other users' questions and
        single files.

        Receiving uploads loads this process more than parsing files does.
        """
        ends = self._clock() + _GIVE_WAY_S
        while True:
            has_many = self._at_work[whose] > 1
            if not (has_many and self.is_busy_for_others(whose)) or self._clock() >= ends:
                return
            await asyncio.sleep(_LOOK_S)

    def is_busy_for_others(self, whose: str) -> bool:
        """Return whether a question is in progress, or a file of another user who has only one."""
        if self._questions or self._clock() < self._question_until:
            return True
        return any(steps == 1 for other, steps in self._at_work.items() if other != whose)


_LEAST_SHARE = 2  # minimum number of concurrent steps per user
_GIVE_WAY_S = 1.0  # short, because questions arrive all the time and users may upload 60 files a minute
_LOOK_S = 0.02
_BETWEEN_STEPS_S = 0.05  # pause between two steps of a question, during which the host starts the next one
_PLACES = 12  # of the 32 activities that an instance runs at once (host.json); questions use the others
SHARES = Shares(_PLACES)
_WORTH_A_REQUEST = 16  # number of texts from which the duration of a request is informative


class EmbeddingPace:
    """Number of texts per embedding request, adapted to the duration of earlier requests."""

    def __init__(
        self,
        smallest: int = 4,
        largest: int = 64,
        wanted_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Adapt requests to take about `wanted_s` seconds, because questions and other users' files wait for
        them.
        """
        self._smallest = smallest
        self._largest = largest
        self._wanted_s = wanted_s
        self._clock = clock
        self.texts = largest

    @asynccontextmanager
    async def measured(self, texts: int) -> AsyncIterator[None]:
        """Measure the duration of the block, which sends `texts` texts, and adapt the size of later requests.
        A failed request counts as too slow.
        """
        # A small request can be slow because the service is busy or far away, so it doesn't reduce the size.
        are_few = texts < min(self.texts, _WORTH_A_REQUEST)
        began = self._clock()
        try:
            yield
        except GroundworkError:
            if not are_few:
                self.texts = max(self._smallest, min(self.texts, texts // 2))
            raise
        fitting = int(texts * self._wanted_s / max(self._clock() - began, 0.001))
        # At most double the size, because a request with short texts says little about one with long texts.
        # Never go below 16 after a larger request: a distant service is slow for few texts, too, and smaller
        # requests would only increase their number.
        least = self.texts if are_few else max(self._smallest, min(texts, _WORTH_A_REQUEST))
        self.texts = min(self._largest, max(least, min(fitting, 2 * max(texts, self.texts))))
