"""A streaming response that waits for a slow reader, and not for ever for one who reads nothing.

The server sends no faster than a reader takes: what is made waits until the last piece has left, so a reader
costs one piece and the socket's buffers (64 KiB in uvicorn, the rest in the kernel). Whoever takes nothing is
let go, and may take the stream up again.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from functions.http_io import StreamingResponse
from shared.telemetry import get_logger

STUCK_AFTER_S = 60.0
"""For one piece. uvicorn takes up again when 48 KiB of its buffer have left: at 1 KB/s that takes 48 s."""

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_Streaming: Any = StreamingResponse  # the extension's name for its web framework's class


class _ReaderStuckError(Exception):
    """One piece has not left in STUCK_AFTER_S."""


class PatientResponse(_Streaming):  # type: ignore[misc]
    """Pieces as they come; ends without its last one when the reader is stuck."""

    async def stream_response(self, send: Send) -> None:
        """Send all pieces. Whatever ends it, what makes the pieces is closed at once."""

        async def send_in_time(message: MutableMapping[str, Any]) -> None:
            try:
                async with asyncio.timeout(STUCK_AFTER_S):
                    await send(message)
            except TimeoutError:
                raise _ReaderStuckError from None

        try:
            await super().stream_response(send_in_time)
        except _ReaderStuckError:
            get_logger().warning("stream.reader_stuck", error_type="TimeoutError")
        finally:
            await self.body_iterator.aclose()
