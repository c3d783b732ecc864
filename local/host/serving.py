"""Serves a host with uvicorn, and stops it gracefully on SIGTERM or Ctrl-C."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn

from local.durable.database import StoreInUse
from local.host.functions_host import GRACE_S, FunctionsHost
from local.host.guard import StrictProtocol
from local.host.settings import HostError


class _Server(uvicorn.Server):
    """A uvicorn server without signal handlers, because the host stops its parts in a fixed order."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(host: FunctionsHost, listener: socket.socket, announce: Callable[[], None]) -> bool:
    """Serve the host until a signal arrives or a listener fails. Return False if a listener failed."""
    stopping = _stop_signal()
    config = uvicorn.Config(
        host.app,
        http=StrictProtocol,
        lifespan="off",
        log_config=None,
        access_log=False,
        # The Durable client keeps connections open for 15 s. Closing a connection earlier would race with its
        # next call, and a failed call makes the client close all its connections.
        timeout_keep_alive=120,
        timeout_graceful_shutdown=round(GRACE_S) + 2,
    )
    server = _Server(config)
    try:
        await host.start_durable()
    except StoreInUse as error:
        raise HostError(f"the data folder is used by another host: {error}") from error
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started and not serving.done():  # noqa: ASYNC110 # uvicorn offers no event to wait for
        await asyncio.sleep(0.01)
    host.start_listeners()
    announce()
    await _first_of(stopping, host.failed)
    host.app.stop()
    await host.stop()
    server.should_exit = True
    await serving
    await host.close()
    return not host.failed.is_set()


def _stop_signal() -> asyncio.Event:
    """Return an event that is set by SIGTERM or SIGINT. A second signal kills the process."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        stopping.set()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    return stopping


async def _first_of(*events: asyncio.Event) -> None:
    waiting = [asyncio.create_task(event.wait()) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
