"""Work that is shared out fairly among people, in one process.

One person's many or large files never hold back another person's small one: the next turn goes to the
person who had none for longest, and one person's files never take all places.
"""

import asyncio
import itertools
import math
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from shared.platform.errors import DependencyError, GroundworkError

_MOST_KNOWN = 1000  # people; of those who had no turn for long it doesn't matter when


class NoPlaceFreeError(DependencyError):
    """All places are taken by other files. Nothing is wrong with this one, nor with a service."""

    def __init__(self) -> None:
        super().__init__("Other files are being read.", "This one comes next.")


@dataclass(eq=False)
class Waiter:
    """Someone's wait for one turn; `granted` is set where the waiter sleeps until then."""

    whose: str
    granted: asyncio.Future[None] | None = field(default=None, repr=False)


class FairOrder:
    """Who comes next. Decides only; the caller takes the turn, and keeps who has one."""

    def __init__(self, most_of_one: int | None = None) -> None:
        """`most_of_one`: turns that one person may have at the same time; None = all."""
        self._most_of_one = most_of_one
        self._waiting: list[Waiter] = []
        self._last: dict[str, int] = {}
        self._numbers = itertools.count(1)

    def add(self, waiter: Waiter) -> None:
        """Begin to wait."""
        self._waiting.append(waiter)

    def remove(self, waiter: Waiter) -> None:
        """Stop waiting."""
        if waiter in self._waiting:
            self._waiting.remove(waiter)

    def next(self, at_work: Collection[str]) -> Waiter | None:
        """The one whose turn it is; None if nobody waits who may have one.

        Args:
            at_work: people who have a turn now, each as often as they have one.
        """
        counts = Counter(at_work) if self._most_of_one is not None else Counter[str]()
        may = [one for one in self._waiting if counts[one.whose] < (self._most_of_one or 1)]
        # Of those who had their last turn equally long ago, the first to come.
        return min(may, key=lambda one: self._last.get(one.whose, 0), default=None)

    def took(self, waiter: Waiter) -> None:
        """Note that the waiter has its turn."""
        self.remove(waiter)
        self._last.pop(waiter.whose, None)
        self._last[waiter.whose] = next(self._numbers)
        while len(self._last) > _MOST_KNOWN:
            del self._last[next(iter(self._last))]


class FairTurns:
    """At most `places` at a time."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._order = FairOrder()

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
        waiter = Waiter(whose, granted)
        self._order.add(waiter)
        self._hand_on()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():  # the turn came while its waiter was cancelled
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
    """How many steps of ingestions are performed at once, shared out among people.

    Whose share is used up is sent away rather than made to wait: a step that waits takes the place of another
    person's step, and of a question. New files of somebody with several at work give way to short work.
    """

    def __init__(self, places: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._places = places
        self._clock = clock
        self._at_work: Counter[str] = Counter()
        self._let_in: dict[str, deque[float]] = {}
        self._deferred: Counter[str] = Counter()
        self._questions = 0
        self._question_until = -math.inf

    def is_full(self, whose: str) -> bool:
        """Whether a person has as many steps at work as they may."""
        return self._at_work[whose] >= self._share(whose)

    def _share(self, whose: str) -> int:
        """Steps that a person may have at work: one share is left for the next person."""
        people = len(self._at_work.keys() | {whose})
        return max(_LEAST_SHARE, self._places // (people + 1))

    @contextmanager
    def taken(self, whose: str) -> Iterator[None]:
        """Have a step at work for the time of the block.

        Raises:
            NoPlaceFreeError: the person's share is used up.
        """
        if self.is_full(whose):
            raise NoPlaceFreeError
        if coming := self._let_in.get(whose):
            coming.popleft()
        self._at_work[whose] += 1
        try:
            yield
        finally:
            self._at_work[whose] -= 1
            if not self._at_work[whose]:
                del self._at_work[whose]

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Work at a question for the time of the block."""
        self._questions += 1
        try:
            yield
        finally:
            self._questions -= 1
            self._question_until = self._clock() + _BETWEEN_STEPS_S

    async def give_way(self, whose: str) -> None:
        """Wait while others have short work here, if a person has several files at work; a moment at most.

        Receiving and starting files one after the other keeps this process busier than reading them.
        """
        ends = self._clock() + _GIVE_WAY_S
        while True:
            has_many = self._at_work[whose] > 1
            if not (has_many and self.is_busy_for_others(whose)) or self._clock() >= ends:
                return
            await asyncio.sleep(_LOOK_S)

    def is_busy_for_others(self, whose: str) -> bool:
        """Whether a question is being worked at, or the only file of somebody else."""
        if self._questions or self._clock() < self._question_until:
            return True
        return any(steps == 1 for other, steps in self._at_work.items() if other != whose)

    def admit(self, whose: str, *, is_new: bool) -> float:
        """Count a file that starts now; or return the seconds after which to ask again.

        Args:
            is_new: it was not deferred before. A new file of somebody with several at work also gives way to
                others' short work, once.
        """
        has_many = self._at_work[whose] > 1
        if not self.has_room(whose) or (is_new and has_many and self.is_busy_for_others(whose)):
            self._deferred[whose] += 1
            return min(
                max(_SHORTEST_DEFERRAL_S, self._deferred[whose] * _BETWEEN_LOOKS_S), _LONGEST_DEFERRAL_S
            )
        self._let_in.setdefault(whose, deque()).append(self._clock() + _ARRIVAL_S)
        return 0.0

    def note_return(self, whose: str) -> None:
        """Count a deferred file as back, before it asks again."""
        self._deferred[whose] -= 1
        if self._deferred[whose] <= 0:  # other processes defer, too, and their files may return here
            del self._deferred[whose]

    def has_room(self, whose: str) -> bool:
        """Whether the share has room, also when the files have come that were let in just now."""
        coming = self._let_in.get(whose, deque())
        while coming and coming[0] < self._clock():
            coming.popleft()
        if not coming:
            self._let_in.pop(whose, None)
        return self._at_work[whose] + len(coming) < self._share(whose)


_LEAST_SHARE = 2  # steps
_GIVE_WAY_S = 1.0  # an upload; no longer, as people ask all day: 60 files a minute is the default limit
_LOOK_S = 0.02
_BETWEEN_STEPS_S = 0.05  # from one step of a question to its next, which the host starts
# Deferred files of one person look for room twice a second together: a look costs a message and a call.
_BETWEEN_LOOKS_S = 0.5
_SHORTEST_DEFERRAL_S = 1.0  # a queue hides messages for whole seconds
_LONGEST_DEFERRAL_S = 300.0
_ARRIVAL_S = 2.0  # from the event of a file to its first long step; 0.3 s on an idle machine
_PLACES = 12  # of the 32 activities that an instance performs at once (host.json): the rest is for questions
SHARES = Shares(_PLACES)
_WORTH_A_REQUEST = 16  # texts


class EmbeddingPace:
    """How many texts go into one request, by how long earlier ones took."""

    def __init__(
        self,
        smallest: int = 4,
        largest: int = 64,
        wanted_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`wanted_s`: what a request should take, since questions and other people's files wait for it."""
        self._smallest = smallest
        self._largest = largest
        self._wanted_s = wanted_s
        self._clock = clock
        self.texts = largest

    @asynccontextmanager
    async def measured(self, texts: int) -> AsyncIterator[None]:
        """Measure a request; a failed one counts as too slow."""
        # Few texts may take long because the service is far away or busy: that says nothing about many.
        are_few = texts < min(self.texts, _WORTH_A_REQUEST)
        began = self._clock()
        try:
            yield
        except GroundworkError:
            if not are_few:
                self.texts = max(self._smallest, min(self.texts, texts // 2))
            raise
        fitting = int(texts * self._wanted_s / max(self._clock() - began, 0.001))
        # At most twice as many as this time: a short text says little about long ones. A service far away
        # takes its time for few texts, too: smaller requests would only be more of them.
        least = self.texts if are_few else max(self._smallest, min(texts, _WORTH_A_REQUEST))
        self.texts = min(self._largest, max(least, min(fitting, 2 * max(texts, self.texts))))
