"""Agents defined in files, used through every channel: the API, the routes of the command line, MCP and the
openai SDK.
"""

import asyncio
import io
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stdout
from typing import Any

import httpx
import pytest
from openai import AsyncOpenAI, NotFoundError

from cli.__main__ import main
from samples.acl import ANNA, BEN
from samples.questions import FIRST_QUESTION
from tests.contract.api.test_assistants import assistant, call
from tests.sample_app import SampleApp

pytestmark = pytest.mark.contract
PATIENCE_S = 120.0
QUESTIONS = {
    "engineer": FIRST_QUESTION.text,
    "handbook": "Who is on the safety committee?",
    "librarian": "Which document is about onboarding?",
}
ANNAS = list(QUESTIONS)
BENS = ["handbook", "librarian"]


@pytest.fixture(name="people")
def make_people(app: SampleApp) -> Iterator[dict[str, httpx.Client]]:
    with ExitStack() as opened:
        yield {
            user.user_id: opened.enter_context(
                httpx.Client(
                    base_url=f"{app.base_url}/api",
                    headers={"Authorization": f"Bearer {app.token(user)}"},
                    timeout=PATIENCE_S,
                )
            )
            for user in (ANNA, BEN)
        }


def ask(client: httpx.Client, agent: str, question: str = FIRST_QUESTION.text) -> dict[str, Any]:
    body = {"question": question, "agent": agent, "stream": False}
    answer = client.post("/chat", json=body)
    assert answer.status_code == 200, answer.text
    view: dict[str, Any] = answer.json()
    return view


def test_people_see_the_agents_that_are_open_to_them(people: dict[str, httpx.Client]) -> None:
    for name, agents in (("anna", ANNAS), ("ben", BENS)):
        listed = people[name].get("/agents").json()["agents"]
        assert [one["name"] for one in listed] == agents
        assert all(set(one) == {"name", "description", "tools", "proof"} for one in listed)


def test_an_agent_answers_with_proof_and_belongs_to_a_thread(people: dict[str, httpx.Client]) -> None:
    view = ask(people["anna"], "engineer")
    assert view["status"] == "completed"
    assert any(cited["verified"] for cited in view["answer"]["citations"])
    body = {"question": "And who says so?", "thread_id": view["thread_id"], "agent": "handbook"}
    assert people["anna"].post("/chat", json={**body, "stream": False}).status_code == 200
    messages = people["anna"].get(f"/threads/{view['thread_id']}/messages").json()["messages"]
    assert len(messages) == 2, messages


def test_an_agent_shows_nobody_more_than_they_may_read(people: dict[str, httpx.Client]) -> None:
    view = ask(people["ben"], "handbook")
    assert "heron-400-manual.pdf" not in str(view)


def test_a_librarian_works_with_tools_alone(people: dict[str, httpx.Client]) -> None:
    view = ask(people["ben"], "librarian", "Which document is about onboarding?")
    log = people["ben"].get(f"/runs/{view['run_id']}/events").text
    assert "rag_metadata_search" in log
    assert "rag_semantic_search" not in log


@pytest.mark.parametrize("agent", ["engineer", "nobody"])
def test_an_agent_that_is_not_open_to_the_person_does_not_exist(
    people: dict[str, httpx.Client], agent: str
) -> None:
    refused = people["ben"].post("/chat", json={"question": "x", "agent": agent, "stream": False})
    assert refused.status_code == 404
    assert refused.json()["detail"] == f"There is no agent '{agent}'."


async def test_it_is_a_model_of_the_openai_sdk(app: SampleApp, people: dict[str, httpx.Client]) -> None:
    async with AsyncOpenAI(base_url=f"{app.base_url}/api/v1", api_key=app.token(BEN)) as client:
        assert {model.id async for model in client.models.list()} >= set(BENS)
        messages: list[Any] = [{"role": "user", "content": "How much leave do I have?"}]
        answered = await client.chat.completions.create(model="handbook", messages=messages)
        assert answered.choices[0].message.content
        with pytest.raises(NotFoundError):
            await client.chat.completions.create(model="engineer", messages=messages)
    run_id = answered.model_extra["groundwork"]["run_id"]  # type: ignore[index]
    assert (await asyncio.to_thread(people["ben"].get, f"/runs/{run_id}")).json()["status"] == "completed"


async def test_an_mcp_client_sees_the_agents_of_its_person(app: SampleApp) -> None:
    async with assistant(app, "2026-07-28", BEN) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "handbook: " in (tools["ask"].description or "")
        assert "engineer" not in (tools["ask"].description or "")
        refused = await client.call_tool("ask", {"question": "x", "agent": "engineer"})
        assert refused.is_error


@pytest.mark.parametrize("agent", ANNAS)
async def test_each_sample_agent_answers_over_mcp_and_the_command_line(app: SampleApp, agent: str) -> None:
    async with assistant(app, "2026-07-28") as client:
        answered = await call(client, "ask", question=QUESTIONS[agent], agent=agent)
        while answered["status"] == "running":
            answered = await call(client, "get_answer", run_id=answered["run_id"])
    assert answered["status"] == "completed"
    assert answered["answer"]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as output:
        for name, value in {"GROUNDWORK_URL": app.base_url, "GROUNDWORK_TOKEN": app.token(ANNA)}.items():
            patch.setenv(name, value)
        exit_code = await asyncio.to_thread(main, ("ask", QUESTIONS[agent], "--agent", agent, "--quiet"))
    assert (exit_code, bool(output.getvalue().strip())) == (0, True)
