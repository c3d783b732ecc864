"""Requests as Open WebUI sends them, and responses as it reads them, over plain HTTP."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from samples.acl import ANNA
from samples.questions import FIRST_QUESTION
from tests.sample_app import SampleApp

pytestmark = pytest.mark.contract
PATIENCE_S = 120.0
HEADERS = {  # Sent with ENABLE_FORWARD_USER_INFO_HEADERS. The app must ignore them.
    "Content-Type": "application/json",
    "X-OpenWebUI-User-Name": "Ben",
    "X-OpenWebUI-User-Id": "ben",
    "X-OpenWebUI-User-Email": "ben@example.org",
    "X-OpenWebUI-User-Role": "admin",
}
SYSTEM = {"role": "system", "content": "You are a pirate."}
QUESTION: dict[str, Any] = {
    "stream": True,
    "model": "groundwork",
    "messages": [SYSTEM, {"role": "user", "content": FIRST_QUESTION.text}],
    "stream_options": {"include_usage": True},
    "temperature": 0.7,
    "max_tokens": 1000,
    "user": {"name": "Ben", "id": "ben", "email": "ben@example.org", "role": "admin"},
}
CHORES = (
    "Generate a concise, 3-5 word title with an emoji summarizing the chat history.",
    "Generate 1-3 broad tags categorizing the main themes of the chat history.",
    "Suggest 3-5 relevant follow-up questions or prompts that the user might naturally ask next.",
)


@pytest.fixture(name="webui", scope="module")
def make_webui(app: SampleApp) -> Iterator[httpx.Client]:
    headers = {**HEADERS, "Authorization": f"Bearer {app.token(ANNA)}"}
    with httpx.Client(base_url=f"{app.base_url}/api/v1", headers=headers, timeout=PATIENCE_S) as client:
        yield client


def chunks_of(text: str) -> list[dict[str, Any]]:
    """Parse a stream as Open WebUI's middleware does: lines that begin with `data:`, up to `[DONE]`."""
    data_lines = [
        line.removeprefix("data:").strip() for line in text.splitlines() if line.startswith("data:")
    ]
    assert data_lines[-1] == "[DONE]"
    return [json.loads(line) for line in data_lines[:-1]]


def test_its_list_of_models_is_filled(webui: httpx.Client) -> None:
    listed = webui.get("/models").raise_for_status().json()
    assert listed["object"] == "list"
    assert {"groundwork", "handbook"} <= {model["id"] for model in listed["data"]}
    assert {model["object"] for model in listed["data"]} == {"model"}


def test_a_streamed_answer_has_its_sources(webui: httpx.Client) -> None:
    replied = webui.post("/chat/completions", json=QUESTION)
    assert replied.headers["content-type"].startswith("text/event-stream")
    choices = [choice for chunk in chunks_of(replied.text) for choice in chunk["choices"]]
    assert "6.5 bar" in "".join(choice["delta"].get("content") or "" for choice in choices)
    cited = [note for choice in choices for note in choice["delta"].get("annotations", ())]
    assert cited
    assert all(note["type"] == "url_citation" for note in cited)
    assert all(note["url_citation"]["url"] and note["url_citation"]["title"] for note in cited)
    assert choices[-1]["finish_reason"] == "stop"


def test_a_follow_up_stays_in_the_thread(webui: httpx.Client) -> None:
    first = webui.post("/chat/completions", json={**QUESTION, "stream": False}).json()
    reply = first["choices"][0]["message"]["content"]
    parts = [{"type": "text", "text": "And why?"}]
    messages = [*QUESTION["messages"], {"role": "assistant", "content": reply}]
    messages.append({"role": "user", "content": parts})
    second = webui.post("/chat/completions", json={**QUESTION, "messages": messages})
    *_, ending, used = chunks_of(second.text)
    assert ending["groundwork"]["thread_id"] == first["groundwork"]["thread_id"]
    assert (used["choices"], used["usage"]["total_tokens"] > 0) == ([], True)


@pytest.mark.parametrize("chore", CHORES)
def test_titles_and_tags_become_no_questions(webui: httpx.Client, chore: str) -> None:
    history = f"<chat_history>\nUSER: {FIRST_QUESTION.text}\nASSISTANT: 6.5 bar\n</chat_history>"
    text = f'### Task:\n{chore}\n### Output:\nJSON format: {{ "title": "…" }}\n### Chat History:\n{history}'
    body = {"model": "groundwork", "messages": [{"role": "user", "content": text}], "stream": False}
    before = webui.get("../threads").json()
    assert webui.post("/chat/completions", json=body).status_code == 400
    assert webui.get("../threads").json() == before


def test_a_question_with_a_task_in_it_is_one(webui: httpx.Client) -> None:
    text = f"### Task:\nRespond to the user query using the context.\n{FIRST_QUESTION.text}"
    body = {"model": "groundwork", "messages": [{"role": "user", "content": text}], "stream": False}
    assert webui.post("/chat/completions", json=body).status_code == 200
