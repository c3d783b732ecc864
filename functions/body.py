"""Bodies as they arrive, bounded in time: whoever sends slowly, or stops, holds no request for ever."""

import asyncio
from collections.abc import AsyncIterator

from shared.errors import PayloadTooLargeError, SlowBodyError

JSON_S = 30.0  # 256 KiB take 9 KB/s then: less than any line of today
SILENCE_S = 30.0  # between two pieces of a file; a line that is dead so long is not coming back
FILE_S = 3600.0  # as an upload's address is good: 500 MB at 1.1 Mbit/s


async def read_body(parts: AsyncIterator[bytes], max_bytes: int, within_s: float = JSON_S) -> bytes:
    """A small body, whole.

    Raises:
        PayloadTooLargeError: over `max_bytes`; reading stops there.
        SlowBodyError: it did not come within `within_s`.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(within_s):
            async for part in parts:
                body += part
                if len(body) > max_bytes:
                    raise too_large("body", max_bytes, "Upload large material as a document.")
    except TimeoutError:
        raise _slow(within_s) from None
    return bytes(body)


async def file_parts(
    parts: AsyncIterator[bytes], silence_s: float = SILENCE_S, within_s: float = FILE_S
) -> AsyncIterator[bytes]:
    """A large body, piece by piece.

    Raises:
        SlowBodyError: nothing came for `silence_s`, or the whole takes longer than `within_s`.
    """
    end = asyncio.get_running_loop().time() + within_s
    while True:
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(min(now + silence_s, end)):
                part = await anext(parts, None)
        except TimeoutError:
            raise _slow(min(silence_s, end - now)) from None
        if part is None:
            return
        yield part


def too_large(what: str, max_bytes: int, hint: str) -> PayloadTooLargeError:
    """The refusal of a body or a file, with the limit for programs to read."""
    headers = {"X-Max-Body-Bytes": str(max_bytes)}
    return PayloadTooLargeError(f"The {what} is larger than {max_bytes:,} bytes.", hint, headers=headers)


def _slow(seconds: float) -> SlowBodyError:
    # What is left of the body would be taken for the next request.
    return SlowBodyError(
        f"The body did not arrive within {max(0.0, seconds):.0f} s.",
        "Send it again over a better line; large files by POST /documents/uploads.",
        headers={"Connection": "close"},
    )
