"""Queues that trigger functions of the app, and the poison queues of messages that failed every attempt."""

# Annotations stay text, so that their types need not be imported at start.
from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from azure.core.exceptions import ResourceExistsError
from pydantic import Field

from shared.platform.calls import QUEUES, STORAGE_LIMITS, calling
from shared.platform.connections import Connection
from shared.platform.errors import NotFoundError
from shared.platform.models import Model
from shared.platform.names import DOCUMENTS, POISON_QUEUES

if TYPE_CHECKING:
    from azure.storage.queue.aio import QueueServiceClient


class PoisonMessage(Model):
    """One message of a poison queue.

    Attributes:
        blob_name: in the documents container; None if the message has an unknown form.
        function: the function that gave up, if the message names it.
        thread_id: of a turn that could not be remembered, or of a thread that could not be erased.
    """

    queue: str = Field(description="Source queue.")
    message_id: str = Field(description="Message id.")
    inserted_at: datetime | None = Field(description="When it was sent.")
    dequeue_count: int = Field(description="Number of attempts.")
    blob_name: str | None = None
    function: str | None = None
    thread_id: str | None = None


class PoisonList(Model):
    """Response of GET /api/maintenance/poison: the oldest 32 messages of each queue."""

    messages: tuple[PoisonMessage, ...] = Field(description="Messages that failed every attempt.")
    count: int = Field(description="Number of messages.")


NEVER = -1  # as `time_to_live`: messages must survive any outage of the app


class _Queues:
    """Queues of the storage account that holds the documents."""

    def __init__(
        self, connection: Connection[QueueServiceClient], *, timeout_s: float = STORAGE_LIMITS.call_s
    ) -> None:
        self._connection = connection
        self._timeout_s = timeout_s

    def _call(self, operation: str = "call") -> AbstractAsyncContextManager[QueueServiceClient]:
        return calling(self._connection, QUEUES, timeout_s=self._timeout_s, operation=operation)


class TaskQueues(_Queues):
    """Queues whose messages trigger functions of the app."""

    async def send(self, queue: str, message: str, delay_s: float = 0.0) -> None:
        """Send a message that becomes visible after `delay_s`. A missing queue is created."""
        try:
            await self._send(queue, message, delay_s)
        except NotFoundError:  # a new deployment's first event may arrive before the queue exists
            await self.ensure_queues([queue])
            await self._send(queue, message, delay_s)

    async def _send(self, queue: str, message: str, delay_s: float) -> None:
        content = base64.b64encode(message.encode()).decode()
        async with self._call("send") as client:
            await client.get_queue_client(queue).send_message(
                content, visibility_timeout=round(delay_s), time_to_live=NEVER
            )

    async def ensure_queues(self, queues: Sequence[str]) -> None:
        """Create the missing queues."""
        for queue in queues:
            async with self._call() as client:
                # Raised with status 204 if the queue exists, as on every later start.
                with suppress(ResourceExistsError):
                    await client.create_queue(queue)


_PEEKED = 32  # the service's maximum
_MOST = 10_000  # of one queue, after a long outage; the next pass looks at the rest
_HIDDEN_S = 30  # while they are read, a few milliseconds each
_SUBJECT_START = f"/blobServices/default/containers/{DOCUMENTS}/blobs/"


class PoisonQueues(_Queues):
    """Queues of messages that failed every attempt."""

    async def peek(self) -> list[PoisonMessage]:
        """Return the oldest messages of each queue without removing them. A missing queue has none."""
        messages: list[PoisonMessage] = []
        for queue in POISON_QUEUES:
            try:
                async with self._call() as client:
                    peeked = await client.get_queue_client(queue).peek_messages(_PEEKED)
            except NotFoundError:
                continue
            messages.extend(_message(queue, message) for message in peeked)
        return messages

    async def remove_of(self, owner_id: str) -> int:
        """Delete messages about a person's threads and turns and return their number. Others stay hidden for
        30 s.
        """
        return sum([await self._remove_of(owner_id, queue) for queue in POISON_QUEUES])

    async def _remove_of(self, owner_id: str, queue: str) -> int:
        removed = 0
        try:
            for _ in range(_MOST // _PEEKED):
                async with self._call() as service:
                    client = service.get_queue_client(queue)
                    batch = client.receive_messages(max_messages=_PEEKED, visibility_timeout=_HIDDEN_S)
                    messages = [message async for message in batch]
                    theirs = [message for message in messages if _owner_of(message) == owner_id]
                    for message in theirs:
                        await client.delete_message(message)
                removed += len(theirs)
                if not messages:
                    break
        except NotFoundError:
            return removed
        return removed


def _owner_of(message: Any) -> object:
    return (read_object(str(message.content)) or {}).get("owner_id")


def _message(queue: str, message: Any) -> PoisonMessage:
    content = read_object(str(message.content)) or {}
    return PoisonMessage(
        queue=queue,
        message_id=message.id,
        inserted_at=message.inserted_on,
        dequeue_count=message.dequeue_count or 0,
        blob_name=_blob_name(content),
        function=str(content["FunctionId"]) if "FunctionId" in content else None,
        thread_id=str(content["thread_id"]) if "thread_id" in content else None,
    )


def read_object(body: str | bytes) -> Mapping[str, Any] | None:
    """Parse a message as a JSON object, possibly in base64; None if it is something else."""
    with suppress(ValueError):
        body = base64.b64decode(body, validate=True)
    try:
        content = json.loads(body)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def blob_of_event(event: Mapping[str, Any]) -> str | None:
    """Return the document or sidecar that an Event Grid event names; None for other containers."""
    subject = str(event.get("subject", ""))
    return subject.removeprefix(_SUBJECT_START) if subject.startswith(_SUBJECT_START) else None


def _blob_name(content: Mapping[str, Any]) -> str | None:
    """Extract the blob name from a blob trigger's message or an Event Grid event."""
    if content.get("ContainerName") == DOCUMENTS and "BlobName" in content:
        return str(content["BlobName"])
    return blob_of_event(content)
