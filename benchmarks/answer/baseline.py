"""The baseline for a question: its model and search requests, repeated without the app.

Requests that overlapped are sent together, the others in sequence; response contents are ignored.
"""

import asyncio
import time
from collections.abc import Sequence

from benchmarks.answer.tap import Exchange

_PIECE = 1 << 16
_TIMEOUT_S = 60.0


def replay_s(exchanges: Sequence[Exchange]) -> float:
    """Repeat the recorded model and search requests, directly to their servers, and return the elapsed
    seconds.
    """
    waves = _waves([one for one in exchanges if one.service in ("model", "search")])
    began = time.perf_counter()
    asyncio.run(_send_all(waves))
    return time.perf_counter() - began


async def _send_all(waves: Sequence[Sequence[Exchange]]) -> None:
    for wave in waves:
        await asyncio.wait_for(asyncio.gather(*map(_send, wave)), _TIMEOUT_S)


async def _send(exchange: Exchange) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", exchange.port)
    head, _, body = bytes(exchange.request).partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
    writer.write(b"\r\n".join([*lines, b"Connection: close"]) + b"\r\n\r\n" + body)
    await writer.drain()
    while await reader.read(_PIECE):
        pass
    writer.close()


def _waves(exchanges: Sequence[Exchange]) -> list[list[Exchange]]:
    """Group requests that overlap in time. A request joins the current group if it began before any request
    of the group had ended.
    """
    waves: list[list[Exchange]] = []
    for one in sorted(exchanges, key=lambda exchange: exchange.began):
        if waves and one.began < max(before.ended for before in waves[-1]):
            waves[-1].append(one)
        else:
            waves.append([one])
    return waves
