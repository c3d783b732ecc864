"""A `GroupDirectory` that remembers for a while, so that a person costs one question in some minutes.

Each process remembers by itself. What is refused or cannot be had is not remembered; that somebody is
unknown is, for seconds: otherwise a stranger could have us ask without end.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from shared.errors import NotFoundError
from shared.models.identity import DirectoryPerson
from shared.ports import GroupDirectory

UNKNOWN_KEPT_S = 15.0  # somebody who was just added to the directory tries again
MAX_GROUPS = 100_000  # ids in all, some 12 MB: 300 people with 300 groups each
MAX_PEOPLE = 10_000

Value = TypeVar("Value")
Clock = Callable[[], float]


@dataclass(frozen=True)
class _Kept(Generic[Value]):
    """What is known of a person until `until`; None = the directory has no such person."""

    value: Value | None
    until: float
    weight: int


class CachedDirectory(GroupDirectory):
    """Remembers what another directory says."""

    def __init__(self, directory: GroupDirectory, kept_s: float, clock: Clock = time.monotonic) -> None:
        """`kept_s` is also how long somebody who left a group keeps it; `clock` tells seconds."""
        self._directory = directory
        self._groups: _Answers[frozenset[str]] = _Answers(kept_s, MAX_GROUPS, clock)
        self._people: _Answers[DirectoryPerson] = _Answers(kept_s, MAX_PEOPLE, clock)

    async def groups_of(self, user_id: str) -> frozenset[str]:
        """As they were at most so many seconds ago."""
        return await self._groups.get(user_id, lambda: self._directory.groups_of(user_id), len)

    async def person(self, user_id: str) -> DirectoryPerson:
        """As it was at most so many seconds ago."""
        return await self._people.get(user_id, lambda: self._directory.person(user_id), lambda _: 1)


class _Answers(Generic[Value]):
    """Answers by person, the one that was used last at the end; together no heavier than `most`."""

    def __init__(self, kept_s: float, most: int, clock: Clock) -> None:
        self._kept_s = kept_s
        self._most = most
        self._clock = clock
        self._kept: OrderedDict[str, _Kept[Value]] = OrderedDict()
        self._weight = 0
        self._asking: dict[str, asyncio.Task[Value | None]] = {}

    async def get(
        self, user_id: str, ask: Callable[[], Awaitable[Value]], weigh: Callable[[Value], int]
    ) -> Value:
        """What is remembered, else what `ask` answers now; callers of the same time share its answer."""
        kept = self._kept.get(user_id)
        if kept is not None and self._clock() < kept.until:
            self._kept.move_to_end(user_id)
            value = kept.value
        else:
            value = await self._shared(user_id, ask, weigh)
        if value is None:
            raise NotFoundError("The directory knows no such person.")
        return value

    async def _shared(
        self, user_id: str, ask: Callable[[], Awaitable[Value]], weigh: Callable[[Value], int]
    ) -> Value | None:
        asking = self._asking.get(user_id)
        if asking is None:
            asking = asyncio.create_task(self._asked(user_id, ask, weigh))
            self._asking[user_id] = asking
            asking.add_done_callback(lambda done: self._answered(user_id, done))
        # A caller who goes away takes the question from none of the others.
        return await asyncio.shield(asking)

    async def _asked(
        self, user_id: str, ask: Callable[[], Awaitable[Value]], weigh: Callable[[Value], int]
    ) -> Value | None:
        began = self._clock()
        try:
            value = await ask()
        except NotFoundError:
            self._keep(user_id, _Kept(None, began + min(UNKNOWN_KEPT_S, self._kept_s), 1))
            return None
        self._keep(user_id, _Kept(value, began + self._kept_s, 1 + weigh(value)))
        return value

    def _answered(self, user_id: str, done: asyncio.Task[Value | None]) -> None:
        self._asking.pop(user_id, None)
        if not done.cancelled():
            done.exception()  # looked at: its callers may all have gone

    def _keep(self, user_id: str, kept: _Kept[Value]) -> None:
        before = self._kept.pop(user_id, None)
        self._weight += kept.weight - (before.weight if before else 0)
        self._kept[user_id] = kept
        while self._weight > self._most and self._kept:
            _, oldest = self._kept.popitem(last=False)
            self._weight -= oldest.weight
