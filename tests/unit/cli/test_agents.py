"""`agents`, and asking one."""

from typing import Any

import httpx

from cli.__main__ import command_tree
from cli.agents import list_agents
from cli.ask import ask
from cli.server_sent_events import Event
from tests.unit.cli.fakes import AnsweringApi, ReadTerminal, ScriptedApi

LISTED = [{"name": "librarian", "description": "Finds documents.", "tools": [], "proof": "optional"}]


def shown(agents: list[Any]) -> str:
    def answer(asked: httpx.Request) -> httpx.Response:
        assert asked.url.path == "/api/agents"
        return httpx.Response(200, json={"agents": agents})

    read = ReadTerminal()
    assert list_agents(AnsweringApi(answer), read.terminal, command_tree().parse(["agents"])) == 0
    return read.out.getvalue()


def test_agents_are_listed_with_what_they_are_for() -> None:
    assert shown(LISTED).split() == ["librarian", "Finds", "documents."]
    assert "no agents" in shown([])


def test_an_agent_is_asked_by_its_name() -> None:
    answer = {"text": "That one.", "citations": [], "abstained": False}
    ended = Event(1, "complete", {"answer": answer, "run_id": "r1", "thread_id": "t1"})
    api = ScriptedApi([ended])
    given = command_tree().parse(["ask", "Which?", "--agent", "librarian"])
    assert ask(api, ReadTerminal().terminal, given) == 0
    assert api.bodies[0]["agent"] == "librarian"
