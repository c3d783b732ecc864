"""Streaming of request bodies, and of forms with fields followed by one file.

Memory holds one piece of the body, whatever the file's size. So the fields must precede the file; browsers
and HTTP libraries keep the order in which the form was built.
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

if TYPE_CHECKING:  # defined by the package for type checkers only
    from python_multipart.multipart import MultipartCallbacks

MAX_BODY_BYTES = 256 * 1024  # limit of JSON bodies; files have their own
JSON_S = 30.0  # enough for 256 KiB at 9 KB/s
SILENCE_S = 30.0  # between two pieces of a file; longer silence means a dead connection
FILE_S = 3600.0  # the validity of an upload URL; enough for 500 MB at 1.1 Mbit/s


async def read_body(parts: AsyncIterator[bytes], max_bytes: int, within_s: float = JSON_S) -> bytes:
    """Read a small body into memory.

    Raises:
        PayloadTooLargeError: the body exceeds `max_bytes`; reading stops there.
        SlowBodyError: it did not arrive within `within_s`.
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
    """Yield a large body piece by piece.

    Raises:
        SlowBodyError: nothing arrived for `silence_s`, or the body takes longer than `within_s`.
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
    """Return the error for a body or file that exceeds its limit, which `X-Max-Body-Bytes` states."""
    headers = {"X-Max-Body-Bytes": str(max_bytes)}
    return PayloadTooLargeError(f"The {what} is larger than {max_bytes:,} bytes.", hint, headers=headers)


def _slow(seconds: float) -> SlowBodyError:
    # Close the connection, because the unread rest would be parsed as the next request.
    return SlowBodyError(
        f"The body did not arrive within {max(0.0, seconds):.0f} s.",
        "Retry over a faster connection; send large files by POST /documents/uploads.",
        headers={"Connection": "close"},
    )


MAX_FIELDS_BYTES = 256 * 1024  # 500 principals of 200 characters, with a reserve
_PART_BYTES = 200  # overhead counted for each part, so that many empty parts reach the limit too
_FORM_HINT = "Send multipart/form-data with the file as the last part, named `file`."
_EXTENDED_NAME = re.compile(r"filename\*\s*=\s*utf-8''([^;\s]+)", re.IGNORECASE)  # RFC 5987


@dataclass
class _Part:
    """A part of the form while it is being received."""

    headers: dict[str, bytes] = field(default_factory=dict)
    name: str = ""
    filename: str | None = None
    value: bytearray = field(default_factory=bytearray)


class FileForm:
    """A form that is being received. `open` completes `fields`; then `parts` yields the file."""

    def __init__(self, body: AsyncIterator[bytes], content_type: str) -> None:
        """Create a form reader for a request's body and Content-Type header.

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
        self._file_state = "awaited"  # "awaited" -> "open" -> "ended"

    async def open(self) -> None:
        """Read the fields, up to the start of the file.

        Raises:
            CallerError: the form is malformed, or has no file.
            PayloadTooLargeError: the fields exceed MAX_FIELDS_BYTES.
        """
        while self._file_state == "awaited":
            if not await self._read_more():
                raise CallerError("The form has no file.", _FORM_HINT)

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the file's content.

        Raises:
            CallerError: the form is truncated, or a part follows the file.
        """
        while True:
            while self._content:
                yield self._content.popleft()
            if self._file_state == "ended":
                break
            if not await self._read_more():
                raise CallerError("The upload was interrupted.", "Send the file again.")
        while await self._read_more():
            continue  # the closing boundary and any data after it

    async def _read_more(self) -> bool:
        """Feed one piece of the body to the parser. Returns False at the end."""
        piece = await anext(self._body, None)
        if piece is None:
            return False
        try:
            self._parser.write(piece)
        except FormParserError:
            raise CallerError("The form is malformed.", _FORM_HINT) from None
        return True

    def _make_parser(self, content_type: str) -> MultipartParser:
        kind, options = parse_options_header(content_type)
        try:
            if kind == b"multipart/form-data" and options.get(b"boundary"):
                return MultipartParser(options[b"boundary"], self._callbacks())
        except FormParserError:
            pass
        raise CallerError("The body is not a form with a file.", _FORM_HINT)

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
                raise CallerError(f"The file's part is named {self._part.name[:40]!r}.", _FORM_HINT)
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
            raise CallerError(f"The field {self._part.name[:40]!r} is not UTF-8.", _FORM_HINT) from None
        self.fields.setdefault(self._part.name, []).append(value)

    def _count(self, size: int) -> None:
        self._fields_bytes += size
        if self._fields_bytes > MAX_FIELDS_BYTES:
            headers = {"X-Max-Body-Bytes": str(MAX_FIELDS_BYTES)}
            detail = "The form's fields are too large."
            raise PayloadTooLargeError(detail, "Shorten the other fields.", headers=headers)


def _filename(disposition: bytes, options: dict[bytes, bytes]) -> str | None:
    """Return the file name of a part; None if the part isn't a file."""
    extended = _EXTENDED_NAME.search(disposition.decode("utf-8", "replace"))
    if extended is not None:
        return unquote(extended[1])
    filename = options.get(b"filename")
    return None if filename is None else filename.decode("utf-8", "replace")
