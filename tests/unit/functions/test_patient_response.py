"""Tests for streaming through the production server to readers who read slowly or not at all."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

import pytest
import uvicorn

from functions.http.responses import event_stream
from shared.access.user_limit_store import OpenStreams
from shared.platform.settings_groups.access import LimitSettings

PIECE = b"x" * 16_000 + b"\n\n"
PIECES = 200
BUFFERS = 64 * 1024 + 4 * len(PIECE) + 128 * 1024  # uvicorn, pieces in transit, two kernels


class Source:
    """A source that counts the requested pieces and records whether it was closed."""

    def __init__(self) -> None:
        self.piece_count = 0
        self.closed = asyncio.Event()

    async def pieces(self) -> AsyncIterator[bytes]:
        try:
            for _ in range(PIECES):
                self.piece_count += 1
                yield PIECE
        finally:
            self.closed.set()


@asynccontextmanager
async def served(source: Source) -> AsyncIterator[int]:
    """Serve the stream of the source as the response to every request, and yield the port."""

    async def app(scope, receive, send):  # type: ignore[no-untyped-def]
        place = OpenStreams().open("anna", LimitSettings())
        await event_stream(source.pieces(), place)(scope, receive, send)

    listener = socket.socket()
    # Otherwise the kernel buffers several megabytes.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)
    listener.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:  # noqa: ASYNC110  # uvicorn offers no event to wait for
        await asyncio.sleep(0.01)
    try:
        yield int(listener.getsockname()[1])
    finally:
        server.should_exit = True
        await serving


def connected(port: int) -> socket.socket:
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.connect(("127.0.0.1", port))
    reader.sendall(b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
    return reader


async def settled(source: Source) -> int:
    last_count = -1
    while last_count != source.piece_count:
        last_count = source.piece_count
        await asyncio.sleep(0.1)
    return last_count


async def test_nothing_is_made_for_a_reader_who_does_not_read() -> None:
    source = Source()
    async with served(source) as port:
        with closing(connected(port)):
            assert await settled(source) * len(PIECE) < BUFFERS
            assert not source.closed.is_set()
        await asyncio.wait_for(source.closed.wait(), 60)  # the connection was lost, so its source is closed


async def test_a_reader_who_takes_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("functions.http.responses.STUCK_AFTER_S", 0.2)
    source = Source()
    async with served(source) as port:
        with closing(connected(port)):
            await asyncio.wait_for(source.closed.wait(), 60)
            assert source.piece_count * len(PIECE) < BUFFERS


async def test_a_slow_reader_gets_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("functions.http.responses.STUCK_AFTER_S", 1.0)
    source = Source()
    received = b""
    async with served(source) as port:
        with closing(connected(port)) as reader:
            reader.setblocking(False)  # the interface of a plain socket
            while part := await asyncio.get_running_loop().sock_recv(reader, 65_536):
                received += part
                await asyncio.sleep(0.001)
    assert received.count(PIECE.strip()) == PIECES
    assert source.closed.is_set()
