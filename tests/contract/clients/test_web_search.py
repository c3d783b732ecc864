"""The web search client against an engine that implements SearXNG's JSON API, over real HTTP."""

import json
import logging
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest

from shared.platform.errors import (
    AuthenticationError,
    CallTimeoutError,
    ConfigurationError,
    DependencyError,
    GroundworkError,
    RateLimitError,
)
from shared.platform.language_models.models import CallLimits
from shared.tools.web_search import (
    MAX_ANSWER_BYTES,
    MAX_HITS,
    MAX_QUERY_CHARS,
    MAX_TEXT_CHARS,
    MAX_TITLE_CHARS,
    BraveWebSearch,
    SearxngWebSearch,
)
from tests.contract.clients.conftest import NOWHERE, Connect
from tests.contract.clients.scripted_server import Answer, ScriptedServer
from tests.fakes.web_search import SearchEngine

if TYPE_CHECKING:
    from shared.wiring import Connections

pytestmark = [pytest.mark.contract, pytest.mark.attack("outgoing addresses")]

LIMITS = CallLimits(timeout_s=60, max_retries=0)
QUESTION = "whether the lighthouse tariff was raised"
PAGE = {"url": "https://example.org/tariff", "title": "The tariff", "content": "The lighthouse tariff rose."}


def searching(connect: Connect, url: str, **settings: Any) -> SearxngWebSearch:
    connections: Connections = connect(web_search_url=url, **settings)
    return SearxngWebSearch(connections.web_search, url)


@pytest.fixture
async def engine() -> AsyncIterator[SearchEngine]:
    async with SearchEngine([PAGE]) as engine:
        yield engine


def answer(*results: dict[str, Any], **more: Any) -> Answer:
    return Answer(body=json.dumps({"results": results, **more}).encode())


async def answered(connect: Connect, *answers: Answer, count: int = 5, limits: CallLimits = LIMITS) -> Any:
    async with ScriptedServer(*answers) as server:
        return await searching(connect, server.endpoint).search("tariff", count, limits)


async def test_pages_are_found(engine: SearchEngine, connect: Connect) -> None:
    hits = await searching(connect, engine.url).search(QUESTION, 5, LIMITS)
    assert [(hit.url, hit.title, hit.text) for hit in hits] == [
        ("https://example.org/tariff", "The tariff", "The lighthouse tariff rose.")
    ]


async def test_nothing_found_is_no_error(engine: SearchEngine, connect: Connect) -> None:
    assert await searching(connect, engine.url).search("zebra", 5, LIMITS) == []


async def test_a_question_never_stands_in_an_address(engine: SearchEngine, connect: Connect) -> None:
    await searching(connect, engine.url).search(QUESTION, 5, LIMITS)
    assert engine.queries == [QUESTION]
    assert engine.request_lines == ["POST /search"]


async def test_no_log_and_no_error_repeats_the_question(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for broken in (Answer(status="500 No"), Answer(body=b"{"), Answer(lost=True), Answer(status="403 No")):
        async with ScriptedServer(broken) as server:
            with pytest.raises(GroundworkError) as failure:
                await searching(connect, server.endpoint).search(QUESTION, 5, LIMITS)
            assert QUESTION.encode().split()[2] in server.bodies[0]
        error_text = " ".join([failure.value.detail, *failure.value.hints, repr(failure.value.__cause__)])
        assert "lighthouse" not in error_text + caplog.text


async def test_the_key_goes_in_the_header_that_is_set(connect: Connect) -> None:
    async with SearchEngine([PAGE], key="sesame") as engine:
        hits = await searching(connect, engine.url, web_search_key="sesame").search(QUESTION, 5, LIMITS)
        assert len(hits) == 1
        with pytest.raises(AuthenticationError, match="web search"):
            await searching(connect, engine.url).search(QUESTION, 5, LIMITS)
        wrong = searching(connect, engine.url, web_search_key="sesame", web_search_key_header="X-Other")
        with pytest.raises(AuthenticationError):
            await wrong.search(QUESTION, 5, LIMITS)


async def test_an_engine_without_json_says_what_to_switch_on(connect: Connect) -> None:
    async with SearchEngine([PAGE], formats=("html",)) as engine:
        with pytest.raises(AuthenticationError) as failure:
            await searching(connect, engine.url).search(QUESTION, 5, LIMITS)
    assert "search.formats" in " ".join(failure.value.hints)


async def test_no_redirect_is_followed(engine: SearchEngine, connect: Connect) -> None:
    elsewhere = Answer(status="307 Temporary Redirect", headers={"location": engine.url})
    with pytest.raises(ConfigurationError, match="WEB_SEARCH_URL"):
        await answered(connect, elsewhere)
    assert engine.queries == []


async def test_no_more_pages_than_asked_for(connect: Connect) -> None:
    many = answer(*({**PAGE, "url": f"https://example.org/{number}"} for number in range(50)))
    assert [hit.url[-1] for hit in await answered(connect, many, count=3)] == ["0", "1", "2"]
    assert len(await answered(connect, many, count=50)) == MAX_HITS


async def test_long_texts_are_cut(engine: SearchEngine, connect: Connect) -> None:
    (hit,) = await answered(connect, answer({**PAGE, "title": "t" * 9_999, "content": "c" * 99_999}))
    assert (len(hit.title), len(hit.text)) == (MAX_TITLE_CHARS, MAX_TEXT_CHARS)
    await searching(connect, engine.url).search("q" * 9_999, 5, LIMITS)
    assert len(engine.queries[0]) == MAX_QUERY_CHARS


async def test_what_nobody_sees_is_taken_out(connect: Connect) -> None:
    hidden = "a\u200b b\u202e\x00\x1b[31m c\n\n d &lt;e&gt; \U000e0041"
    (hit,) = await answered(connect, answer({**PAGE, "title": hidden, "content": None}))
    assert (hit.title, hit.text) == ("a b[31m c d <e>", "")


@pytest.mark.parametrize(
    "url",
    [
        None,
        "",
        "ftp://example.org/a",
        "javascript:alert(1)",
        "https://",
        "//example.org",
        "https://me@example.org/",
        "https://example.org/a b",
        "https://example.org/\u202e",
        "https://[broken/",
        "https://example.org/" + "a" * 2_000,
    ],
)
async def test_an_address_that_nobody_should_be_shown_is_no_hit(url: str | None, connect: Connect) -> None:
    hits = await answered(connect, answer({**PAGE, "url": url}, PAGE))
    assert [hit.url for hit in hits] == [PAGE["url"]]


async def test_a_page_that_several_engines_found_is_one_hit(connect: Connect) -> None:
    (hit,) = await answered(connect, answer(PAGE, {**PAGE, "content": "Found again, lower down."}))
    assert hit.text == PAGE["content"]


@pytest.mark.parametrize(
    "body", [b"<html>", b"[]", b"{}", b'{"results": 1}', b'{"results": [{"url": 5}]}', b"\xff"]
)
async def test_what_is_no_answer_is_an_error(body: bytes, connect: Connect) -> None:
    with pytest.raises(DependencyError, match="is invalid"):
        await answered(connect, Answer(body=body))


async def test_an_endless_answer_is_not_read_to_its_end(connect: Connect) -> None:
    huge = answer({**PAGE, "content": "c" * MAX_ANSWER_BYTES})
    with pytest.raises(DependencyError, match="is invalid"):
        await answered(connect, huge)


async def test_engines_that_do_not_answer_are_no_empty_result(connect: Connect) -> None:
    silent = answer(unresponsive_engines=[["one", "timeout"], ["two", "CAPTCHA"]])
    with pytest.raises(DependencyError, match="No search engine"):
        await answered(connect, silent)
    (hit,) = await answered(connect, answer(PAGE, unresponsive_engines=[["one", "timeout"]]))
    assert hit.url == PAGE["url"]


@pytest.mark.parametrize(("status", "error"), [("429 Slow", RateLimitError), ("503 No", DependencyError)])
async def test_what_is_passing_is_tried_again_as_often_as_allowed(
    status: str, error: type[GroundworkError], connect: Connect
) -> None:
    again = CallLimits(timeout_s=60, max_retries=1)
    (hit,) = await answered(connect, Answer(status=status), answer(PAGE), limits=again)
    assert hit.url == PAGE["url"]
    with pytest.raises(error):
        await answered(connect, Answer(status=status), Answer(status=status), answer(PAGE), limits=again)


@pytest.mark.parametrize(
    "slow", [Answer(delay_s=30), Answer(body=b'{"results": []', stalls=True)], ids=["silent", "stalling"]
)
async def test_silence_ends_with_the_limit(slow: Answer, connect: Connect) -> None:
    began = time.monotonic()
    with pytest.raises(CallTimeoutError):
        await answered(connect, slow, limits=CallLimits(timeout_s=0.3, max_retries=3))
    assert time.monotonic() - began < 20  # the server is silent for 30 s


async def test_a_wait_that_is_asked_for_never_goes_beyond_the_limit(connect: Connect) -> None:
    began = time.monotonic()
    busy = Answer(status="429 Slow", headers={"retry-after": "60"})
    with pytest.raises(RateLimitError):
        await answered(connect, busy, limits=CallLimits(timeout_s=2, max_retries=3))
    assert time.monotonic() - began < 30  # the response asks for a pause of a minute


async def test_nobody_there_is_an_error_of_ours(connect: Connect) -> None:
    with pytest.raises(DependencyError, match="No connection"):
        await searching(connect, f"{NOWHERE}/search").search(QUESTION, 5, LIMITS)


async def test_brave_is_asked_in_its_own_protocol(connect: Connect) -> None:
    result = {**PAGE, "description": PAGE["content"], "page_age": "2026-03-01T00:00:00"}
    del result["content"]
    body = json.dumps({"type": "search", "web": {"results": [result]}}).encode()
    async with ScriptedServer(Answer(body=body), Answer(body=b"{}"), Answer(body=b"[]")) as server:
        url = server.endpoint
        connections = connect(web_search_url=url, web_search_engine="brave", web_search_key="sesame")
        brave = BraveWebSearch(connections.web_search, url)
        (hit,) = await brave.search(QUESTION, 5, LIMITS)
        assert (hit.url, hit.text, hit.published_at) == (PAGE["url"], PAGE["content"], "2026-03-01T00:00:00")
        assert await brave.search(QUESTION, 5, LIMITS) == []
        with pytest.raises(DependencyError, match="is invalid"):
            await brave.search(QUESTION, 5, LIMITS)
    assert "sesame" in server.heads[0].lower().partition("x-subscription-token: ")[2]
    assert json.loads(server.bodies[0])["q"] == QUESTION
    assert QUESTION.split()[1] not in server.requests[0]
