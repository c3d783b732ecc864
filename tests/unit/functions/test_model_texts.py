"""Tests that replies, thoughts, todo lists and questions written by a model contain no active markup.

Over HTTP, by our own protocol and by OpenAI's.
"""

import json
import re
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from functions.http import responses
from shared.platform.language_models.models import ModelTurn, ToolCall
from shared.runs.plan import PlannedTodo
from tests.contract.injection import shown
from tests.fakes.models import ScriptedChatModel
from tests.unit.evidence.reader_text_corpus import live_parts
from tests.unit.functions.asking_app import AskingClient
from tests.unit.functions.http_app import as_user, connect, make_app, settings_of_tests
from tests.world import corpus_services, plan

pytestmark = pytest.mark.attack("forged names")

HOSTILE = (
    "Your session has expired. [Sign in](https://evil.example/login) ![x](https://evil.example/i.png) "
    "<script>alert(1)</script> The limit is 65 bar. (Source: manual.pdf, S. 3)[1]"
)
TODO = PlannedTodo(description=HOSTILE, acceptance_criteria=HOSTILE, dependencies=())
SMALL_TALK = plan(query_type="CONVERSATION", reply=HOSTILE, language=HOSTILE, todo=(TODO, TODO))
QUESTION = plan(todo=(TODO, TODO))
ANSWER = '<answer>It runs at 15 bar. <cite doc_id="manual" quote="The pump runs at 15 bar."/>'
SEARCH = ToolCall(call_id="c1", name="rag_semantic_search", arguments='{"query": "pump"}')
ASK = ToolCall(
    call_id="c1", name="ask_user", arguments=json.dumps({"question": HOSTILE, "options": [HOSTILE, "b"]})
)
REPLIES: dict[str, tuple[Any, ...]] = {
    "small talk and todo": (SMALL_TALK,),
    "todo": (QUESTION, ANSWER),
    "thought": (plan(), ModelTurn(text=HOSTILE, tool_calls=(SEARCH,)), ANSWER),
    "gap": (plan(), f'<answer><gap missing="{HOSTILE}" next_step="{HOSTILE}"/>'),
    "question and options": (plan(), ModelTurn(text="I ask.", tool_calls=(ASK,))),
}


async def asker(monkeypatch: pytest.MonkeyPatch, *replies: Any, title: str = "") -> httpx.AsyncClient:
    """Return a client for Anna whose model gives `replies`; `title` replaces the title of a report."""
    services = await corpus_services(
        chat_model=ScriptedChatModel(*replies), settings=settings_of_tests(subagents_enabled=False)
    )
    if title:
        await services.documents_index.merge([{"doc_id": "report-2023", "title": title}])
    connect(monkeypatch, services)
    monkeypatch.setattr(responses, "get_settings", lambda: services.settings)
    app: ASGIApp = make_app(AskingClient(services))
    return as_user(app, "anna", groups=["engineering"])


def texts_in(value: Any) -> list[str]:
    """Return every text in a JSON value except the arguments of tool calls."""
    if isinstance(value, dict):
        return [text for key, inner in value.items() if key != "arguments" for text in texts_in(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in texts_in(inner)]
    return [value] if isinstance(value, str) else []


def check_harmless(texts: list[str]) -> None:
    hostile = [text for text in texts if "session has expired" in text]
    assert hostile, "the model's text did not arrive at all"
    for text in texts:
        assert live_parts(text) == []
        assert set(shown.sources(text)) <= {"manual.pdf"}
    for text in hostile:
        assert (shown.sources(text), shown.numbers(text)) == ([], [])


@pytest.mark.parametrize("replies", REPLIES.values(), ids=REPLIES)
async def test_our_own_stream_is_harmless(monkeypatch: pytest.MonkeyPatch, replies: tuple[Any, ...]) -> None:
    anna = await asker(monkeypatch, *replies)
    streamed = (await anna.post("/chat", json={"question": "At what pressure does the pump run?"})).text
    events = [
        (name.lower(), json.loads(data))
        for name, data in re.findall(r"^event: (\w+)\ndata: (.*)$", streamed, re.MULTILINE)
    ]
    answer = "".join(data["text"] for name, data in events if name == "token")
    check_harmless([answer, *(text for name, data in events if name != "token" for text in texts_in(data))])


@pytest.mark.parametrize("kind", ["small talk and todo", "gap", "question and options"])
async def test_openais_protocol_is_harmless(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    anna = await asker(monkeypatch, *REPLIES[kind])
    messages = [{"role": "user", "content": "At what pressure does the pump run?"}]
    whole = await anna.post("/v1/chat/completions", json={"model": "groundwork", "messages": messages})
    assert whole.status_code == 200, whole.text
    check_harmless(texts_in(whole.json()))


async def test_options_of_openais_protocol_do_not_turn_titles_into_links(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    title = "report [Sign in](https://evil.example/login)"
    anna = await asker(monkeypatch, plan(document_references=("report",)), ANSWER, title=title)
    messages = [{"role": "user", "content": "What does the report say?"}]
    whole = await anna.post("/v1/chat/completions", json={"model": "groundwork", "messages": messages})
    content = whole.json()["choices"][0]["message"]["content"]
    assert "Sign in" in content
    assert live_parts(content) == []
