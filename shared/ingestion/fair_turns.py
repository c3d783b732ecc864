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

# Number of users whose last turn is remembered. Users with earlier turns count as new users.
_MOST_KNOWN = 1000


class NoPlaceFreeError(DependencyError):
    """Raised if all parser workers are busy with other files. The step is retried later and doesn't count as
    failed.
    """

    def __init__(self) -> None:
        super().__init__("All workers are busy with other files.", "This file is next.")


@dataclass(eq=False)
class Waiter:
    """A request that waits for its turn. Complete the future `granted` only in the event loop of the waiting
    task.
    """

    whose: str
    granted: asyncio.Future[None] | None = field(default=None, repr=False)


class FairOrder:
    """Queue that decides which user's request is next. The caller performs the work of each turn."""

    def __init__(self, most_of_one: int | None = None) -> None:
        """Create an empty queue. Each user may have at most `most_of_one` turns at the same time; None means
        no limit.
        """
        self._most_of_one = most_of_one
        self._waiting: list[Waiter] = []
        self._last: dict[str, int] = {}
        self._numbers = itertools.count(1)

    def add(self, waiter: Waiter) -> None:
        self._waiting.append(waiter)

    def remove(self, waiter: Waiter) -> None:
        """Remove a waiting request. Unknown requests are ignored."""
        if waiter in self._waiting:
            self._waiting.remove(waiter)

    def next(self, at_work: Collection[str]) -> Waiter | None:
        """Return the waiting request of the user who has waited longest since their last turn, or None if no
        user may have another turn now.

        Args:
            at_work: users who have a turn now; a user with several turns is listed several times.
        """
        counts = Counter(at_work) if self._most_of_one is not None else Counter[str]()
        may = [one for one in self._waiting if counts[one.whose] < (self._most_of_one or 1)]
        # New users count as having waited longest. Of equal requests, `min` returns the oldest.
        return min(may, key=lambda one: self._last.get(one.whose, 0), default=None)

    def start_turn(self, waiter: Waiter) -> None:
        """Remove a waiting request whose turn starts now, and record the turn for its user."""
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
        """Wait until the user `whose` gets a slot, and hold the slot until the block exits."""
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
            # The slot was granted before the cancellation arrived, so pass it on to the next waiter.
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
            self._order.start_turn(chosen)
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
        """Return whether a user already has as many steps in progress as one user may have. The limit is
        computed as if there were one more user, so that a new user finds a free place.
        """
        people = len(self._at_work.keys() | {whose})
        return self._at_work[whose] >= max(_LEAST_SHARE, self._places // (people + 1))

    @contextmanager
    def hold(self, whose: str) -> Iterator[None]:
        """Count a step of the user `whose` as in progress until the block exits.

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
        """If this user has several files in progress, wait up to one second while others have a question or a
        single file in progress.

        Receiving uploads loads this process more than parsing files does.
        """
        ends = self._clock() + _GIVE_WAY_S
        while True:
            has_many = self._at_work[whose] > 1
            if not (has_many and self.is_busy_for_others(whose)) or self._clock() >= ends:
                return
            await asyncio.sleep(_LOOK_S)

    def is_busy_for_others(self, whose: str) -> bool:
        """Return whether a question is in progress, or another user has exactly one step in progress."""
        if self._questions or self._clock() < self._question_until:
            return True
        return any(steps == 1 for other, steps in self._at_work.items() if other != whose)


# Number of concurrent steps that every user may have, even if the equal share is smaller.
_LEAST_SHARE = 2
# Maximum wait for other users. It is short, because questions arrive all the time and one user may upload 60
# files a minute.
_GIVE_WAY_S = 1.0
_LOOK_S = 0.02
# A question still counts as in progress for this long after a step, until the host starts the next one.
_BETWEEN_STEPS_S = 0.05
# Maximum number of concurrent ingestion steps. An instance runs 32 activities at once (host.json); the others
# are reserved for questions.
_PLACES = 12
SHARES = Shares(_PLACES)
# A request with fewer texts is too small to measure the speed of the service.
_WORTH_A_REQUEST = 16


class EmbeddingPace:
    """Adaptive number of texts per embedding request, based on the duration of earlier requests."""

    def __init__(
        self,
        smallest: int = 4,
        largest: int = 64,
        wanted_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set the limits on the number of texts per request, and the desired duration of a request. The
        default is short, because questions and other users' files have to wait for each request.
        """
        self._smallest = smallest
        self._largest = largest
        self._wanted_s = wanted_s
        self._clock = clock
        self.texts = largest

    @asynccontextmanager
    async def measure(self, texts: int) -> AsyncIterator[None]:
        """Measure how long the block takes to embed `texts` texts, and adapt the number of texts in later
        requests. A failed request counts as too slow.
        """
        # A small request may be slow because the service is busy or far away, so it never reduces the size of
        # later requests.
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
        # After a larger request, never go below 16: a distant service is also slow for few texts, and smaller
        # requests would only increase their number.
        least = self.texts if are_few else max(self._smallest, min(texts, _WORTH_A_REQUEST))
        self.texts = min(self._largest, max(least, min(fitting, 2 * max(texts, self.texts))))
