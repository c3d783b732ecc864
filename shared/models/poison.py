"""Messages that were given up: which file or thread each is about, and nothing else of what it says."""

from datetime import datetime

from shared.models.base import Model


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
