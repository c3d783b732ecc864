"""Recording proxies between the app and its servers, which log when each request begins and ends.

Without pipelining, requests and responses alternate on an HTTP/1.1 connection: an exchange begins with the
first bytes that the client sends after a response, and ends with the last bytes of the next response.
"""

import asyncio
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_PIECE = 1 << 16
_LATER_BYTES = re.compile(rb"(?im)^(?:x-ms-)?range: bytes=[1-9]")


@dataclass
class Exchange:
    """A request with its response. Times are in seconds since the epoch, as in the durable history."""

    service: str
    port: int
    began: float
    ended: float
    request: bytearray = field(default_factory=bytearray)
    is_answered: bool = False

    @property
    def line(self) -> str:
        """The method and path of the request."""
        return self.request.split(b"\r\n", 1)[0].decode(errors="replace").rsplit(" ", 1)[0]

    @property
    def is_poll(self) -> bool:
        """Whether the request polls for events or messages. Such requests belong to no step."""
        is_stream = "events.jsonl" in self.line and self.line.startswith("GET")
        is_listener = self.service == "queue" and self.line.startswith("GET")
        return is_listener or (is_stream and _LATER_BYTES.search(self.request) is not None)


class Taps:
    """Recording proxies of all servers, which run on an event loop in a separate thread."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self._loop = asyncio.new_event_loop()
        self._serving: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @contextmanager
    def serving(self, ports: dict[str, int]) -> Iterator[dict[str, int]]:
        """Start a proxy for each server in `ports` (port by name), and yield the ports of the proxies by the
        same names.
        """
        self._thread.start()
        opened = {name: self._open(name, port) for name, port in ports.items()}
        try:
            yield opened
        finally:
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def between(self, began: float, ended: float) -> list[Exchange]:
        """Return the recorded requests that began between two times, in order."""
        return [one for one in list(self.exchanges) if began <= one.began <= ended]

    def _open(self, service: str, port: int) -> int:
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = self._loop.create_task(self._serve(service, port, reader, writer))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

        async def start() -> int:
            server = await asyncio.start_server(accept, "127.0.0.1", 0)
            listening: int = server.sockets[0].getsockname()[1]
            return listening

        return asyncio.run_coroutine_threadsafe(start(), self._loop).result(10)

    async def _close(self) -> None:
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(
        self, service: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", port)
        open_ones: list[Exchange] = []

        def asked(piece: bytes) -> None:
            if not open_ones or open_ones[-1].is_answered:
                now = time.time()
                open_ones[:] = [Exchange(service, port, now, now)]
                self.exchanges.append(open_ones[-1])
            open_ones[-1].request += piece

        def answered(_piece: bytes) -> None:
            if open_ones:
                open_ones[-1].ended, open_ones[-1].is_answered = time.time(), True

        await asyncio.gather(_pump(reader, to_server, asked), _pump(from_server, writer, answered))


async def _pump(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, note: Callable[[bytes], None]
) -> None:
    with suppress(ConnectionError):
        while piece := await source.read(_PIECE):
            note(piece)
            target.write(piece)
            await target.drain()
    with suppress(ConnectionError):
        target.close()
