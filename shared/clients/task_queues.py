"""`TaskQueues` over the aio client of azure-storage-queue, in the encoding that queue triggers expect."""

import base64
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from shared.clients.calling import STORAGE_LIMITS, calling
from shared.clients.connection import Connection
from shared.clients.dependency import QUEUES
from shared.ports import TaskQueues

if TYPE_CHECKING:
    from azure.storage.queue.aio import QueueServiceClient

NEVER = -1  # as `time_to_live`: a message waits as long as the app is down


class AzureTaskQueues(TaskQueues):
    """Queues of the account with the documents."""

    def __init__(
        self, connection: "Connection[QueueServiceClient]", *, timeout_s: float = STORAGE_LIMITS.call_s
    ) -> None:
        self._connection = connection
        self._timeout_s = timeout_s

    async def send(self, queue: str, message: str, delay_s: float = 0.0) -> None:
        """Put a message on a queue; it is seen after `delay_s`."""
        content = base64.b64encode(message.encode()).decode()
        limit_s = self._timeout_s
        async with calling(self._connection, QUEUES, timeout_s=limit_s, operation="send") as client:
            await client.get_queue_client(queue).send_message(
                content, visibility_timeout=round(delay_s), time_to_live=NEVER
            )

    async def ensure_queues(self, queues: Sequence[str]) -> None:
        """Create those that are missing."""
        from azure.core.exceptions import ResourceExistsError

        for queue in queues:
            async with calling(self._connection, QUEUES, timeout_s=self._timeout_s) as client:
                # Raised with status 204 for a queue that is there already, as at every later start.
                with suppress(ResourceExistsError):
                    await client.create_queue(queue)
