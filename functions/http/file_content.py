"""Files in forms: their limits, and their content while it arrives."""

import hashlib
from collections.abc import AsyncIterator

from fastapi import Request

from functions.http.bodies import MAX_FIELDS_BYTES, too_large
from functions.http.requests import count_call
from shared.access.daily_use import SENDING, Usage
from shared.access.models import UserContext
from shared.platform.errors import PayloadTooLargeError
from shared.wiring import Services


async def admit_document(req: Request, user: UserContext, services: Services) -> None:
    """Count a call and a document against the limits of the user. Raises the errors of `count_call`."""
    await count_call(req, user, services, needs=SENDING, used=Usage(documents=1))


class CountedContent:
    """File content that is counted and hashed while it is read. Reading more than `max_bytes` raises
    `PayloadTooLargeError`.
    """

    def __init__(self, parts: AsyncIterator[bytes], max_bytes: int) -> None:
        self._parts = parts
        self._max_bytes = max_bytes
        self._size_bytes = 0
        self._digest = hashlib.sha256()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._parts:
            self._size_bytes += len(part)
            if self._size_bytes > self._max_bytes:
                raise _too_large_for_a_form(self._max_bytes)
            self._digest.update(part)
            yield part

    async def digest_of_rest(self) -> str:
        """Read the remaining content, and return the SHA-256 digest of the whole content in hexadecimal."""
        async for _ in self:
            continue
        return self._digest.hexdigest()


def refuse_large(content_length: str | None, max_bytes: int) -> None:
    """Raise `PayloadTooLargeError` if the Content-Length of a form exceeds the limit, before its body is
    read.
    """
    if content_length and content_length.isdigit() and int(content_length) > max_bytes + MAX_FIELDS_BYTES:
        raise _too_large_for_a_form(max_bytes)


def max_form_bytes(services: Services) -> int:
    """Return the maximum size of a file in a form."""
    limits = services.settings.ingestion
    return min(limits.max_upload_bytes, limits.max_document_bytes)


def _too_large_for_a_form(max_bytes: int) -> PayloadTooLargeError:
    hint = "Request an upload URL with POST /documents/uploads, and send the file there."
    return too_large("file", max_bytes, hint)
