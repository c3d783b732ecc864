"""The host's own HTTP endpoints: status, the list of functions, running one by hand, and the blob webhook."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from local.host.blob_listener import BlobListener
from local.host.blob_trigger import BlobInvoker
from local.host.catalogue import HostedFunction
from local.host.event_grid import EventShapeError, created_blobs, read_events, validation_code
from local.host.queue_listener import QueueListener
from local.host.timer_listener import TimerListener

MAX_EVENT_BYTES = 1_048_576  # Event Grid's own limit for one delivery
FUNCTION_ID_PREFIX = "Host.Functions."
log = logging.getLogger(__name__)


class ManualRuns:
    """Runs queue, timer and blob functions by hand, in the background."""

    def __init__(
        self,
        queues: Sequence[QueueListener],
        timers: Sequence[TimerListener],
        blobs: BlobListener,
        blob_invoker: BlobInvoker,
    ) -> None:
        self._queues = {listener.function.name: listener for listener in queues}
        self._timers = {listener.function.name: listener for listener in timers}
        self._blobs = blobs
        self._blob_invoker = blob_invoker
        self._running: set[asyncio.Task[None]] = set()

    def prepare(self, function: HostedFunction, text: str) -> Callable[[], Awaitable[None]]:
        """The call to make for an input text.

        Raises:
            ValueError: the function cannot be run by hand, or the input does not fit it.
        """
        if function.name in self._queues:
            return lambda: self._queues[function.name].run_once(text)
        if function.name in self._timers:
            return self._timers[function.name].run_once
        trigger = self._blobs.trigger(function.name)
        if trigger is None:
            raise ValueError(f"a function of type {function.kind} cannot be run by hand")
        container, _, blob_name = text.partition("/")
        if container != trigger.container or not blob_name:
            raise ValueError(f"input must be a blob's path, {trigger.container}/NAME")
        return lambda: self._blob_invoker.run(trigger, blob_name)

    def start(self, function: HostedFunction, call: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.create_task(self._run(function, call))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, function: HostedFunction, call: Callable[[], Awaitable[None]]) -> None:
        try:
            await call()
        except Exception:  # foreign code; nobody waits for the result
            log.exception("function %s failed", function.name)


class AdminEndpoints:
    """Handlers of the host's own routes."""

    def __init__(
        self, functions: Sequence[HostedFunction], route_prefix: str, runs: ManualRuns, blobs: BlobListener
    ) -> None:
        self._functions = {function.name: function for function in functions}
        self._route_prefix = route_prefix
        self._runs = runs
        self._blobs = blobs
        self._started_at = time.monotonic()

    def routes(self) -> list[Route]:
        return [
            Route("/admin/host/status", self._status, methods=["GET"]),
            Route("/admin/functions", self._list, methods=["GET"]),
            Route("/admin/functions/{name}", self._show, methods=["GET"]),
            Route("/admin/functions/{name}", self._run, methods=["POST"]),
            Route("/runtime/webhooks/blobs", self._blob_events, methods=["POST"]),
        ]

    async def _status(self, request: Request) -> Response:
        del request
        uptime_ms = round((time.monotonic() - self._started_at) * 1000)
        return JSONResponse(
            {"id": "local", "state": "Running", "version": "local", "processUptime": uptime_ms}
        )

    async def _list(self, request: Request) -> Response:
        return JSONResponse([self._document(function, request) for function in self._functions.values()])

    async def _show(self, request: Request) -> Response:
        function = self._functions.get(request.path_params["name"])
        if function is None:
            return PlainTextResponse("", status_code=404)
        return JSONResponse(self._document(function, request))

    def _document(self, function: HostedFunction, request: Request) -> Mapping[str, object]:
        base = str(request.base_url).rstrip("/")
        document = {
            "name": function.name,
            "language": "python",
            "isDisabled": False,
            "config": {"name": function.name, "bindings": list(function.bindings)},
            "href": f"{base}/admin/functions/{function.name}",
        }
        if function.kind == "httpTrigger":
            route = function.trigger.get("route") or function.name
            document["invoke_url_template"] = "/".join(
                part for part in (base, self._route_prefix, route) if part
            )
        return document

    async def _run(self, request: Request) -> Response:
        function = self._functions.get(request.path_params["name"])
        if function is None:
            return PlainTextResponse("", status_code=404)
        try:
            call = self._runs.prepare(function, _input_text(await request.body()))
        except ValueError as error:
            return PlainTextResponse(str(error), status_code=400)
        self._runs.start(function, call)
        return PlainTextResponse("", status_code=202)

    async def _blob_events(self, request: Request) -> Response:
        name = request.query_params.get("functionName", "").removeprefix(FUNCTION_ID_PREFIX)
        trigger = self._blobs.trigger(name)
        if trigger is None:
            return PlainTextResponse(f"no blob-triggered function {name!r}", status_code=404)
        if int(request.headers.get("content-length", 0)) > MAX_EVENT_BYTES:
            return PlainTextResponse("too large for an Event Grid delivery", status_code=413)
        try:
            events = read_events(await request.body())
            code = validation_code(events)
            if code is not None:
                return JSONResponse({"validationResponse": code})
            created = created_blobs(events)
        except EventShapeError as error:
            return PlainTextResponse(str(error), status_code=400)
        for blob in created:
            if blob.container == trigger.container and trigger.values(blob.name) is not None:
                self._blobs.accept(trigger, blob.name, blob.etag)
        return PlainTextResponse("", status_code=202)


def _input_text(body: bytes) -> str:
    """The `input` member of the body, as text; nothing at all is an empty input.

    Raises:
        ValueError: the body is no JSON object.
    """
    if not body.strip():
        return ""
    document = json.loads(body)
    if not isinstance(document, dict):
        raise ValueError('the body must be {"input": ...}')
    given = document.get("input", "")
    return given if isinstance(given, str) else json.dumps(given)
