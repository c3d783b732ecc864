"""One function app, assembled: HTTP front, listeners, durable executor. The only place that wires them."""

import asyncio
import logging
import os
from collections.abc import Coroutine, Sequence
from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp

from local.durable.executor import DurableExecutor
from local.host.admin import AdminEndpoints, ManualRuns
from local.host.blob_journal import BlobJournal
from local.host.blob_listener import BlobListener
from local.host.blob_trigger import BlobInvoker, blob_triggers
from local.host.catalogue import HostedFunction
from local.host.draining import GRACE_S, DrainingApp
from local.host.durable_functions import HostedDurableFunctions
from local.host.http_front import HttpFront, http_routes
from local.host.invocation import Invoker
from local.host.outputs import OutputWriter
from local.host.queue_listener import QueueListener
from local.host.settings import HostOptions, is_disabled
from local.host.storage import StorageClients
from local.host.timer_listener import TimerListener, TimerStatusStore

DATABASE_NAME = "host.sqlite3"
DURABLE_NAME = "durable.sqlite3"
log = logging.getLogger(__name__)


class FunctionsHost:
    """Serves the functions of one app. Make it, `start()` it on a running loop, `stop()` it once."""

    def __init__(
        self, functions: Sequence[HostedFunction], options: HostOptions, data_folder: Path, base_url: str
    ) -> None:
        """Raises HostError if a trigger, a route or a connection of the app cannot be served."""
        enabled = [function for function in functions if not is_disabled(function.name, os.environ)]
        self.failed = asyncio.Event()
        self._storage = StorageClients()
        writer = OutputWriter(self._storage, base64_messages=options.queues.base64)
        self._invoker = Invoker(
            writer, lambda: self._durable.client_binding(base_url), timeout_s=options.function_timeout_s
        )
        self._durable_functions = HostedDurableFunctions(enabled, self._invoker)
        self._durable = DurableExecutor(
            data_folder / DURABLE_NAME,
            self._durable_functions,
            max_parallel_activities=options.max_parallel_activities,
            task_hub=options.task_hub,
        )
        self._journal = BlobJournal(data_folder / DATABASE_NAME)
        self._timer_store = TimerStatusStore(data_folder / DATABASE_NAME)
        blob_invoker = BlobInvoker(self._storage, self._invoker)
        self._blobs = BlobListener(
            blob_triggers(enabled, self._storage), self._journal, self._storage, blob_invoker, options.blobs
        )
        self._queues = [
            QueueListener(function, self._storage, self._invoker, options.queues)
            for function in enabled
            if function.kind == "queueTrigger"
        ]
        self._timers = [
            TimerListener(function, self._storage, self._invoker, self._timer_store)
            for function in enabled
            if function.kind == "timerTrigger"
        ]
        runs = ManualRuns(self._queues, self._timers, self._blobs, blob_invoker)
        admin = AdminEndpoints(enabled, options.route_prefix, runs, self._blobs)
        front = HttpFront(http_routes(enabled), options.route_prefix, self._invoker)
        self.app = DrainingApp(self._mount(admin, front))
        self._tasks: list[asyncio.Task[None]] = []

    async def start_durable(self) -> None:
        """Continue the orchestrations that were running when the host was last stopped or killed."""
        await self._durable.start()

    def start_listeners(self) -> None:
        """Begin to listen for blobs, messages and timers. HTTP must be served by now: functions use it."""
        self._listen("blob listing", self._blobs.watch())
        self._listen("blob events", self._blobs.handle())
        for queue in self._queues:
            self._listen(f"queue trigger {queue.function.name}", queue.listen())
        for timer in self._timers:
            self._listen(f"timer trigger {timer.function.name}", timer.listen())

    async def stop(self) -> None:
        """Take no new work, let running calls end for GRACE_S, then give the rest up. HTTP still answers."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(
            self._durable.stop(),
            self._blobs.drain(GRACE_S),
            *(queue.drain(GRACE_S) for queue in self._queues),
        )

    async def close(self) -> None:
        """Close files and connections. Call after `stop()` and after the last HTTP request."""
        self._invoker.close()
        self._durable_functions.close()
        self._journal.close()
        self._timer_store.close()
        await self._storage.close()

    def has_running_threads(self) -> bool:
        """Whether a synchronous function still runs: only the end of the process ends its thread."""
        return self._invoker.running_threads > 0

    def _mount(self, admin: AdminEndpoints, front: HttpFront) -> ASGIApp:
        durable_routes = self._durable.routes()
        return Starlette(
            routes=[
                *admin.routes(),
                Mount("/durabletask", routes=durable_routes),
                Mount("/runtime/webhooks/durabletask", routes=durable_routes),
                Mount("/", app=front),
            ]
        )

    def _listen(self, name: str, listening: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(listening, name=name)
        task.add_done_callback(self._report_end)
        self._tasks.append(task)

    def _report_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            log.error("%s ended; the host stops", task.get_name(), exc_info=task.exception())
            self.failed.set()
