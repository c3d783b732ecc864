"""Storage queues that trigger functions, and poison queues of messages that failed every attempt."""

# Annotations remain strings, so that the SDK's types are not imported at startup.
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
    """Message in a poison queue, which failed every attempt.

    Attributes:
        blob_name: name of the blob in the documents container, if the message is about one.
        function: name of the function that failed, if the message contains it.
        thread_id: id of a thread whose last turn could not be stored or which could not be erased.
    """

    queue: str = Field(description="Name of the poison queue.")
    message_id: str = Field(description="Message id.")
    inserted_at: datetime | None = Field(description="Time when the message was added to the queue.")
    dequeue_count: int = Field(description="Number of attempts.")
    blob_name: str | None = None
    function: str | None = None
    thread_id: str | None = None


class PoisonList(Model):
    """Response of GET /api/maintenance/poison: up to 32 of the oldest messages of each poison queue."""

    messages: tuple[PoisonMessage, ...] = Field(description="Messages that failed every attempt.")
    count: int = Field(description="Number of messages.")


NEVER = -1  # value for `time_to_live`: messages never expire, so that they survive any outage of the app


class _Queues:
    """Base class of clients for the storage account's queues."""

    def __init__(
        self, connection: Connection[QueueServiceClient], *, timeout_s: float = STORAGE_LIMITS.call_s
    ) -> None:
        self._connection = connection
        self._timeout_s = timeout_s

    def _call(self, operation: str = "call") -> AbstractAsyncContextManager[QueueServiceClient]:
        return calling(self._connection, QUEUES, timeout_s=self._timeout_s, operation=operation)


class TaskQueues(_Queues):
    """Client that sends messages to the queues that trigger functions."""

    async def send(self, queue: str, message: str, delay_s: float = 0.0) -> None:
        """Send a message that becomes visible after `delay_s` seconds. A missing queue is created."""
        try:
            await self._send(queue, message, delay_s)
        except NotFoundError:  # the first event of a new deployment may arrive before the queue exists
            await self.ensure_queues([queue])
            await self._send(queue, message, delay_s)

    async def _send(self, queue: str, message: str, delay_s: float) -> None:
        content = base64.b64encode(message.encode()).decode()
        async with self._call("send") as client:
            await client.get_queue_client(queue).send_message(
                content, visibility_timeout=round(delay_s), time_to_live=NEVER
            )

    async def ensure_queues(self, queues: Sequence[str]) -> None:
        """Create the queues that don't exist yet."""
        for queue in queues:
            async with self._call() as client:
                # If the queue already exists, the SDK raises this error, although the status is 204.
                with suppress(ResourceExistsError):
                    await client.create_queue(queue)


_PEEKED = 32  # the service returns at most 32 messages per request
_MOST = 10_000  # maximum number of messages read per queue and pass; the next pass reads the rest
_HIDDEN_S = 30  # long enough to search a whole queue, so that no message is received twice
_SUBJECT_START = f"/blobServices/default/containers/{DOCUMENTS}/blobs/"


class PoisonQueues(_Queues):
    """Client that reads and cleans up the poison queues."""

    async def peek(self) -> list[PoisonMessage]:
        """Return up to 32 of the oldest messages of each poison queue without removing them. Missing queues
        are skipped.
        """
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
        """Delete a user's messages from the poison queues and return their number. Messages of other users
        are invisible for the next 30 s.
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
    """Parse a queue message, plain or base64, as a JSON object. Return None if it isn't one."""
    with suppress(ValueError):
        body = base64.b64decode(body, validate=True)
    try:
        content = json.loads(body)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def blob_of_event(event: Mapping[str, Any]) -> str | None:
    """Return the name of the blob in an Event Grid event. Return None if it isn't in the documents
    container.
    """
    subject = str(event.get("subject", ""))
    return subject.removeprefix(_SUBJECT_START) if subject.startswith(_SUBJECT_START) else None


def _blob_name(content: Mapping[str, Any]) -> str | None:
    """Return the blob name in a blob trigger message or an Event Grid event, or None."""
    if content.get("ContainerName") == DOCUMENTS and "BlobName" in content:
        return str(content["BlobName"])
    return blob_of_event(content)
