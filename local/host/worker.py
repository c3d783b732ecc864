"""The worker process: loads the app, and runs its functions when the host requests it.

The host starts it with a listening socket, and it exits with the host. HTTP functions are served through the
streaming extension, which converts requests, and responses of type str, dict or model.
"""

import argparse
import asyncio
import contextlib
import dataclasses
import functools
import importlib
import json
import logging
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import azurefunctions.extensions.base as extension_base
import uvicorn
from azure.functions.meta import Datum
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from local.durable.http_api import RPC_PREFIX, client_binding_json
from local.host.catalogue import HostedFunction, index_functions, load_app
from local.host.conversion import datum_of, decode
from local.host.invocation import Invoker
from local.host.settings import HostError, locate, read_host_options, set_up_logging
from local.host.wire import CALL_HEADER, INVOCATION_HEADER, KEY_HEADER, Call, load_call
from local.host.worker_process import KEY_SETTING

INNERMOST_FRAMES = 4  # number of traceback frames stored in the history; outer frames belong to this worker
EXIT_CANNOT_START = 2
log = logging.getLogger(__name__)


class WorkerApp:
    """ASGI application called by the host. GET / lists the functions and POST / calls one; requests with
    CALL_HEADER go to HTTP functions.
    """

    def __init__(self, functions: list[HostedFunction], invoker: Invoker, key: str) -> None:
        self._functions = {function.name: function for function in functions}
        self._invoker = invoker
        self._key = key
        self._web_app = _build_web_app(self._functions, invoker)
        # Orchestrators run in a separate pool. Otherwise, activities that fill the pool would block the
        # orchestrations that wait for them.
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="orchestrator")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        if request.headers.get(KEY_HEADER) != self._key:
            await PlainTextResponse("", status_code=401)(scope, receive, send)
        elif CALL_HEADER in request.headers:
            await self._serve(scope, receive, send, json.loads(request.headers[CALL_HEADER]))
        else:
            answer = await self._answer(request)
            await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        if request.method == "GET":
            documents = [dataclasses.asdict(function.document) for function in self._functions.values()]
            return JSONResponse(documents)
        call = load_call(await request.body())
        function = self._functions[call.function]
        if function.kind == "orchestrationTrigger":
            return await self._run_orchestrator(function, datum_of(call.trigger))
        try:
            return JSONResponse({"result": await self._run(function, call)})
        except Exception as error:  # app code may raise any exception; the host handles the failure
            log.warning("function %s failed", call.function, exc_info=True)
            details = "".join(traceback.format_exception(error, limit=-INNERMOST_FRAMES))
            return JSONResponse({"error": f"{type(error).__name__}: {error}", "details": details})

    async def _run(self, function: HostedFunction, call: Call) -> Any:
        metadata = {name: datum_of(value) for name, value in call.metadata.items()}
        result = await self._invoker.run(function, datum_of(call.trigger), metadata)
        is_activity = function.kind == "activityTrigger"
        return self._invoker.encode_result(function, result).value if is_activity else None

    async def _run_orchestrator(self, function: HostedFunction, trigger: Datum) -> Response:
        context = decode(function.trigger_parameter, trigger, {})
        call = functools.partial(function.call, **{function.trigger_parameter.name: context})
        try:
            # The orchestrator runs in a thread, so that blocking code in it doesn't block the worker.
            state = await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except Exception as error:  # noqa: BLE001  # raised by the SDK if an orchestration failed
            return JSONResponse({"error": str(error), "details": ""})
        return JSONResponse({"result": state})

    async def _serve(self, scope: Scope, receive: Receive, send: Send, call: dict[str, Any]) -> None:
        call["reached"] = False

        async def send_if_reached(message: Any) -> None:
            if not call["reached"]:
                await _never()  # the extension has no such route, so the real worker would also wait forever
            await send(message)

        hidden = {CALL_HEADER.encode(), KEY_HEADER.encode()}
        headers = [header for header in scope["headers"] if header[0] not in hidden]
        await self._web_app({**scope, "headers": headers, CALL_HEADER: call}, receive, send_if_reached)


def _build_web_app(functions: dict[str, HostedFunction], invoker: Invoker) -> ASGIApp:
    if not any(function.kind == "httpTrigger" for function in functions.values()):
        return PlainTextResponse("", status_code=404)
    extension = importlib.import_module(extension_base.ModuleTrackerMeta.get_module())
    request_type = extension_base.RequestTrackerMeta.get_request_type()
    synchronizer = extension_base.RequestTrackerMeta.get_synchronizer()

    async def catch_all(request):  # type: ignore[no-untyped-def]
        call = request.scope[CALL_HEADER]
        if request.headers.get(INVOCATION_HEADER) != call["id"]:
            # The client sent an unknown invocation id. The real worker would wait forever, too.
            await _never()
        call["reached"] = True
        # As in the real worker, this raises an error for functions that read a catch-all parameter.
        synchronizer.sync_route_params(request, {})
        return await _respond(invoker, functions[call["function"]], request)

    # FastAPI passes the request to a handler only if the parameter is annotated.
    catch_all.__annotations__["request"] = request_type
    web_app = extension.WebApp()
    web_app.route(catch_all)
    built: ASGIApp = web_app.get_app()
    return built


async def _respond(invoker: Invoker, function: HostedFunction, request: object) -> Any:
    try:
        response = await invoker.call(function, request)
    except HTTPException:
        raise  # FastAPI, which the extension uses, converts this exception to a response
    except Exception:  # app code may raise any exception, which becomes a 500
        log.exception("function %s failed", function.name)
        return PlainTextResponse("", status_code=500)
    if response is None:
        log.error("function %s returned None; the response is a 500", function.name)
        return PlainTextResponse("", status_code=500)
    return response


async def _never() -> None:
    await asyncio.Event().wait()


class _Server(uvicorn.Server):
    """A uvicorn server that only SIGTERM stops. Ctrl-C also reaches the host, which then stops the worker
    gracefully.
    """

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.stop)
        yield

    def stop(self) -> None:
        self.should_exit = True


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_host, daemon=True).start()
    set_up_logging()
    arguments = _arguments()
    folder, module_name = locate(arguments.app)
    try:
        functions = index_functions(load_app(module_name, folder))
        options = read_host_options(folder)
    except HostError as error:
        print(f"local.host: {error}", file=sys.stderr, flush=True)
        sys.exit(EXIT_CANNOT_START)
    key = os.environ.pop(KEY_SETTING)
    rpc_path = f"{RPC_PREFIX}/{key}"  # the SDK sends the key only as a part of the URL
    invoker = Invoker(client_binding_json(arguments.base_url, options.task_hub, rpc_path))
    app = WorkerApp(functions, invoker, key)

    async def serve() -> None:
        config = uvicorn.Config(
            app,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=3600,  # connections are closed only by the host
            timeout_graceful_shutdown=1,  # the host has already waited for running calls
        )
        await _Server(config).serve(sockets=[socket.socket(fileno=arguments.socket)])
        invoker.close()

    asyncio.run(serve())
    if invoker.running_threads:
        # Threads of synchronous functions may never end, so exit without waiting for them.
        logging.shutdown()
        os._exit(0)


def _end_with_host() -> None:
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m local.host.worker", description=__doc__)
    parser.add_argument(
        "--socket", type=int, required=True, help=("number of the file descriptor of the listening socket")
    )
    parser.add_argument("--app", required=True)
    parser.add_argument("--base-url", required=True, help="URL under which the host is reachable")
    return parser.parse_args()


if __name__ == "__main__":
    main()
