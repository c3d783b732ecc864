"""Agents in a program that uses the library and the real SDK: tool loop, limits, sessions, and stored
data.
"""

import json
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from shared.access.models import UserContext
from shared.answering.agent import AGENT_EVENTS, Agent, AgentLimits
from shared.platform.errors import AccessDeniedError, ConfigurationError
from shared.platform.names import RUN_LOG, WORK
from shared.runs.events import RunEvent
from tests.contract.agents.completions import calls, words
from tests.contract.agents.weighing import (
    ANNA,
    MakeAgent,
    Weigh,
    collect_events,
    names,
    request_bodies,
    results,
)
from tests.contract.clients.scripted_server import FOR_EVER_S, Answer, ScriptedServer
from tests.fakes.services import fake_services

pytestmark = pytest.mark.contract
WEIGHED = (calls(("weigh", '{"thing": "pump"}'), text="I weigh the pump."), words("<answer>12 kg."))


def outcome(events: Sequence[RunEvent]) -> tuple[str, Any]:
    """Return how the run ended, with the answer's text or the error's type."""
    last = events[-1]
    return last.name, last.data["answer"]["text"] if last.name == "COMPLETE" else last.data["type"]


async def stored(agent: Agent) -> list[str]:
    blobs = agent.services.blobs
    return [one.name for container in (WORK, RUN_LOG) async for one in blobs.list_blobs(container)]


async def test_it_calls_its_tool_and_answers(make_agent: MakeAgent) -> None:
    async with ScriptedServer(*WEIGHED) as server:
        agent = make_agent(server)
        events = await collect_events(agent)
    assert outcome(events) == ("COMPLETE", "12 kg.")
    assert set(names(events)) <= AGENT_EVENTS
    assert [name for name in names(events) if name.startswith("TOOL")] == ["TOOL_STARTED", "TOOL_RESULT"]
    first, second = request_bodies(server)
    assert "You weigh things for {{nobody}}." in first["messages"][0]["content"]
    assert [tool["function"]["name"] for tool in first["tools"]] == ["weigh"]
    assert "<documents" not in first["messages"][1]["content"]
    assert json.loads(second["messages"][-1]["content"])["kilograms"] == 12
    assert await stored(agent) == [], "nothing stays behind"


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("delete_all", "{}", "InvalidQueryError"),
        ("rag_list_documents", "{}", "InvalidQueryError"),
        ("weigh", '{"thing": "no end', "InvalidQueryError"),
        ("weigh", "[1, 2]", "InvalidQueryError"),
        ("weigh", '{"thing": 7}', "InvalidQueryError"),
        ("weigh", '{"thing": "nothing"}', "DocumentNotFoundError"),
        ("weigh", '{"thing": "bug"}', "ToolError"),
    ],
)
async def test_a_bad_call_goes_back_to_the_model(
    make_agent: MakeAgent, name: str, arguments: str, kind: str
) -> None:
    async with ScriptedServer(calls((name, arguments)), *WEIGHED) as server:
        assert outcome(await collect_events(make_agent(server))) == ("COMPLETE", "12 kg.")
    failed, mended = results(server)
    assert (failed["success"], failed["type"]) == (False, kind)
    assert "what the tool read" not in json.dumps(failed)
    assert mended["success"]


async def test_a_model_that_calls_for_ever_is_stopped(make_agent: MakeAgent) -> None:
    script = [calls(("weigh", f'{{"thing": "{number}"}}')) for number in range(30)]
    tool = Weigh()
    async with ScriptedServer(*script) as server:
        events = await collect_events(make_agent(server, tool, limits=AgentLimits(turns=3)))
    assert events[-1].name == "ERROR"
    assert len(tool.weighed) == 2
    assert request_bodies(server)[-1]["tool_choice"] == "none"


async def test_calls_and_tokens_are_bounded(make_agent: MakeAgent) -> None:
    many = calls(*(("weigh", f'{{"thing": "{number}"}}') for number in range(20)))
    tool = Weigh()
    async with ScriptedServer(many, words("<answer>Two of them.")) as server:
        await collect_events(make_agent(server, tool, limits=AgentLimits(calls=2)))
    assert len(tool.weighed) == 2
    async with ScriptedServer(words("<answer>12 kg.")) as server:
        events = await collect_events(
            make_agent(server, limits=AgentLimits(tokens=1000)), "How heavy? " * 700
        )
        assert outcome(events) == ("ERROR", "BudgetExceededError")
        assert server.bodies == []


@pytest.mark.e2e  # the shortest deadline is 5 s
async def test_a_model_that_hangs_ends_within_the_deadline(make_agent: MakeAgent) -> None:
    async with ScriptedServer(Answer(delay_s=FOR_EVER_S)) as server:
        events = await collect_events(make_agent(server, limits=AgentLimits(seconds=5)))
    assert events[-1].name == "ERROR"


async def test_the_next_message_answers_what_was_asked_back(make_agent: MakeAgent) -> None:
    ask = calls(("ask_user", '{"question": "Which pump?", "options": ["X200", "X300"]}'))
    async with ScriptedServer(ask, words("<answer>The X300 weighs 12 kg."), words("<answer>Yes.")) as server:
        agent = make_agent(server, Weigh(), "ask_user")
        clarification_events = await collect_events(agent, "How heavy is the pump?", "s")
        assert clarification_events[-1].name == "ASK_USER"
        assert await stored(agent) != [], "it waits"
        answered = await collect_events(agent, "2", "s")
        assert outcome(answered) == ("COMPLETE", "The X300 weighs 12 kg.")
        assert await stored(agent) == []
        await collect_events(agent, "Really?", "s")
    assert "X300" in request_bodies(server)[1]["messages"][-1]["content"]
    assert "12 kg" in request_bodies(server)[2]["messages"][1]["content"], "the conversation so far"


async def test_sessions_do_not_know_of_each_other(make_agent: MakeAgent) -> None:
    async with ScriptedServer(words("<answer>Alpha."), words("<answer>Beta.")) as server:
        agent = make_agent(server)
        await collect_events(agent, "one", "s")
        await collect_events(agent, "two", "t")
    assert "Alpha" not in json.dumps(request_bodies(server)[1])


async def test_a_reader_that_goes_away_ends_the_work(make_agent: MakeAgent) -> None:
    tool = Weigh()
    async with ScriptedServer(calls(("weigh", '{"thing": "a", "delay_s": 3600}'))) as server:
        agent = make_agent(server, tool)
        async with aclosing(agent.execute("x")) as events:  # type: ignore[type-var]  # a generator in fact
            async for event in events:
                if event.name == "TOOL_STARTED":
                    break
        assert await stored(agent) == []
    assert tool.weighed == []


def test_an_agent_is_not_made_of_what_there_is_not() -> None:
    services = fake_services()
    with pytest.raises(ConfigurationError, match="rag_everything"):
        Agent.create_agent("a", "b", ["rag_everything"], services=services, user=ANNA)
    with pytest.raises(ConfigurationError, match="same name"):
        Agent.create_agent("a", "b", [Weigh(), Weigh()], services=services, user=ANNA)
    with pytest.raises(ConfigurationError, match="name of an agent"):
        Agent.create_agent("No Name", "b", [], services=services, user=ANNA)
    for nobody in (None, UserContext(user_id=" ")):
        with pytest.raises(AccessDeniedError):
            Agent.create_rag_agent(services, nobody)  # type: ignore[arg-type]


async def test_an_agent_of_a_file_is_for_those_whom_it_is_open_to(tmp_path: Path) -> None:
    path = tmp_path / "helper.agent.md"
    path.write_text("---\nname: helper\ndescription: Helps.\naccess: [anna]\n---\nHelp.\n")
    assert Agent.from_file(path, services=fake_services(), user=ANNA).tools == ()
    with pytest.raises(AccessDeniedError):
        Agent.from_file(path, services=fake_services(), user=UserContext(user_id="ben"))
