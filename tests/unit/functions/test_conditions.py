"""Tests for the Accept and Range headers and the responses to them."""

import httpx
import pytest

from functions.http.conditions import (
    acceptable_coding,
    byte_span,
    holds,
    is_conditional,
    is_known,
    preferred_type,
    require_match,
)
from shared.platform.blobs import ByteSpan
from shared.platform.errors import PreconditionFailedError, RangeError
from shared.platform.names import DOCUMENTS
from shared.wiring import Services
from tests.unit.functions.conftest import AsUser
from tests.unit.functions.http_app import IngestingClient, problem_of

HTML, JSON, MARKDOWN = "text/html", "application/json", "text/markdown"

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (None, HTML),
        ("", HTML),
        ("*/*", HTML),
        (BROWSER, HTML),
        ("application/json", JSON),
        ("application/json, */*;q=0.1", JSON),
        ("application/json;q=0.5, text/html", HTML),
        ("text/markdown", MARKDOWN),
        ("TEXT/Markdown ; Q=0.9, text/html;q=0.8", MARKDOWN),
        ("text/*;q=0.5, application/json;q=0.4", HTML),
        ("text/html;q=0, */*", JSON),
        ("text/html;q=1, application/json", HTML),
        ("image/png", HTML),
        (";;,,=,q", HTML),
        ("application/json;q=nan", JSON),
    ],
)
def test_the_best_that_is_offered(accept: str | None, kind: str) -> None:
    assert preferred_type(accept, (HTML, JSON, MARKDOWN)) == kind


@pytest.mark.parametrize(
    ("accept_encoding", "coding"),
    [
        (None, None),
        ("", None),
        ("identity", None),
        ("gzip", "gzip"),
        ("GZIP, br", "br"),
        ("br;q=0, gzip;q=0.5", "gzip"),
        ("*", "br"),
        ("*;q=0", None),
        ("br;q=0, *", "gzip"),
    ],
)
def test_the_first_coding_that_is_accepted(accept_encoding: str | None, coding: str | None) -> None:
    assert acceptable_coding(accept_encoding, ("br", "gzip")) == coding


@pytest.mark.parametrize(
    ("if_range", "counts"),
    [(None, True), ('"v1"', True), (' "v1" ', True), ('"v2"', False), ('W/"v1"', False), ("v1", False)],
)
def test_a_range_counts_for_the_version_that_the_caller_has(if_range: str | None, counts: bool) -> None:
    assert holds(if_range, "v1") is counts


@pytest.mark.parametrize(
    ("if_none_match", "expected"),
    [(None, False), ("", False), ('"v1"', True), ('W/"v1"', True), ('"v0", "v1"', True), ('"v2"', False)],
)
def test_a_version_that_the_caller_has_is_known(if_none_match: str | None, expected: bool) -> None:
    assert is_known(if_none_match, "v1") is expected


@pytest.mark.parametrize(
    ("if_match", "conditional", "passes"),
    [
        (None, False, True),
        ("*", False, True),
        (" * ", False, True),
        ('"v1"', True, True),
        ('"v0", "v1"', True, True),
        ('"v2"', True, False),
        ('W/"v1"', True, False),
    ],
)
def test_a_change_may_be_for_one_version_only(if_match: str | None, conditional: bool, passes: bool) -> None:
    headers = {} if if_match is None else {"if-match": if_match}
    assert is_conditional(headers) is conditional
    if passes:
        require_match(headers, "v1")
    else:
        with pytest.raises(PreconditionFailedError):
            require_match(headers, "v1")


CONTENT = b"# Herons\n\nHerons stand."


@pytest.fixture
async def address(durable: IngestingClient, user: AsUser) -> str:
    response = await user("anna").post("/documents", files={"file": ("ü <b>.md", CONTENT)})
    await durable.run()
    return f"/documents/{response.json()['doc_id']}/content"


async def get(client: httpx.AsyncClient, address: str, span: str | None = None) -> httpx.Response:
    return await client.get(address, headers={"Range": span} if span else {})


async def test_the_file_comes_back_as_it_was_and_is_not_rendered(user: AsUser, address: str) -> None:
    answered = await get(user("anna"), address)
    assert answered.content == CONTENT
    assert answered.headers["content-length"] == str(len(CONTENT))
    assert answered.headers["content-type"] == "application/octet-stream"
    assert answered.headers["content-disposition"] == "attachment; filename*=UTF-8''%C3%BC%20%3Cb%3E.md"
    assert answered.headers["x-content-type-options"] == "nosniff"


async def test_a_part_of_it_is_a_part(user: AsUser, address: str) -> None:
    answered = await get(user("anna"), address, "bytes=2-7")
    assert (answered.status_code, answered.content) == (206, b"Herons")
    assert answered.headers["content-range"] == f"bytes 2-7/{len(CONTENT)}"
    assert problem_of(await get(user("anna"), address, "bytes=500-")) == (416, "RangeError")


@pytest.mark.parametrize("validator", ['"another"', 'W/"{etag}"', "{etag}", "Sat, 21 Nov 2026 00:00:00 GMT"])
async def test_a_part_of_another_version_is_not_given_but_the_whole(
    user: AsUser, address: str, validator: str
) -> None:
    etag = (await get(user("anna"), address)).headers["etag"].strip('"')
    headers = {"Range": "bytes=2-7", "If-Range": validator.format(etag=etag)}
    answered = await user("anna").get(address, headers=headers)
    assert (answered.status_code, answered.content) == (200, CONTENT)


async def test_a_part_of_the_same_version_is_given(user: AsUser, address: str) -> None:
    etag = (await get(user("anna"), address)).headers["etag"]
    headers = {"Range": "bytes=0-7", "If-Range": etag}
    answered = await user("anna").get(address, headers=headers)
    assert (answered.status_code, answered.content) == (206, CONTENT[:8])


async def test_the_first_and_the_last_bytes_make_the_whole(user: AsUser, address: str) -> None:
    parts = [await get(user("anna"), address, span) for span in ("bytes=0-9", "bytes=10-")]
    assert [part.status_code for part in parts] == [206, 206]
    assert b"".join(part.content for part in parts) == CONTENT


async def test_whoever_may_not_read_it_does_not_get_it(user: AsUser, address: str) -> None:
    assert problem_of(await get(user("ben"), address)) == (404, "DocumentNotFoundError")


async def test_a_file_that_is_gone_is_an_error_and_no_half_answer(
    services: Services, user: AsUser, address: str
) -> None:
    async for blob in services.blobs.list_blobs(DOCUMENTS):
        await services.blobs.delete(DOCUMENTS, blob.name)
    assert problem_of(await get(user("anna"), address)) == (404, "DocumentNotFoundError")


@pytest.mark.parametrize(
    ("header", "span"),
    [
        (None, None),
        ("", None),
        ("bytes=0-", (0, 10)),
        ("bytes=0-0", (0, 1)),
        ("bytes=3-5", (3, 3)),
        ("bytes=3-500", (3, 7)),
        ("bytes=-4", (6, 4)),
        ("bytes=-400", (0, 10)),
        ("bytes=9-9", (9, 1)),
        ("bytes=5-3", None),
        ("bytes=-", None),
        ("bytes=0-1,4-5", None),
        ("lines=1-2", None),
        ("bytes=²-", None),
    ],
)
def test_one_span_of_bytes_is_understood(header: str | None, span: tuple[int, int] | None) -> None:
    expected = None if span is None else ByteSpan(first=span[0], length=span[1])
    assert byte_span(header, 10) == expected


@pytest.mark.parametrize(("header", "size"), [("bytes=10-", 10), ("bytes=-0", 10), ("bytes=0-", 0)])
def test_a_span_behind_the_end_is_refused(header: str, size: int) -> None:
    with pytest.raises(RangeError):
        byte_span(header, size)
