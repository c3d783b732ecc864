"""Streaming readers for request bodies, and for multipart forms whose fields precede a single file.

Only one piece of the body is in memory at a time, whatever the size of the file. Therefore the fields must
precede the file. Browsers and HTTP libraries keep the order in which a form was built.
Source: RFC 7578; the parser is python-multipart's push parser.
"""

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from shared.platform.errors import CallerError, PayloadTooLargeError, SlowBodyError

# `python_multipart` defines `MultipartCallbacks` only for type checkers, so importing it at run time would
# fail.
if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

# Maximum size of a JSON body. Uploaded files have separate limits.
MAX_BODY_BYTES = 256 * 1024
# Time limit for a JSON body. It suffices for 256 KiB at 9 KB/s.
JSON_S = 30.0
# Longest pause between two pieces of a file. After a longer pause, the connection is considered dead.
SILENCE_S = 30.0
# Time limit for a file, equal to the lifetime of an upload URL. It suffices for 500 MB at 1.1 Mbit/s.
FILE_S = 3600.0


async def read_body(parts: AsyncIterator[bytes], max_bytes: int, within_s: float = JSON_S) -> bytes:
    """Read a small request body into memory.

    Raises:
        PayloadTooLargeError: the body exceeds `max_bytes`; reading stops there.
        SlowBodyError: the body did not arrive within `within_s` seconds.
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
    """Yield the pieces of a large request body as they arrive.

    Raises:
        SlowBodyError: nothing arrived for `silence_s` seconds, or the body took longer than `within_s`
        seconds.
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
    """Return the error for a body or file that exceeds its limit. Its `X-Max-Body-Bytes` header states the
    limit.
    """
    headers = {"X-Max-Body-Bytes": str(max_bytes)}
    return PayloadTooLargeError(f"The {what} is larger than {max_bytes:,} bytes.", hint, headers=headers)


def _slow(seconds: float) -> SlowBodyError:
    # The connection must be closed, because the server would parse the unread rest of the body as the next
    # request.
    return SlowBodyError(
        f"The body did not arrive within {max(0.0, seconds):.0f} s.",
        "Use a faster connection, or send large files through POST /documents/uploads.",
        headers={"Connection": "close"},
    )


# Maximum size of all form fields, with room for 500 principals of 200 characters.
MAX_FIELDS_BYTES = 256 * 1024
# Size that is counted for each form part in addition to its content, so that many empty parts also reach the
# limit.
_PART_BYTES = 200
_FORM_HINT = "Send multipart/form-data with the file as the last part, named `file`."
# Matches a file name that states its character encoding (RFC 5987).
_EXTENDED_NAME = re.compile(r"filename\*\s*=\s*utf-8''([^;\s]+)", re.IGNORECASE)


@dataclass
class _Part:
    """A part of a multipart form, collected while its headers and content arrive."""

    headers: dict[str, bytes] = field(default_factory=dict)
    name: str = ""
    filename: str | None = None
    value: bytearray = field(default_factory=bytearray)


class FileForm:
    """A multipart form that is read while it arrives. Call `open` to fill `fields` with the form fields, then
    iterate over `parts` to read the file.
    """

    def __init__(self, body: AsyncIterator[bytes], content_type: str) -> None:
        """Create a form reader from the body stream and the Content-Type header of a request.

        Raises:
            CallerError: the body isn't a multipart form.
        """
        self._parser = self._make_parser(content_type)
        self.fields: dict[str, list[str]] = {}
        self.filename = ""
        self._body = body
        self._part = _Part()
        self._header_name = bytearray()
        self._header_value = bytearray()
        self._fields_bytes = 0
        self._content: deque[bytes] = deque()
        self._file_state = "awaited"  # "awaited" until the file begins, "open" while it arrives, then "ended"

    async def open(self) -> None:
        """Read the form fields into `fields`, up to the start of the file. Raises `CallerError` if the form
        has no file.

        Raises:
            CallerError: the form is malformed, or has no file.
            PayloadTooLargeError: the fields exceed MAX_FIELDS_BYTES.
        """
        while self._file_state == "awaited":
            if not await self._read_more():
                raise CallerError("The form does not contain a file.", _FORM_HINT)

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the content of the file as it arrives.

        Raises:
            CallerError: the form is truncated, or a part follows the file.
        """
        while True:
            while self._content:
                yield self._content.popleft()
            if self._file_state == "ended":
                break
            if not await self._read_more():
                raise CallerError("The upload ended before the file did.", "Send the file again.")
        while await self._read_more():
            # Keep reading after the end of the file, so that a further part raises an error.
            continue

    async def _read_more(self) -> bool:
        """Feed the next piece of the body to the parser. Return False if the body has ended."""
        piece = await anext(self._body, None)
        if piece is None:
            return False
        try:
            self._parser.write(piece)
        except FormParserError:
            raise CallerError("The form is not valid multipart/form-data.", _FORM_HINT) from None
        return True

    def _make_parser(self, content_type: str) -> MultipartParser:
        kind, options = parse_options_header(content_type)
        try:
            if kind == b"multipart/form-data" and options.get(b"boundary"):
                return MultipartParser(options[b"boundary"], self._callbacks())
        except FormParserError:
            pass
        raise CallerError("The body is not a multipart form.", _FORM_HINT)

    def _callbacks(self) -> "MultipartCallbacks":
        return {
            "on_part_begin": self._begin_part,
            "on_header_field": self._add_header_name,
            "on_header_value": self._add_header_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._open_part,
            "on_part_data": self._add_data,
            "on_part_end": self._end_part,
        }

    def _begin_part(self) -> None:
        if self._file_state != "awaited":
            raise CallerError("The file must be the last part of the form.", _FORM_HINT)
        self._part = _Part()
        self._count(_PART_BYTES)

    def _add_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _add_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _end_header(self) -> None:
        self._part.headers[self._header_name.decode("latin-1").lower()] = bytes(self._header_value)
        self._header_name.clear()
        self._header_value.clear()

    def _open_part(self) -> None:
        disposition = self._part.headers.get("content-disposition", b"")
        _, options = parse_options_header(disposition)
        self._part.name = options.get(b"name", b"").decode("utf-8", "replace")
        self._part.filename = _filename(disposition, options)
        if self._part.filename is not None:
            if self._part.name != "file":
                raise CallerError(f"The file part has the name {self._part.name[:40]!r}.", _FORM_HINT)
            self.filename = self._part.filename
            self._file_state = "open"

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        if self._file_state == "open":
            self._content.append(data[start:end])
            return
        self._part.value += data[start:end]
        self._count(end - start)

    def _end_part(self) -> None:
        if self._file_state == "open":
            self._file_state = "ended"
            return
        try:
            value = self._part.value.decode()
        except UnicodeDecodeError:
            raise CallerError(
                f"The form field {self._part.name[:40]!r} is not valid UTF-8.", _FORM_HINT
            ) from None
        self.fields.setdefault(self._part.name, []).append(value)

    def _count(self, size: int) -> None:
        self._fields_bytes += size
        if self._fields_bytes > MAX_FIELDS_BYTES:
            headers = {"X-Max-Body-Bytes": str(MAX_FIELDS_BYTES)}
            detail = "The form fields are too large."
            raise PayloadTooLargeError(detail, "Shorten the form fields.", headers=headers)


def _filename(disposition: bytes, options: dict[bytes, bytes]) -> str | None:
    """Return the file name in a Content-Disposition header, or None if the part is not a file."""
    extended = _EXTENDED_NAME.search(disposition.decode("utf-8", "replace"))
    if extended is not None:
        return unquote(extended[1])
    filename = options.get(b"filename")
    return None if filename is None else filename.decode("utf-8", "replace")
