"""Other assistants: the official MCP client with both protocol generations, and the openai SDK."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from openai import AsyncOpenAI, NotFoundError

from samples.acl import ANNA, BEN, SampleUser
from samples.questions import FIRST_QUESTION
from tests.sample_app import SampleApp

pytestmark = pytest.mark.contract
Era = Literal["2026-07-28", "legacy"]
ERAS: tuple[Era, ...] = ("2026-07-28", "legacy")
PATIENCE_S = 120.0
AMBIGUOUS = "Summarise the annual report."


@asynccontextmanager
async def assistant(app: SampleApp, era: Era, user: SampleUser = ANNA) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {app.token(user)}"}
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http:
        transport = streamable_http_client(f"{app.base_url}/api/mcp", http_client=http)
        async with Client(transport, mode=era, read_timeout_seconds=PATIENCE_S) as client:
            yield client


async def call(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    content: dict[str, Any] = result.structured_content
    assert json.loads(result.content[0].text) == content  # type: ignore[union-attr]
    return content


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_finds_its_way_and_reads_what_it_found(app: SampleApp, era: Era) -> None:
    async with assistant(app, era) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {
            "search",
            "fetch",
            "ask",
            "get_answer",
            "reply",
            "list_documents",
            "list_tables",
            "run_sql",
        }
        assert tools["ask"].input_schema["required"] == ["question"]
        search_result = await call(client, "search", query=FIRST_QUESTION.text)
        first = search_result["results"][0]
        assert set(first) == {"id", "title", "url", "text"}
        assert first["url"].startswith(f"{app.base_url}/api/documents/")
        page = await call(client, "fetch", id=first["id"])
        assert first["text"].split("\n")[0] in page["text"]
        assert page["metadata"]["filename"]
        listed = await call(client, "list_documents", limit=1)
        assert len(listed["documents"]) == 1
        templates = (await client.list_resource_templates()).resource_templates
        assert [template.name for template in templates] == ["page"]
        with_page = next(one["id"] for one in search_result["results"] if "/pages/" in one["id"])
        read = await client.read_resource(f"groundwork://documents/{with_page}")
        assert read.contents[0].text  # type: ignore[union-attr]
        with pytest.raises(MCPError):
            await client.read_resource("groundwork://documents/none/pages/1")


@pytest.mark.parametrize("era", ERAS)
async def test_an_answer_comes_with_progress_and_the_same_question_finds_it_again(
    app: SampleApp, era: Era
) -> None:
    progress_messages: list[str] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        del progress, total
        progress_messages.append(message or "")

    # The spaces make the question unique, so that each era gets a separate run.
    question = FIRST_QUESTION.text + " " * ERAS.index(era)
    async with assistant(app, era) as client:
        result = await client.call_tool("ask", {"question": question}, progress_callback=note)
        run: dict[str, Any] = result.structured_content
        while run["status"] == "running":
            run = await call(client, "get_answer", run_id=run["run_id"])
        assert run["status"] == "completed"
        assert run["answer"]
        assert all(cited["url"].startswith(app.base_url) for cited in run["citations"])
        assert any(cited["verified"] for cited in run["citations"])
        assert "Planning" in progress_messages
        again = await call(client, "ask", question=question)
        assert again["run_id"] == run["run_id"]
        further = await call(client, "ask", question="And who says so?", thread_id=run["thread_id"])
        assert further["thread_id"] == run["thread_id"]
    async with assistant(app, era, BEN) as client:
        foreign = await client.call_tool("get_answer", {"run_id": run["run_id"]})
        assert foreign.is_error


async def test_what_a_tool_cannot_do_is_said_to_the_model(app: SampleApp) -> None:
    async with assistant(app, "2026-07-28") as client:
        absent = await client.call_tool("fetch", {"id": "../../etc"})
        assert absent.is_error
        assert set(absent.structured_content) == {"error", "type", "hints"}
        wrong = await client.call_tool("search", {"query": "valve", "filters": {"colour": "red"}})
        assert wrong.is_error
        with pytest.raises(MCPError, match="Call one of"):
            await client.call_tool("no_tool", {})


@pytest.fixture(name="anna")
def make_anna(app: SampleApp) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {app.token(ANNA)}"}
    with httpx.Client(base_url=f"{app.base_url}/api", headers=headers, timeout=PATIENCE_S) as client:
        yield client


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
LIST = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"{", {}, 400, -32700),
        (b"[" * 100_000, {}, 400, -32700),
        ([LIST], {}, 400, -32600),
        ({**LIST, "id": True}, {}, 400, -32600),
        ({**LIST, "method": "tools/none"}, {}, 200, -32601),
        (LIST, {"MCP-Protocol-Version": "1999-01-01"}, 200, -32022),
        (LIST, {"MCP-Protocol-Version": "2026-07-28"}, 400, -32602),
        ({**LIST, "params": {"_meta": META}}, {}, 400, -32020),
        (
            {**LIST, "params": {"_meta": META}},
            {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "ping"},
            400,
            -32020,
        ),
        (
            {**LIST, "method": "none", "params": {"_meta": META}},
            {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "none"},
            404,
            -32601,
        ),
    ],
)
def test_a_message_that_is_none_is_refused(
    anna: httpx.Client, body: Any, headers: dict[str, str], status: int, code: int
) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body)
    answer = anna.post("/mcp", content=content, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_pages_of_other_sites_and_large_bodies_are_refused(anna: httpx.Client) -> None:
    foreign = anna.post("/mcp", json=LIST, headers={"Origin": "https://evil.example"})
    assert foreign.status_code == 403
    large = {**LIST, "params": {"x": "y" * 300_000}}
    assert anna.post("/mcp", json=large).status_code == 413


def test_who_is_not_signed_in_learns_where(app: SampleApp) -> None:
    refused = httpx.post(f"{app.base_url}/api/mcp", json=LIST, timeout=PATIENCE_S)
    assert refused.status_code == 401
    _, _, address = refused.headers["www-authenticate"].partition('resource_metadata="')
    metadata = httpx.get(address.rstrip('"'), timeout=PATIENCE_S).raise_for_status().json()
    assert metadata["resource"] == f"{app.base_url}/api/mcp"


@pytest.fixture(name="openai")
async def make_openai(app: SampleApp) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(
        base_url=f"{app.base_url}/api/v1", api_key=app.token(ANNA), timeout=PATIENCE_S, max_retries=0
    ) as client:
        yield client


async def test_the_openai_sdk_gets_answers_with_citations(openai: AsyncOpenAI) -> None:
    models = [model.id async for model in openai.models.list()]
    assert models[:2] == ["groundwork", "groundwork-deep"]
    answer = await openai.chat.completions.create(
        model="groundwork", messages=[{"role": "user", "content": FIRST_QUESTION.text}], temperature=0
    )
    message = answer.choices[0].message
    assert message.content
    assert answer.choices[0].finish_reason == "stop"
    assert message.annotations
    for note in message.annotations:
        cited = note.url_citation
        assert message.content[cited.start_index : cited.end_index].lstrip().startswith("(Source: ")
        assert cited.url.startswith("http")
    with pytest.raises(NotFoundError):
        await openai.chat.completions.create(model="gpt", messages=[{"role": "user", "content": "x"}])


async def test_a_streamed_answer_is_the_whole_one(openai: AsyncOpenAI, anna: httpx.Client) -> None:
    parts, last, used = [], None, None
    async for chunk in await openai.chat.completions.create(
        model="groundwork",
        messages=[{"role": "user", "content": FIRST_QUESTION.text}],
        stream=True,
        stream_options={"include_usage": True},
    ):
        if chunk.choices:
            assert chunk.usage is None
            parts.append(chunk.choices[0].delta.content or "")
            last = chunk
        used = chunk.usage
    assert used
    assert used.prompt_tokens > used.completion_tokens > 0
    assert used.total_tokens == used.prompt_tokens + used.completion_tokens
    assert last is not None
    assert last.choices[0].finish_reason == "stop"
    own: dict[str, Any] = last.model_extra["groundwork"]  # type: ignore[index]
    stored = (await asyncio.to_thread(anna.get, f"/runs/{own['run_id']}")).json()
    pictures = re.compile(r"(!\[[^\]]*\])\([^)]*\)")  # URLs are signed again for each response.
    assert pictures.sub(r"\1", "".join(parts)) == pictures.sub(r"\1", stored["answer"]["text"])


async def test_an_assistant_passes_on_what_the_person_answers(app: SampleApp) -> None:
    async with assistant(app, "legacy") as client:
        run = await call(client, "ask", question=AMBIGUOUS)
        assert run["status"] == "waiting"
        assert len(run["clarification"]["options"]) > 1
        answered = await call(client, "reply", run_id=run["run_id"], answer="2")
        while answered["status"] == "running":
            answered = await call(client, "get_answer", run_id=run["run_id"])
        assert (answered["status"], answered["run_id"]) == ("completed", run["run_id"])
        assert answered["citations"]
        again = await client.call_tool("reply", {"run_id": run["run_id"], "answer": "1"})
        assert again.is_error


async def test_a_question_back_is_answered_by_the_next_message_in_the_same_thread(
    openai: AsyncOpenAI, anna: httpx.Client
) -> None:
    messages: list[Any] = [{"role": "user", "content": AMBIGUOUS}]
    completion = await openai.chat.completions.create(model="groundwork", messages=messages)
    own: dict[str, Any] = completion.model_extra["groundwork"]  # type: ignore[index]
    assert own["status"] == "waiting"
    assert "1. " in (completion.choices[0].message.content or "")
    messages += [
        {"role": "assistant", "content": completion.choices[0].message.content},
        {"role": "user", "content": "1"},
    ]
    answered = await openai.chat.completions.create(model="groundwork", messages=messages)
    then: dict[str, Any] = answered.model_extra["groundwork"]  # type: ignore[index]
    assert (then["run_id"], then["status"]) == (own["run_id"], "completed")
    messages += [
        {"role": "assistant", "content": answered.choices[0].message.content},
        {"role": "user", "content": [{"type": "text", "text": "Which year is it about?"}]},
    ]
    further = await openai.chat.completions.create(model="groundwork", messages=messages)
    after: dict[str, Any] = further.model_extra["groundwork"]  # type: ignore[index]
    assert after["thread_id"] == own["thread_id"]
    response = await asyncio.to_thread(anna.get, f"/threads/{own['thread_id']}/messages")
    assert len(response.json()["messages"]) == 2
