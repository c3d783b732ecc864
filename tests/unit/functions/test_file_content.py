"""Tests for the content of files in forms."""

import hashlib
from collections.abc import AsyncIterator

import pytest

from functions.http.bodies import MAX_FIELDS_BYTES
from functions.http.file_content import CountedContent, refuse_large
from shared.platform.errors import PayloadTooLargeError


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def test_the_digest_covers_what_was_read_and_the_rest() -> None:
    content = CountedContent(pieces(b"a", b"b", b"c"), 3)
    assert await anext(aiter(content)) == b"a"
    assert await content.digest_of_rest() == hashlib.sha256(b"abc").hexdigest()


async def test_reading_stops_at_the_limit() -> None:
    content = aiter(CountedContent(pieces(b"ab", b"cd", b"ef"), 3))
    assert await anext(content) == b"ab"
    with pytest.raises(PayloadTooLargeError, match="larger than 3 bytes") as refused:
        await anext(content)
    assert refused.value.headers == {"X-Max-Body-Bytes": "3"}


@pytest.mark.parametrize("length", [None, "", "many", "3", str(MAX_FIELDS_BYTES + 3)])
def test_a_form_that_may_fit_is_read(length: str | None) -> None:
    refuse_large(length, 3)


def test_a_form_that_cannot_fit_is_refused_unread() -> None:
    with pytest.raises(PayloadTooLargeError):
        refuse_large(str(MAX_FIELDS_BYTES + 4), 3)
