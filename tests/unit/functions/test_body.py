"""Bodies that come slowly, never end, or are too large."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import httpx
import pytest

from functions import threads
from functions.http.bodies import file_parts, read_body
from shared.platform.errors import PayloadTooLargeError, SlowBodyError
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


async def sent(pieces: Sequence[bytes], pause_s: float = 0.0) -> AsyncIterator[bytes]:
    for piece in pieces:
        await asyncio.sleep(pause_s)
        yield piece


async def test_a_body_comes_whole() -> None:
    assert await read_body(sent([b"a", b"", b"bc"]), 3) == b"abc"
    assert [piece async for piece in file_parts(sent([b"a", b"bc"]))] == [b"a", b"bc"]


async def test_a_body_that_is_too_large_is_read_no_further() -> None:
    body = sent([b"ab"] * 100)
    with pytest.raises(PayloadTooLargeError) as refused:
        await read_body(body, 3)
    assert refused.value.headers == {"X-Max-Body-Bytes": "3"}
    assert len([piece async for piece in body]) == 98


async def test_a_body_without_end_is_given_up() -> None:
    with pytest.raises(SlowBodyError):
        await read_body(sent([b"a"] * 1000, pause_s=0.01), 5000, within_s=0.1)


async def test_a_file_may_take_long_and_not_be_silent() -> None:
    steady = file_parts(sent([b"a"] * 10, pause_s=0.02), silence_s=0.5)
    assert len([piece async for piece in steady]) == 10
    with pytest.raises(SlowBodyError):
        assert [piece async for piece in file_parts(sent([b"a"], pause_s=5), silence_s=0.05)]
    with pytest.raises(SlowBodyError):
        assert [
            piece async for piece in file_parts(sent([b"a"] * 100, pause_s=0.02), silence_s=1, within_s=0.1)
        ]


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Services:
    made = fake_services(settings=settings_of_tests(rate_limit_per_minute=2))
    connect(monkeypatch, made)
    return made


@pytest.fixture
def anna(services: Services) -> httpx.AsyncClient:
    return as_user(make_app([threads], IngestingClient(services)), "anna")


async def test_refusals_over_http_say_the_limit(
    anna: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = await anna.post("/threads", content=b" " * 300_000)
    assert problem_of(large) == (413, "PayloadTooLargeError")
    assert large.headers["x-max-body-bytes"] == str(256 * 1024)
    monkeypatch.setattr("functions.http.bodies.read_body.__defaults__", (0.05,))
    slow = await anna.post("/threads", content=sent([b"{"] * 3, pause_s=1))
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
