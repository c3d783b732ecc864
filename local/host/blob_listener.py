"""Watches containers and handles blob events: what Event Grid and the blob trigger's internal queue do in
Azure.

Azurite raises no events, so containers are listed; new versions and vanished blobs go into the journal in one
transaction, and are handled from there, at least once.
"""

import asyncio
import functools
import json
import logging
import os
import time
from collections.abc import Sequence

from azure.core.exceptions import AzureError, ResourceNotFoundError

from local.host.blob_journal import BlobEvent, BlobJournal, BlobVersion
from local.host.blob_trigger import BlobInvoker, BlobTrigger
from local.host.event_grid import deleted_message
from local.host.settings import DEFAULT_STORAGE, BlobOptions
from local.host.storage import StorageClients

LISTING_PAUSE_S = 0.5
LISTING_SHARE = 9  # pause so many times as long as a listing takes: large containers must not eat a core
LONGEST_PAUSE_S = 5.0
HANDLING_PAUSE_S = 0.05
RETRY_DELAY_S = 0.25
POISON_QUEUE = "webjobs-blobtrigger-poison"
DELETION_QUEUE_SETTING = "LOCAL_BLOB_DELETED_QUEUE"
DEFAULT_DELETION_QUEUE = "blob-deleted"
log = logging.getLogger(__name__)


class BlobListener:
    """All blob triggers of one app."""

    def __init__(
        self,
        triggers: Sequence[BlobTrigger],
        journal: BlobJournal,
        storage: StorageClients,
        invoker: BlobInvoker,
        options: BlobOptions,
    ) -> None:
        self._triggers = {trigger.function.name: trigger for trigger in triggers}
        self._journal = journal
        self._storage = storage
        self._invoker = invoker
        self._options = options
        self._handling: dict[int, asyncio.Task[None]] = {}
        self._deletion_queue = os.environ.get(DELETION_QUEUE_SETTING, DEFAULT_DELETION_QUEUE)

    def accept(self, trigger: BlobTrigger, blob_name: str, etag: str) -> None:
        """Take an event from the webhook; one that the listing has seen already is known by its etag."""
        self._journal.record([BlobVersion(trigger.function.name, trigger.place, blob_name, etag)])

    def trigger(self, function_name: str) -> BlobTrigger | None:
        return self._triggers.get(function_name)

    async def watch(self) -> None:
        """List the watched containers for ever."""
        while True:
            listing_s = 0.0
            for place in sorted({trigger.place for trigger in self._triggers.values()}):
                began = time.monotonic()
                try:
                    await self._list(place)
                    await self._send_deletions()
                except AzureError as error:
                    log.warning("cannot list %s: %s", place, error.__class__.__name__)
                else:
                    listing_s += time.monotonic() - began
            await asyncio.sleep(min(max(LISTING_PAUSE_S, LISTING_SHARE * listing_s), LONGEST_PAUSE_S))

    async def handle(self) -> None:
        """Handle due events for ever, several at once."""
        while True:
            free = self._options.max_parallel - len(self._handling)
            for event in self._journal.due_events(free, self._handling):
                task = asyncio.create_task(self._handle(event))
                self._handling[event.event_id] = task
                task.add_done_callback(functools.partial(self._forget, event.event_id))
            await asyncio.sleep(HANDLING_PAUSE_S)

    async def drain(self, grace_s: float) -> None:
        """Let running calls end; those that do not are handled again after the next start."""
        if not self._handling:
            return
        _, late = await asyncio.wait(self._handling.values(), timeout=grace_s)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def _forget(self, event_id: int, task: asyncio.Task[None]) -> None:
        del task
        self._handling.pop(event_id, None)

    async def _list(self, place: str) -> None:
        triggers = [trigger for trigger in self._triggers.values() if trigger.place == place]
        container = self._storage.container(triggers[0].connection, triggers[0].container)
        known = self._journal.names(place)
        try:
            seen = await self._storage.lister.etags(container)
        except ResourceNotFoundError:
            return  # no container (yet): says nothing about its blobs
        self._journal.record(
            BlobVersion(trigger.function.name, place, name, etag)
            for name, etag in seen.items()
            for trigger in triggers
            if trigger.values(name) is not None
        )
        for name in sorted(known - seen.keys()):
            self._journal.record_deletion(
                place, name, deleted_message(container.url, triggers[0].container, name)
            )

    async def _send_deletions(self) -> None:
        deletions = self._journal.pending_deletions()
        if not deletions:
            return
        queue = self._storage.queue(DEFAULT_STORAGE, self._deletion_queue)
        for deletion in deletions:
            # Sent first, forgotten second: a crash between the two sends it twice.
            await self._storage.send(queue, deletion.message)
            self._journal.finish_deletion(deletion)

    async def _handle(self, event: BlobEvent) -> None:
        trigger = self._triggers.get(event.version.function)
        if trigger is None:  # the app no longer has the function
            self._journal.finish(event)
            return
        if event.tries >= self._options.poison_threshold:
            await self._poison(event, trigger)
            return
        self._journal.begin(event)
        try:
            await self._invoker.run(trigger, event.version.name)
        except Exception:  # foreign code, or storage: either way it is tried again
            log.exception("function %s failed on blob %s", trigger.function.name, event.version.name)
            if event.tries + 1 >= self._options.poison_threshold:
                await self._poison(event, trigger)
            else:
                self._journal.postpone(event, RETRY_DELAY_S)
        else:
            self._journal.finish(event)

    async def _poison(self, event: BlobEvent, trigger: BlobTrigger) -> None:
        message = {
            "Type": "BlobTrigger",
            "FunctionId": f"Host.Functions.{trigger.function.name}",
            "BlobType": "BlockBlob",
            "ContainerName": trigger.container,
            "BlobName": event.version.name,
            "ETag": f'"{event.version.etag}"',
        }
        queue = self._storage.queue(trigger.connection, POISON_QUEUE)
        try:
            await self._storage.send(queue, json.dumps(message))
        except AzureError as error:
            log.warning("cannot reach the poison queue: %s", error.__class__.__name__)
            self._journal.postpone(event, RETRY_DELAY_S)
            return
        log.error(
            "function %s gave up on blob %s: see %s", trigger.function.name, event.version.name, POISON_QUEUE
        )
        self._journal.finish(event)
