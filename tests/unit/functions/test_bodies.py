"""Tests for request bodies: size limits, and forms whose single file is read in pieces."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.http.bodies import MAX_FIELDS_BYTES, FileForm, file_parts, read_body
from shared.platform.errors import CallerError, PayloadTooLargeError, SlowBodyError
from shared.wiring import Services
from tests.fakes.services import fake_services
from tests.unit.functions.http_app import (
    IngestingClient,
    as_user,
    connect,
    make_app,
    problem_of,
    settings_of_tests,
)


async def stream_pieces(pieces: Sequence[bytes], pause_s: float = 0.0) -> AsyncIterator[bytes]:
    for piece in pieces:
        await asyncio.sleep(pause_s)
        yield piece


async def test_a_body_comes_whole() -> None:
    assert await read_body(stream_pieces([b"a", b"", b"bc"]), 3) == b"abc"
    assert [piece async for piece in file_parts(stream_pieces([b"a", b"bc"]))] == [b"a", b"bc"]


async def test_a_body_that_is_too_large_is_read_no_further() -> None:
    body = stream_pieces([b"ab"] * 100)
    with pytest.raises(PayloadTooLargeError) as refused:
        await read_body(body, 3)
    assert refused.value.headers == {"X-Max-Body-Bytes": "3"}
    assert len([piece async for piece in body]) == 98


async def test_a_body_without_end_is_given_up() -> None:
    with pytest.raises(SlowBodyError):
        await read_body(stream_pieces([b"a"] * 1000, pause_s=0.01), 5000, within_s=0.1)


async def test_a_file_may_take_long_and_not_be_silent() -> None:
    steady = file_parts(stream_pieces([b"a"] * 10, pause_s=0.02), silence_s=30)
    assert len([piece async for piece in steady]) == 10
    with pytest.raises(SlowBodyError):
        assert [piece async for piece in file_parts(stream_pieces([b"a"], pause_s=5), silence_s=0.05)]
    with pytest.raises(SlowBodyError):
        assert [
            piece
            async for piece in file_parts(
                stream_pieces([b"a"] * 100, pause_s=0.02), silence_s=1, within_s=0.1
            )
        ]


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Services:
    return connect(monkeypatch, fake_services(settings=settings_of_tests(rate_limit_per_minute=2)))


@pytest.fixture
def anna(services: Services) -> httpx.AsyncClient:
    return as_user(make_app(IngestingClient(services)), "anna")


async def test_refusals_over_http_say_the_limit(
    anna: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = await anna.post("/threads", content=b" " * 300_000)
    assert problem_of(large) == (413, "PayloadTooLargeError")
    assert large.headers["x-max-body-bytes"] == str(256 * 1024)
    monkeypatch.setattr("functions.http.bodies.read_body.__defaults__", (0.05,))
    slow = await anna.post("/threads", content=stream_pieces([b"{"] * 3, pause_s=1))
    assert problem_of(slow) == (408, "SlowBodyError")
    assert slow.headers["connection"] == "close"


async def test_each_answer_says_what_is_left_and_a_refusal_how_long_to_wait(anna: httpx.AsyncClient) -> None:
    first, second, third = [await anna.post("/threads", json={}) for _ in range(3)]
    assert [one.status_code for one in (first, second, third)] == [201, 201, 429]
    assert [one.headers["ratelimit-remaining"] for one in (first, second, third)] == ["1", "0", "0"]
    assert {one.headers["ratelimit-limit"] for one in (first, second, third)} == {"2"}
    assert problem_of(third) == (429, "TooManyRequestsError")
    assert 28 <= int(third.headers["retry-after"]) <= 30
    assert (await anna.get("/threads")).json()["count"] == 2
    assert "ratelimit-limit" not in (await anna.get("/threads")).headers


async def test_the_time_to_wait_is_rounded_up_so_that_the_next_try_succeeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    services = fake_services(settings=settings_of_tests(rate_limit_per_minute=7))
    connect(monkeypatch, services)
    anna = as_user(make_app(IngestingClient(services)), "anna")
    started = time.monotonic()
    *_, refused = [await anna.post("/threads", json={}) for _ in range(8)]
    remaining_s = 60 / 7 - (time.monotonic() - started)
    assert remaining_s <= int(refused.headers["retry-after"]) <= 9


BOUNDARY = "frontier"

TYPE = f"multipart/form-data; boundary={BOUNDARY}"


async def in_pieces(body: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


def part(disposition: str, content: bytes) -> bytes:
    return f"--{BOUNDARY}\r\nContent-Disposition: {disposition}\r\n\r\n".encode() + content + b"\r\n"


def form_of(*parts: bytes) -> bytes:
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


FILE = part('form-data; name="file"; filename="a.txt"', b"hello")


async def read(body: bytes, size: int = 1000, content_type: str = TYPE) -> tuple[FileForm, bytes]:
    form = FileForm(in_pieces(body, size), content_type)
    await form.open()
    return form, b"".join([piece async for piece in form.parts()])


@settings(max_examples=60, deadline=None)
@given(content=st.binary(max_size=300), size=st.integers(1, 50), value=st.text(max_size=20))
async def test_the_pieces_of_the_body_make_no_difference(content: bytes, size: int, value: str) -> None:
    value = value.replace("\r", "").encode("utf-8", "ignore").decode()
    request = httpx.Request(
        "POST", "http://app/", data={"acl": [value, "hr"]}, files={"file": ("ü 'b\".pdf", content)}
    )
    form, received = await read(request.read(), size, request.headers["content-type"])
    assert received == content
    assert form.fields == {"acl": [value, "hr"]}
    assert form.filename == "ü 'b%22.pdf"


@pytest.mark.parametrize("lines", [b"--frontier", b"\r\n--frontie", b"--frontier--", b"\r\n\r\n--"])
async def test_content_that_looks_like_a_boundary_is_content(lines: bytes) -> None:
    disposition = 'form-data; name="file"; filename="a"'
    _, received = await read(form_of(part(disposition, b"x" + lines + b"y")), 3)
    assert received == b"x" + lines + b"y"


async def test_a_name_in_the_extended_form_wins() -> None:
    disposition = 'form-data; name="file"; filename="_.pdf"; filename*=UTF-8\'\'%e2%82%ac.pdf'
    form, _ = await read(form_of(part(disposition, b"x")))
    assert form.filename == "€.pdf"


async def test_memory_holds_one_piece_of_the_file_at_a_time() -> None:
    body = form_of(part('form-data; name="file"; filename="a"', b"x" * 3_000_000))
    form = FileForm(in_pieces(body, 65_536), TYPE)
    await form.open()
    assert max([len(piece) async for piece in form.parts()]) <= 65_536


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no form at all",
        form_of(),
        form_of(part('form-data; name="acl"', b"hr")),
        form_of(part('form-data; name="document"; filename="a.txt"', b"x")),
        form_of(FILE, part('form-data; name="acl"', b"hr")),
        form_of(FILE, FILE),
        FILE,
        FILE[:-4],
        form_of(part('form-data; name="acl"', b"\xff"), FILE),
        form_of(b"--frontier\r\n" + b"a" * 20_000 + b": b\r\n\r\n\r\n", FILE),
    ],
    ids=[
        "empty",
        "text",
        "no-parts",
        "no-file",
        "other-name",
        "late-field",
        "two",
        "open",
        "cut",
        "no-utf-8",
        "header",
    ],
)
@pytest.mark.parametrize("size", [7, 100_000])
async def test_a_form_that_is_wrong_is_the_senders_mistake(body: bytes, size: int) -> None:
    with pytest.raises(CallerError) as refused:
        await read(body, size)
    assert refused.value.hints


@pytest.mark.parametrize(
    "content_type", ["", "text/plain", "multipart/form-data", f"multipart/form-data; boundary={'b' * 2000}"]
)
async def test_a_body_that_is_no_form_is_refused(content_type: str) -> None:
    with pytest.raises(CallerError):
        await read(form_of(FILE), content_type=content_type)


@pytest.mark.parametrize(
    "parts",
    [
        [part('form-data; name="acl"', b"x" * (MAX_FIELDS_BYTES + 1))],
        [part('form-data; name="acl"', b"")] * (MAX_FIELDS_BYTES // 100),
    ],
    ids=["one-large", "many-empty"],
)
async def test_fields_cannot_fill_the_memory(parts: list[bytes]) -> None:
    with pytest.raises(PayloadTooLargeError):
        await read(form_of(*parts, FILE))
