"""Blob triggers: detects changed and deleted blobs by listing containers, and calls the triggered functions.

This replaces Event Grid, because Azurite raises no events. New versions and deletions are recorded in the
journal, from which each is handled at least once.
"""

import asyncio
import base64
import functools
import json
import logging
import os
import re
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from azure.core.exceptions import AzureError, ResourceNotFoundError

from local.host.blob_journal import BlobEvent, BlobJournal, BlobVersion
from local.host.settings import DEFAULT_STORAGE, AppError
from local.host.storage import StorageClients
from local.host.wire import Call, FunctionDocument, Value
from local.host.worker_process import Worker

_PATH = re.compile(r"([^/{]+)/\{\w+\}")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BlobTrigger:
    """A function with a blob trigger, and the container that it watches."""

    function: FunctionDocument
    connection: str
    container: str

    @property
    def place(self) -> str:
        """The key of the container in the journal: connection/container."""
        return f"{self.connection}/{self.container}"


def blob_triggers(functions: Iterable[FunctionDocument], storage: StorageClients) -> list[BlobTrigger]:
    """Return the blob triggers among the functions of an app.

    Raises:
        AppError: if the source isn't EventGrid, which Flex Consumption requires, the binding would read whole
            blobs into memory, or the path is invalid.
        SettingError: if the connection or a %SETTING% in the path is missing.
    """
    triggers = []
    for function in functions:
        if function.kind == "blobTrigger":
            if function.trigger.get("source") != "EventGrid":
                raise AppError(
                    f"function {function.name}: Flex Consumption supports only EventGrid blob triggers"
                )
            if not function.takes_place:
                raise AppError(
                    f"function {function.name}: its blob parameter must have an SDK type, such as BlobClient"
                )
            connection = function.trigger.get("connection") or DEFAULT_STORAGE
            container = container_of(storage.resolve(function.trigger["path"]))
            # Called only to fail the start early if the connection setting is missing.
            storage.container(connection, container)
            triggers.append(BlobTrigger(function, connection, container))
    return triggers


def container_of(path: str) -> str:
    """Return the container in a blob path such as `documents/{name}`.

    Raises:
        AppError: if the path has a different form.
    """
    if (match := _PATH.fullmatch(path)) is None:
        raise AppError(
            f"blob path {path!r} must consist of a container and one name, such as documents/{{name}}"
        )
    return match[1]


LISTING_PAUSE_S = 0.5
# Pause after a listing, as a multiple of its duration, so that large containers don't occupy a core.
LISTING_SHARE = 9
LONGEST_PAUSE_S = 5.0
HANDLING_PAUSE_S = 0.05
RETRY_DELAY_S = 0.25
MAX_PARALLEL, POISON_THRESHOLD = 8, 5  # same values as in the real host
POISON_QUEUE = "webjobs-blobtrigger-poison"
DELETION_QUEUE_SETTING = "LOCAL_BLOB_DELETED_QUEUE"
DEFAULT_DELETION_QUEUE = "blob-deleted"


class BlobListener:
    """Listener for all blob triggers of an app."""

    def __init__(
        self,
        triggers: Sequence[BlobTrigger],
        journal: BlobJournal,
        storage: StorageClients,
        worker: Worker,
    ) -> None:
        self._triggers = {trigger.function.name: trigger for trigger in triggers}
        self._journal = journal
        self._storage = storage
        self._worker = worker
        self._handling: dict[int, asyncio.Task[None]] = {}
        self._deletion_queue = os.environ.get(DELETION_QUEUE_SETTING, DEFAULT_DELETION_QUEUE)

    async def watch(self) -> None:
        """List all watched containers repeatedly and record changes. Never returns."""
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
        """Handle due events concurrently. Never returns."""
        while True:
            await self._worker.ready()
            free = MAX_PARALLEL - len(self._handling)
            for event in self._journal.due_events(free, self._handling):
                task = asyncio.create_task(self._handle(event))
                self._handling[event.event_id] = task
                task.add_done_callback(functools.partial(self._forget, event.event_id))
            await asyncio.sleep(HANDLING_PAUSE_S)

    async def drain(self, grace_s: float) -> None:
        """Wait at most `grace_s` seconds for running calls. Calls that take longer are cancelled and repeated
        after the next start.
        """
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
        journalled = self._journal.names(place)
        try:
            listed = await self._storage.lister.etags(container)
        except ResourceNotFoundError:
            return  # a missing container doesn't mean that its blobs were deleted, so report nothing
        self._journal.record(
            BlobVersion(trigger.function.name, place, name, etag)
            for name, etag in listed.items()
            for trigger in triggers
        )
        for name in sorted(journalled - listed.keys()):
            self._journal.record_deletion(
                place, name, deleted_message(container.url, triggers[0].container, name)
            )

    async def _send_deletions(self) -> None:
        deletions = self._journal.pending_deletions()
        if not deletions:
            return
        queue = self._storage.queue(DEFAULT_STORAGE, self._deletion_queue)
        for deletion in deletions:
            # The message is sent before the journal is updated, so that a crash in between repeats it instead
            # of losing it.
            await self._storage.send(queue, deletion.message)
            self._journal.finish_deletion(deletion)

    async def _handle(self, event: BlobEvent) -> None:
        trigger = self._triggers.get(event.version.function)
        if trigger is None:  # the app no longer has this function
            self._journal.finish(event)
            return
        if event.tries >= POISON_THRESHOLD:
            await self._poison(event, trigger)
            return
        self._journal.begin(event)
        try:
            await self._run(trigger, event.version.name)
        except Exception:  # app code or storage may raise any exception; the event is retried
            log.exception("function %s failed on blob %s", trigger.function.name, event.version.name)
            if event.tries + 1 >= POISON_THRESHOLD:
                await self._poison(event, trigger)
            else:
                self._journal.postpone(event, RETRY_DELAY_S)
        else:
            self._journal.finish(event)

    async def _run(self, trigger: BlobTrigger, blob_name: str) -> None:
        """Call the function for a blob, unless the blob has been deleted."""
        container = self._storage.container(trigger.connection, trigger.container)
        if not await container.get_blob_client(blob_name).exists():
            return
        place = {
            "Connection": trigger.connection,
            "ContainerName": trigger.container,
            "BlobName": blob_name,
        }
        await self._worker.call(
            Call(trigger.function.name, Value("model_binding_data", json.dumps(place).encode()))
        )

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


_SUBJECT_MARK = "/blobServices/default/containers/"
_TOPIC = (
    "/subscriptions/local/resourceGroups/local/providers/Microsoft.Storage/storageAccounts/devstoreaccount1"
)


def deleted_message(container_url: str, container: str, name: str) -> str:
    """Return an Event Grid message about a deleted blob, in base64 as in a storage queue."""
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    event = {
        "topic": _TOPIC,
        "subject": f"{_SUBJECT_MARK}{container}/blobs/{name}",
        "eventType": "Microsoft.Storage.BlobDeleted",
        "id": str(uuid.uuid4()),
        "data": {
            "api": "DeleteBlob",
            "requestId": str(uuid.uuid4()),
            "blobType": "BlockBlob",
            "url": f"{container_url}/{name}",
            "sequencer": f"{int(datetime.now(UTC).timestamp() * 1_000_000):032x}",
        },
        "dataVersion": "",
        "metadataVersion": "1",
        "eventTime": now,
    }
    return base64.b64encode(json.dumps(event).encode()).decode()
