"""queues."""

# For annotations alone: the start of the app need not build every model.
from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from shared.platform.models import Model


class PoisonMessage(Model):
    """One message of a poison queue.

    Attributes:
        blob_name: of the documents container; None when the message is in no form that is known.
        function: that gave up on it, where the message tells.
        thread_id: of a turn that could not be remembered, or a thread that could not be erased.
    """

    queue: str
    message_id: str
    inserted_at: datetime | None
    dequeue_count: int
    blob_name: str | None = None
    function: str | None = None
    thread_id: str | None = None


class PoisonList(Model):
    """Answer of GET /api/maintenance/poison: the oldest 32 of each queue."""

    messages: tuple[PoisonMessage, ...]
    count: int


class PoisonQueues(Protocol):
    """Where events end that were tried in vain."""

    async def peek(self) -> list[PoisonMessage]:
        """The oldest messages of each queue; they stay there."""

    async def remove_of(self, owner_id: str) -> int:
        """Remove messages about a person's threads and turns; how many. The others hide for half a minute."""


class TaskQueues(Protocol):
    """Queues whose messages call functions of the app."""

    async def send(self, queue: str, message: str, delay_s: float = 0.0) -> None:
        """Put a message on a queue; it is seen after `delay_s`. NotFoundError when there is no queue."""

    async def ensure_queues(self, queues: Sequence[str]) -> None:
        """Create those that are missing."""
