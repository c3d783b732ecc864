"""A concurrency limit per person for expensive work, in one process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from shared.platform.errors import TooManyRequestsError

# Retry time suggested to the caller. Such work usually takes tenths of a second.
_RETRY_AFTER_S = 2.0


@dataclass(eq=False)
class _Person:
    """A person's semaphore, and the number of calls that hold it or wait for it."""

    free: asyncio.Semaphore
    calls: int = 0


class PersonalPlaces:
    """A concurrency limit per person. Excess calls wait; if too many are waiting, further calls are
    refused.
    """

    def __init__(self, places: int, max_waiting: int) -> None:
        """Allow each person `places` concurrent calls, with up to `max_waiting` more waiting."""
        self._places = places
        self._max_calls = places + max_waiting
        self._people: dict[str, _Person] = {}

    @asynccontextmanager
    async def take(self, user_id: str) -> AsyncIterator[None]:
        """Hold one of the person's places until the context exits. Entering waits for a free place.

        Raises:
            TooManyRequestsError: `max_waiting` calls of this person are already waiting.
        """
        person = self._people.setdefault(user_id, _Person(asyncio.Semaphore(self._places)))
        if person.calls >= self._max_calls:
            raise TooManyRequestsError(
                "Too many of your requests of this kind are waiting.",
                "Wait until some of them have been answered.",
                retry_after_s=_RETRY_AFTER_S,
            )
        person.calls += 1
        try:
            async with person.free:
                yield
        finally:
            person.calls -= 1
            if not person.calls:
                del self._people[user_id]
