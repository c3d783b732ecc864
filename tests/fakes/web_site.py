"""A web site for tests: scripted responses over real sockets, under host names that only tests resolve."""

import asyncio
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from shared.platform.web_addresses import may_dial

Answers = Mapping[str, bytes | Callable[[asyncio.StreamWriter], Any]]


def answer(body: bytes = b"", status: int = 200, kind: str = "text/html", **headers: str) -> bytes:
    """Return an HTTP response as bytes."""
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + body


class WebSite:
    """A server that returns responses by path and records every request line. It is an async context
    manager.
    """

    def __init__(self, answers: Answers) -> None:
        self.answers = dict(answers)
        self.requests: list[str] = []
        self.heads: list[str] = []
        self.port = 0
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "WebSite":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            await self._answer(reader, writer)
        finally:
            writer.transport.abort()
            self._serving.discard(task)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            path = head.split(" ")[1]
            host = next(line[6:] for line in head.splitlines() if line.lower().startswith("host: "))
            self.heads.append(head)
            self.requests.append(f"{host}{path}")
            response = self.answers.get(path.partition("?")[0], answer(status=404))
            if isinstance(response, bytes):
                writer.write(response)
            else:
                await response(writer)
            await writer.drain()
            writer.close()
            await writer.wait_closed()

    def allows(self, address: str, port: int) -> bool:
        """Return whether the app may connect to an address: the app's rule allows it, or it is this server's.
        Tests inject this check.
        """
        return (address, port) == ("127.0.0.1", self.port) or may_dial(address, port)


class SocketLog:
    """The connections and name lookups of this process, as reported by Python's audit events."""

    def __init__(self) -> None:
        self.dialled: list[tuple[str, int]] = []
        self.looked_up: list[str] = []


_OPEN: list[SocketLog] = []
_INSTALLED: list[bool] = []


@contextmanager
def socket_log() -> Iterator[SocketLog]:
    """Record every attempted connection and name lookup of this process, whatever library makes it."""
    import sys

    if not _INSTALLED:  # an audit hook can't be removed, so it is installed only once
        sys.addaudithook(_note)
        _INSTALLED.append(True)
    log = SocketLog()
    _OPEN.append(log)
    try:
        yield log
    finally:
        _OPEN.remove(log)


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if not _OPEN:
        return
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        for log in _OPEN:
            log.dialled.append((str(arguments[1][0]), int(arguments[1][1])))
    elif event == "socket.getaddrinfo":
        for log in _OPEN:
            log.looked_up.append(str(arguments[0]))


Names = Mapping[str, list[str] | Iterator[str]]


def resolver(names: Names, port: int) -> Callable[..., list[Any]]:
    """Return a replacement for `socket.getaddrinfo` that resolves the names of tests and IPv4 literals.

    Args:
        names: addresses by name. An iterator yields a different address for each call, as in DNS rebinding.
        port: the port that replaces 80 and 443 for addresses of this machine.
    """
    real = socket.getaddrinfo

    def look_up(host: Any, service: Any, *args: Any, **options: Any) -> list[Any]:
        name = host.decode() if isinstance(host, bytes) else str(host)
        _note("socket.getaddrinfo", (name,))
        if name not in names:
            # Accepts every spelling of an address that inet_aton(3) accepts, so that no name server is asked.
            with suppress(OSError):
                socket.inet_aton(name)
                return real(host, service, *args, **options)
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        entry = names[name]
        addresses = entry if isinstance(entry, list) else [next(entry)]
        infos = []
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            to = port if address == "127.0.0.1" else int(service or 0)
            place = (address, to, 0, 0) if family == socket.AF_INET6 else (address, to)
            infos.append((family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", place))
        return infos

    return look_up
