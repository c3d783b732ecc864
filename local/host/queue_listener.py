"""Queue triggers: polls a queue and calls the triggered function for each message.

A message is then deleted, retried or moved to the poison queue. Its short lease is renewed while the function
runs, so that the messages of a killed host reappear within LEASE_S rather than after the real host's ten
minutes.
"""

import asyncio
import base64
import binascii
import logging
from datetime import datetime

from azure.core.exceptions import AzureError, ResourceNotFoundError
from azure.storage.queue import QueueMessage
from azure.storage.queue.aio import QueueClient

from local.host.settings import QueueOptions
from local.host.storage import StorageClients
from local.host.wire import Call, FunctionDocument, Value, json_value, text_value
from local.host.worker_process import Worker

BATCH_SIZE = 16  # default of the real host, like all values here that host.json could override
SHORTEST_PAUSE_S = 0.1
LEASE_S = 30
RENEWAL_S = 10.0
log = logging.getLogger(__name__)


def message_text(content: str) -> str:
    """Return the text of a queue message. Base64 that contains UTF-8 is decoded; any other text is returned
    unchanged.

    Unlike the real host, this function accepts plain text.
    """
    try:
        return base64.b64decode(content, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return content


def queue_metadata(message: QueueMessage) -> dict[str, Value]:
    """Return the trigger metadata of a message, from which azure-functions creates a QueueMessage."""
    return {
        "Id": text_value(str(message.id)),
        "DequeueCount": json_value(message.dequeue_count),
        "ExpirationTime": text_value(_utc_text(message.expires_on)),
        "InsertionTime": text_value(_utc_text(message.inserted_on)),
        "NextVisibleTime": text_value(_utc_text(message.next_visible_on)),
        "PopReceipt": text_value(str(message.pop_receipt)),
    }


def _utc_text(moment: datetime | None) -> str:
    return "" if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S+00:00")


class QueueListener:
    """Listener for one function with a queue trigger."""

    def __init__(
        self, function: FunctionDocument, storage: StorageClients, worker: Worker, options: QueueOptions
    ) -> None:
        self.function = function
        self._storage = storage
        self._connection = function.trigger.get("connection")
        self._queue_name = storage.resolve(function.trigger["queueName"])
        self._queue = storage.queue(self._connection, self._queue_name)
        self._poison_queue = storage.queue(self._connection, f"{self._queue_name}-poison")
        self._worker = worker
        self._options = options
        self._handling: set[asyncio.Task[None]] = set()

    async def listen(self) -> None:
        """Poll the queue repeatedly, without pauses while there are messages, otherwise at growing intervals.
        Never returns.
        """
        pause_s = SHORTEST_PAUSE_S
        while True:
            count = await self._start_calls()
            pause_s = SHORTEST_PAUSE_S if count else min(pause_s * 2, self._options.max_polling_interval_s)
            await asyncio.sleep(pause_s if not count else 0)

    async def drain(self, grace_s: float) -> None:
        """Wait at most `grace_s` seconds for running calls. Calls that take longer are cancelled, and their
        messages reappear when the lease expires.
        """
        if not self._handling:
            return
        _, late = await asyncio.wait(self._handling, timeout=grace_s)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def _start_calls(self) -> int:
        await self._worker.ready()
        free = BATCH_SIZE - len(self._handling)
        if free <= 0:
            await asyncio.wait(self._handling, return_when=asyncio.FIRST_COMPLETED)
            return 1
        count = 0
        try:
            async for message in self._queue.receive_messages(
                max_messages=min(free, 32), visibility_timeout=LEASE_S
            ):
                task = asyncio.create_task(self._handle(message))
                self._handling.add(task)
                task.add_done_callback(self._handling.discard)
                count += 1
                if count == free:
                    break
        except ResourceNotFoundError:
            return 0  # the queue doesn't exist yet
        except AzureError as error:
            log.warning("cannot read the queue %s: %s", self._queue_name, error.__class__.__name__)
            return 0
        return count

    async def _handle(self, message: QueueMessage) -> None:
        lease = _Lease(self._queue, message)
        renewal = asyncio.create_task(lease.keep())
        try:
            if (message.dequeue_count or 0) > self._options.max_dequeue_count:
                await self._poison(lease)  # every attempt has killed the host, so don't try again
                return
            await self._run(message)
        except Exception:  # app code may raise any exception; the message is retried
            log.exception("function %s failed on a message of %s", self.function.name, self._queue_name)
            await self._retry_later(lease)
        else:
            await lease.delete()
        finally:
            renewal.cancel()

    async def _run(self, message: QueueMessage) -> None:
        text = message_text(message.content)
        await self._worker.call(Call(self.function.name, text_value(text), queue_metadata(message)))

    async def _retry_later(self, lease: "_Lease") -> None:
        try:
            if (lease.message.dequeue_count or 0) >= self._options.max_dequeue_count:
                await self._poison(lease)
            else:
                await lease.give_back()
        except AzureError as error:
            # No retry is needed, because the message reappears when its lease expires.
            log.warning("cannot release a message of %s: %s", self._queue_name, error.__class__.__name__)

    async def _poison(self, lease: "_Lease") -> None:
        await self._storage.send(self._poison_queue, lease.message.content)
        await lease.delete()
        log.error("function %s gave up on a message: see %s-poison", self.function.name, self._queue_name)


class _Lease:
    """The lease of a message. Each update of the message replaces its pop receipt."""

    def __init__(self, queue: QueueClient, message: QueueMessage) -> None:
        self.message = message
        self._queue = queue
        # The lock prevents concurrent changes, because each change invalidates the receipt.
        self._changing = asyncio.Lock()

    async def keep(self) -> None:
        """Renew the lease repeatedly, until this coroutine is cancelled."""
        while True:
            await asyncio.sleep(RENEWAL_S)
            async with self._changing:
                try:
                    await self._update(LEASE_S)
                except AzureError as error:
                    log.warning("cannot renew the lease of a message: %s", error.__class__.__name__)

    async def give_back(self) -> None:
        async with self._changing:
            await self._update(0)

    async def delete(self) -> None:
        async with self._changing:
            try:
                await self._queue.delete_message(self.message)
            except AzureError as error:
                # The message will reappear and be handled again, which is allowed because queues guarantee
                # at-least-once delivery.
                log.warning("cannot delete a handled message: %s", error.__class__.__name__)

    async def _update(self, visible_in_s: int) -> None:
        updated = await self._queue.update_message(self.message, visibility_timeout=visible_in_s)
        self.message.pop_receipt = updated.pop_receipt
