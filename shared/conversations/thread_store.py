"""thread_store."""

# For annotations alone: the start of the app need not build every model.
from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

    from shared.conversations.models import Thread, ThreadPage, ThreadTurn


class ThreadStore(Protocol):
    """Threads and their turns. Each call is about one owner, and can reach nobody else's."""

    async def create(self, thread: Thread, turn: ThreadTurn | None = None) -> Thread:
        """Store a new thread, with its first turn if there is one. ConflictError when the id exists."""

    async def get(self, owner_id: str, thread_id: str) -> Thread | None:
        """The thread, also one that is being deleted; None if the owner has none of this id."""

    async def replace(self, old: Thread, new: Thread, turn: ThreadTurn | None = None) -> Thread:
        """Overwrite, if it is still as `old` was read; add a turn in the same step.

        ConflictError when it changed, NotFoundError when it is gone.
        """

    async def remove(self, thread: Thread) -> None:
        """Take away the row of a deleted thread; an absent one is no error."""

    async def page(self, owner_id: str, limit: int, cursor: str | None = None) -> ThreadPage:
        """The owner's threads, the one that was last asked in first. CallerError for a strange cursor."""

    async def turn(self, owner_id: str, thread_id: str, number: int) -> ThreadTurn | None: ...

    async def turns(
        self, owner_id: str, thread_id: str, limit: int, before: int | None = None
    ) -> list[ThreadTurn]:
        """The newest turns, or the newest before a number; newest first."""

    async def replace_turn(self, owner_id: str, turn: ThreadTurn) -> ThreadTurn:
        """Overwrite, if it is still as it was read; errors as `replace`."""

    async def remove_turn(self, owner_id: str, turn: ThreadTurn) -> None:
        """Take a turn's row away; an absent one is no error."""

    def unerased(self) -> AsyncIterator[Thread]:
        """Threads of everybody of which something is still to be erased. For maintenance alone."""

    async def forget_before(self, owner_id: str, moment: datetime) -> None:
        """Note that turns asked until `moment` are not to be remembered."""

    async def forgotten_until(self, owner_id: str) -> datetime | None: ...

    def of_owner(self, owner_id: str) -> AsyncIterator[Thread]:
        """Every thread of the owner, also those that are being deleted."""

    async def remove_owner(self, owner_id: str) -> None:
        """Take away every row of the owner that is left."""

    async def ensure_table(self) -> None: ...
