"""An HTTP server with scripted responses, for faults that the local servers don't have: overload, lost
connections, hangs.
"""

import asyncio
from dataclasses import dataclass, field

OK = "200 OK"
FOR_EVER_S = 3600.0


@dataclass(frozen=True)
class Answer:
    """A scripted HTTP response. With `lost`, the connection ends without a response; `delay_s` delays it.

    With `stalls`, the last byte of the body that the headers announce is never sent.
    """

    status: str = OK
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    lost: bool = False
    delay_s: float = 0.0
    stalls: bool = False


class ScriptedServer:
    """A server that returns the next response for each request, and repeats the last one. It is an async
    context manager.
    """

    def __init__(self, *answers: Answer) -> None:
        self.requests: list[str] = []
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self._answers = list(answers)
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def endpoint(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> "ScriptedServer":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._serving:  # some handlers may hang
            task.cancel()
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().split("\r\n")
                self.bodies.append(await reader.readexactly(_content_length(lines)))
                self.requests.append(lines[0])
                self.heads.append(head.decode())
                answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
                await asyncio.sleep(answer.delay_s)
                if answer.lost:
                    break
                writer.write(_encoded(answer))
                await writer.drain()
                await asyncio.sleep(FOR_EVER_S if answer.stalls else 0)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has disconnected
        finally:
            writer.close()


def _content_length(lines: list[str]) -> int:
    headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
    return int(headers.get("content-length", "0"))


def _encoded(answer: Answer) -> bytes:
    headers = {
        "content-type": "application/json",
        "content-length": str(len(answer.body) + answer.stalls),
        **answer.headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {answer.status}\r\n{lines}\r\n".encode() + answer.body
