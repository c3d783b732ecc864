"""The host of a function app: combines the HTTP front, the trigger listeners and the durable executor."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Coroutine, Sequence
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from local.durable.executor import CrashDelays, DurableExecutor
from local.durable.http_api import RPC_PREFIX, WEBHOOK_PREFIX
from local.host.blob_journal import BlobJournal
from local.host.blob_listener import BlobListener, blob_triggers
from local.host.durable_functions import HostedDurableFunctions
from local.host.guard import Guard
from local.host.http_front import HttpFront, http_routes
from local.host.queue_listener import QueueListener
from local.host.settings import HostOptions, is_disabled
from local.host.sign_in import SignIn
from local.host.storage import StorageClients
from local.host.timer_listener import TimerListener, TimerStatusStore
from local.host.wire import FunctionDocument
from local.host.worker_process import Worker
from local.run_all.tokens import host_key

GRACE_S = 5.0


class DrainingApp:
    """ASGI middleware that lets running requests finish for at most GRACE_S seconds when the host stops.
    Event streams end immediately.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self._stopping.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        response = _ObservedResponse(send)
        request = asyncio.ensure_future(self._app(scope, receive, response.send))
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({request, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not request.done() and not response.is_event_stream:
                await asyncio.wait({request}, timeout=GRACE_S)
            if request.done():
                await request
            else:
                await self._end(request, response)
        finally:
            stopping.cancel()
            request.cancel()

    async def _end(self, request: "asyncio.Future[None]", response: "_ObservedResponse") -> None:
        request.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await request
        await response.finish()


class _ObservedResponse:
    """A response that records its progress, so that an interrupted one can be ended cleanly."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._started = False
        self._has_length = False
        self._complete = False
        self.is_event_stream = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = {name.lower(): value for name, value in message.get("headers", ())}
            self._started = True
            self._has_length = b"content-length" in headers
            self.is_event_stream = headers.get(b"content-type", b"").startswith(b"text/event-stream")
        elif message["type"] == "http.response.body":
            self._complete = not message.get("more_body", False)
        await self._send(message)

    async def finish(self) -> None:
        """End the response: with status 503 if it hasn't started, otherwise with a final empty chunk."""
        if not self._started:
            await self.send(
                {"type": "http.response.start", "status": 503, "headers": [(b"retry-after", b"5")]}
            )
        if not self._complete and not self._has_length:
            await self.send({"type": "http.response.body", "body": b"", "more_body": False})


DATABASE_NAME = "host.sqlite3"
DURABLE_NAME = "durable.sqlite3"
log = logging.getLogger(__name__)


class FunctionsHost:
    """The host of one app. Start its parts on a running event loop, and call `stop()` once."""

    def __init__(
        self,
        functions: Sequence[FunctionDocument],
        options: HostOptions,
        data_folder: Path,
        worker: Worker,
    ) -> None:
        """Create all parts. Raise `HostError` if a trigger, route or connection of the app cannot be
        served.
        """
        enabled = [function for function in functions if not is_disabled(function.name, os.environ)]
        self.failed = asyncio.Event()
        self._storage = StorageClients()
        self._worker = worker
        self._durable = DurableExecutor(
            data_folder / DURABLE_NAME,
            HostedDurableFunctions(enabled, worker),
            max_parallel_activities=options.max_parallel_activities,
            task_hub=options.task_hub,
            delays=CrashDelays(options.lease_s, options.control_visibility_s, options.work_item_visibility_s),
        )
        self._journal = BlobJournal(data_folder / DATABASE_NAME)
        self._timer_store = TimerStatusStore(data_folder / DATABASE_NAME)
        self._blobs = BlobListener(
            blob_triggers(enabled, self._storage), self._journal, self._storage, worker
        )
        self._queues = [
            QueueListener(function, self._storage, worker, options.queues)
            for function in enabled
            if function.kind == "queueTrigger"
        ]
        self._timers = [
            TimerListener(function, self._storage, worker, self._timer_store)
            for function in enabled
            if function.kind == "timerTrigger"
        ]
        front = HttpFront(http_routes(enabled), options, worker)
        self.app = DrainingApp(Guard(self._mount(front), host_key(data_folder)))
        self._tasks: list[asyncio.Task[None]] = []

    async def start_durable(self) -> None:
        """Start the durable executor, which resumes the orchestrations of the previous process."""
        await self._durable.start()

    def start_listeners(self) -> None:
        """Start the listeners for blobs, queues and timers. HTTP must be served already, because functions
        call it.
        """
        self._worker.watch(self.failed.set)
        self._listen("blob listing", self._blobs.watch())
        self._listen("blob events", self._blobs.handle())
        for queue in self._queues:
            self._listen(f"queue trigger {queue.function.name}", queue.listen())
        for timer in self._timers:
            self._listen(f"timer trigger {timer.function.name}", timer.listen())

    async def stop(self) -> None:
        """Stop all listeners, wait up to GRACE_S seconds for running calls, and cancel the rest. HTTP
        requests are still served.
        """
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(
            self._durable.stop(),
            self._blobs.drain(GRACE_S),
            *(queue.drain(GRACE_S) for queue in self._queues),
        )

    async def close(self) -> None:
        """Close files and connections. Call this after `stop()` and the last HTTP request."""
        self._journal.close()
        self._timer_store.close()
        await self._storage.close()

    def _mount(self, front: HttpFront) -> ASGIApp:
        durable_routes = self._durable.routes()
        return Router(
            routes=[
                Route("/admin/host/status", self._status, methods=["GET"]),
                Mount(f"{RPC_PREFIX}/{self._worker.key}", routes=durable_routes),
                Mount(WEBHOOK_PREFIX, routes=durable_routes),
            ],
            redirect_slashes=False,
            # Used as the default route, because a Mount at "/" would not match paths with a line break.
            default=SignIn(front, os.environ),
        )

    async def _status(self, request: Request) -> Response:
        del request
        return JSONResponse({"state": "Running", "workerProcessId": self._worker.pid})

    def _listen(self, name: str, listening: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(listening, name=name)
        task.add_done_callback(self._report_end)
        self._tasks.append(task)

    def _report_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            log.error("%s ended unexpectedly; the host stops", task.get_name(), exc_info=task.exception())
            self.failed.set()
