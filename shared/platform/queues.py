"""Queues that call functions of the app, and the poison queues of messages that failed every try."""

# For annotations alone: the start of the app need not build every model.
from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import Field

from shared.platform.calls import QUEUES, STORAGE_LIMITS, calling
from shared.platform.errors import NotFoundError
from shared.platform.models import Model
from shared.platform.names import DOCUMENTS, POISON_QUEUES

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from azure.storage.queue.aio import QueueServiceClient

    from shared.platform.connections import Connection


class PoisonMessage(Model):
    """One message of a poison queue.

    Attributes:
        blob_name: of the documents container; None when the message is in no form that is known.
        function: that gave up on it, where the message tells.
        thread_id: of a turn that could not be remembered, or a thread that could not be erased.
    """

    queue: str = Field(description="The queue that it came from.")
    message_id: str = Field(description="The message's id.")
    inserted_at: datetime | None = Field(description="When it came.")
    dequeue_count: int = Field(description="How often it was tried.")
    blob_name: str | None = None
    function: str | None = None
    thread_id: str | None = None


class PoisonList(Model):
    """Answer of GET /api/maintenance/poison: the oldest 32 of each queue."""

    messages: tuple[PoisonMessage, ...] = Field(description="Events that failed every attempt.")
    count: int = Field(description="How many.")


NEVER = -1  # as `time_to_live`: a message waits as long as the app is down


class _Queues:
    """Queues of the account with the documents."""

    def __init__(
        self, connection: Connection[QueueServiceClient], *, timeout_s: float = STORAGE_LIMITS.call_s
    ) -> None:
        self._connection = connection
        self._timeout_s = timeout_s

    def _call(self, operation: str = "call") -> AbstractAsyncContextManager[QueueServiceClient]:
        return calling(self._connection, QUEUES, timeout_s=self._timeout_s, operation=operation)


class TaskQueues(_Queues):
    """Queues whose messages call functions of the app."""

    async def send(self, queue: str, message: str, delay_s: float = 0.0) -> None:
        """Put a message on a queue, which is made if it is missing; it is seen after `delay_s`."""
        try:
            await self._send(queue, message, delay_s)
        except NotFoundError:  # the first event of a new deployment may come before anything else
            await self.ensure_queues([queue])
            await self._send(queue, message, delay_s)

    async def _send(self, queue: str, message: str, delay_s: float) -> None:
        content = base64.b64encode(message.encode()).decode()
        async with self._call("send") as client:
            await client.get_queue_client(queue).send_message(
                content, visibility_timeout=round(delay_s), time_to_live=NEVER
            )

    async def ensure_queues(self, queues: Sequence[str]) -> None:
        """Create those that are missing."""
        from azure.core.exceptions import ResourceExistsError

        for queue in queues:
            async with self._call() as client:
                # Raised with status 204 for a queue that is there already, as at every later start.
                with suppress(ResourceExistsError):
                    await client.create_queue(queue)


_PEEKED = 32  # the service's most
_MOST = 10_000  # of one queue: what a long outage leaves; they are looked at again by the next pass
_HIDDEN_S = 30  # while they are looked at; some milliseconds each
_SUBJECT_START = f"/blobServices/default/containers/{DOCUMENTS}/blobs/"


class PoisonQueues(_Queues):
    """Queues of messages that failed every try."""

    async def peek(self) -> list[PoisonMessage]:
        """The oldest messages of each queue; they stay there. A queue that was never used has none."""
        found: list[PoisonMessage] = []
        for queue in POISON_QUEUES:
            try:
                async with self._call() as client:
                    peeked = await client.get_queue_client(queue).peek_messages(_PEEKED)
            except NotFoundError:
                continue
            found.extend(_message(queue, message) for message in peeked)
        return found

    async def remove_of(self, owner_id: str) -> int:
        """Remove messages about a person's threads and turns; how many. The others hide for half a minute."""
        return sum([await self._remove_of(owner_id, queue) for queue in POISON_QUEUES])

    async def _remove_of(self, owner_id: str, queue: str) -> int:
        removed = 0
        try:
            for _ in range(_MOST // _PEEKED):
                async with self._call() as service:
                    client = service.get_queue_client(queue)
                    taken = client.receive_messages(max_messages=_PEEKED, visibility_timeout=_HIDDEN_S)
                    messages = [message async for message in taken]
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
    """A message's JSON object, which may be wrapped in base64; None when it is something else."""
    with suppress(ValueError):
        body = base64.b64decode(body, validate=True)
    try:
        content = json.loads(body)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def blob_of_event(event: Mapping[str, Any]) -> str | None:
    """The document or sidecar that an Event Grid event is about; None for one of another container."""
    subject = str(event.get("subject", ""))
    return subject.removeprefix(_SUBJECT_START) if subject.startswith(_SUBJECT_START) else None


def _blob_name(content: Mapping[str, Any]) -> str | None:
    """From the blob trigger's own message, a deferred file, or an Event Grid event."""
    if isinstance(content.get("blob_name"), str):
        return str(content["blob_name"])
    if content.get("ContainerName") == DOCUMENTS and "BlobName" in content:
        return str(content["BlobName"])
    return blob_of_event(content)
