"""Tests for limits on calls and open connections across all protocols and for repeated requests."""

import asyncio
from collections import Counter
from typing import Any

import httpx
import pytest

from functions import completions
from functions.http import mcp_run_tools, responses
from tests.fakes.models import ScriptedChatModel
from tests.fakes.services import fake_services, fake_settings
from tests.unit.answering.summarising import by_rule
from tests.unit.functions.asking_app import AskingClient
from tests.unit.functions.http_app import SECRET, as_user, connect, make_app, problem_of, settings_of_tests
from tests.unit.functions.summarising_app import SummarisingClient
from tests.world import add_corpus, corpus_services

pytestmark = pytest.mark.attack("exhaustion")

QUESTION = "At what pressure does the pump run?"

KEY = {"Idempotency-Key": "2f1c"}

COMPLETION = {"model": "groundwork", "messages": [{"role": "user", "content": QUESTION}]}


async def asking(monkeypatch: pytest.MonkeyPatch, **limits: Any) -> tuple[httpx.AsyncClient, AskingClient]:
    """Return a client for Anna and the durable client, which keeps her runs in progress."""
    settings = fake_settings(dev_token_secret=SECRET, stream_seconds=1.0, subagents_enabled=False, **limits)
    services = await corpus_services(settings=settings)
    connect(monkeypatch, services)
    monkeypatch.setattr(responses, "get_settings", lambda: services.settings)
    monkeypatch.setattr(completions, "_WITHIN_S", 1.0)
    monkeypatch.setattr(mcp_run_tools, "ANSWER_WITHIN_S", 1.0)
    durable = AskingClient(services)
    durable.holds = True
    app = make_app(durable)
    return as_user(app, "anna", groups=["engineering"]), durable


def tool_call(name: str, **arguments: Any) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/chat", {"question": QUESTION}, KEY),
        ("/chat", {"question": QUESTION, "stream": False}, KEY),
        ("/v1/chat/completions", {**COMPLETION, "stream": True}, KEY),
        ("/v1/chat/completions", COMPLETION, KEY),
        ("/mcp", tool_call("ask", question=QUESTION), {}),
    ],
)
async def test_of_twenty_repeats_at_once_one_waits_where_one_may(
    monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any], headers: dict[str, str]
) -> None:
    anna, durable = await asking(monkeypatch, max_open_streams=1)
    answers = await asyncio.gather(*(anna.post(path, json=body, headers=headers) for _ in range(20)))
    refused = [one for one in answers if one.status_code == 429]
    assert len(refused) == 19, Counter(one.status_code for one in answers)
    for one in refused:
        content = one.json()
        assert (
            content["error"]["code"] if "error" in content else content["title"]
        ) == "TooManyRequestsError"
    assert len(durable.started) == 1
    # The slot is free again.
    again = await anna.post(path, json=body, headers=headers)
    assert again.status_code != 429


async def test_summaries_that_wait_for_their_result_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    services = fake_services(
        settings=settings_of_tests(max_open_streams=1), chat_model=ScriptedChatModel(answer=by_rule)
    )
    await add_corpus(services)
    connect(monkeypatch, services)
    durable = SummarisingClient(services)
    durable.holds = True
    anna, order = as_user(make_app(durable), "anna"), {"doc_ids": ["manual"]}
    headers = {**KEY, "Prefer": "wait=60"}
    waiting = asyncio.create_task(anna.post("/summaries", json=order, headers=headers))
    while not durable.started:  # noqa: ASYNC110  # the client has no event for a start
        await asyncio.sleep(0)
    for repeat in ({**KEY, "Prefer": "wait=60"}, {"Idempotency-Key": "other", "Prefer": "wait=1"}):
        refused = await anna.post("/summaries", json=order, headers=repeat)
        assert problem_of(refused) == (429, "TooManyRequestsError")
    assert (await anna.post("/summaries", json=order, headers=KEY)).status_code == 202
    assert len(durable.started) == 1
    await anna.post(f"/summaries/{durable.started[0]}/cancel")
    assert (await waiting).json()["status"] == "cancelled"
    # The connection is free again.
    again = await anna.post("/summaries", json=order, headers=headers)
    assert again.json()["status"] == "cancelled"


async def test_a_refused_stream_begins_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    anna, durable = await asking(monkeypatch, max_open_streams=1)
    questions = [anna.post("/chat", json={"question": f"{QUESTION} {number}"}) for number in range(3)]
    answers = await asyncio.gather(*questions)
    assert sorted(one.status_code for one in answers) == [200, 429, 429]
    assert len(durable.started) == 1


@pytest.mark.parametrize("path", ["/chat", "/threads"])
async def test_repeats_under_a_key_count_as_calls(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    anna, _ = await asking(monkeypatch, rate_limit_per_minute=3)
    body = {"question": QUESTION} if path == "/chat" else {}
    headers = {**KEY, "Prefer": "respond-async"}
    *served, refused = [await anna.post(path, json=body, headers=headers) for _ in range(4)]
    assert [one.headers["ratelimit-remaining"] for one in served] == ["2", "1", "0"]
    assert [one.headers.get("idempotency-replayed") for one in served] == [None, "true", "true"]
    assert problem_of(refused) == (429, "TooManyRequestsError")


async def test_repeats_of_a_summary_count_as_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of_tests(rate_limit_per_minute=2)
    services = fake_services(settings=settings, chat_model=ScriptedChatModel(answer=by_rule))
    await add_corpus(services)
    connect(monkeypatch, services)
    anna = as_user(make_app(SummarisingClient(services)), "anna")
    order = {"doc_ids": ["manual"]}
    answers = [await anna.post("/summaries", json=order, headers=KEY) for _ in range(3)]
    assert [one.status_code == 429 for one in answers] == [False, False, True]


@pytest.mark.parametrize(
    "call",
    [
        tool_call("fetch", id="manual"),
        tool_call("list_documents"),
        tool_call("list_documents", query="pump"),
        tool_call("get_answer", run_id="a" * 32),
        tool_call("reply", run_id="a" * 32, answer="1"),
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "resources/read",
            "params": {"uri": "groundwork://documents/x"},
        },
    ],
    ids=["fetch", "list", "find", "get_answer", "reply", "read"],
)
async def test_calls_of_assistants_are_counted(monkeypatch: pytest.MonkeyPatch, call: dict[str, Any]) -> None:
    anna, _ = await asking(monkeypatch, rate_limit_per_minute=2)
    first, second, third = [await anna.post("/mcp", json=call) for _ in range(3)]
    assert [one.headers.get("ratelimit-remaining") for one in (first, second)] == ["1", "0"]
    refused = third.status_code == 429 or third.json()["result"]["isError"]
    assert refused, third.text
    assert "calls in a minute" in third.text
    assert "TooManyRequestsError" in third.text
    assert "Try again in 30 seconds." in third.text
    assert "Retry-After" not in third.text


async def test_an_unknown_run_has_the_same_error_code_in_mcp_as_in_the_api(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    anna, _ = await asking(monkeypatch)
    replied = await anna.post("/mcp", json=tool_call("get_answer", run_id="a" * 32))
    assert replied.json()["result"]["structuredContent"]["type"] == "NotFoundError"
