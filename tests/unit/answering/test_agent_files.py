"""Tests for agent definition files: the accepted forms, and the location reported for each mistake."""

from pathlib import Path

import pytest

from shared.access.models import UserContext
from shared.answering.agent_files import (
    agent_for,
    agents_for,
    agents_of,
    asked_agent,
    list_agents,
    read_agent,
)
from shared.platform.errors import ConfigurationError, NotFoundError
from tests.architecture.source_tree import ROOT
from tests.fakes.services import fake_settings

ANNA = UserContext(user_id="anna", groups=("engineering",))
BEN = UserContext(user_id="ben")
GOOD = """---
name: helper
description: Helps with pumps.
tools: [rag_semantic_search, read_pages]
limits:
  turns: 3
filters:
  project_id: [pumps]
access: [engineering]
proof: optional
expose:
  mcp: false
---
You help.

{{nobody}} --- is no template.
"""


def write_agent_file(folder: Path, text: str = GOOD, name: str = "helper") -> Path:
    path = folder / f"{name}.agent.md"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_becomes_an_agent(tmp_path: Path) -> None:
    agent = read_agent(write_agent_file(tmp_path))
    assert (agent.name, agent.tools) == ("helper", ("rag_semantic_search", "read_pages"))
    assert agent.instructions == "You help.\n\n{{nobody}} --- is no template."
    assert (agent.limits.turns, agent.limits.calls) == (3, None)
    assert (agent.proof, agent.expose.mcp, agent.expose.chat) == ("optional", False, True)
    assert agent.restrict_user(ANNA).within == {"project_id": ("pumps",)}


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("---\nname", "name", 1, "between two lines"),
        ("description: Helps with pumps.", "description: [", 5, "expected"),
        ("tools:", "colour: red\ntools:", 4, "colour"),
        ("  turns: 3", "  turns: many", 6, "limits.turns"),
        ("  turns: 3", "  turn: 3", 6, "limits.turn"),
        ("  turns: 3", "  turns: 3\n  turns: 4", 7, "set twice"),
        ("  project_id: [pumps]", "  owner: [anna]", 8, "filters.owner"),
        ("  project_id: [pumps]", "  project_id: []", 8, "filters.project_id"),
        ("read_pages]", "rag_everything]", 4, "no tool 'rag_everything'"),
        ("read_pages]", "web_search]", 4, "tool web_search is disabled"),
        ("read_pages]", "python]", 4, "Add python to AGENT_TOOLS"),
        ("read_pages]", "rag_semantic_search]", 4, "listed twice"),
        ("access: [engineering]\n", "", 1, "access"),
        ("access: [engineering]", "access: []", 9, "access"),
        ("proof: optional", "proof: never", 10, "proof"),
        ("  mcp: false", "  fax: true", 12, "expose.fax"),
        ("name: helper", "name: other", 2, "named other.agent.md"),
        ("name: helper", "name: ../helper", 2, "name"),
        ("You help.\n\n{{nobody}} --- is no template.\n", "", 1, "instructions"),
        ("description: Helps with pumps.", "description: !!python/object:os.system {}", 3, "tag"),
    ],
)
def test_a_mistake_is_reported_with_file_and_line(
    tmp_path: Path, old: str, new: str, line: int, message: str
) -> None:
    path = write_agent_file(tmp_path, GOOD.replace(old, new))
    with pytest.raises(ConfigurationError) as wrong:
        read_agent(path)
    assert wrong.value.detail.startswith(f"{path}:{line}: ")
    assert message in wrong.value.detail


@pytest.mark.parametrize("name", ["python", "list_tables", "query_structured_data", "run_sql"])
def test_a_tool_that_is_there_can_be_named(name: str, tmp_path: Path) -> None:
    path = write_agent_file(tmp_path, GOOD.replace("read_pages]", f"{name}]"))
    assert read_agent(path, ("python",)).tools == ("rag_semantic_search", name)


def test_our_own_models_cannot_be_replaced(tmp_path: Path) -> None:
    path = write_agent_file(tmp_path, GOOD.replace("name: helper", "name: groundwork-2"), "groundwork-2")
    with pytest.raises(ConfigurationError, match="start with groundwork"):
        read_agent(path)


def test_people_see_the_agents_that_are_open_to_them(tmp_path: Path) -> None:
    write_agent_file(tmp_path)
    settings = fake_settings(agents_folder=str(tmp_path))
    assert [one.name for one in list_agents(ANNA, settings).agents] == ["helper"]
    assert list_agents(BEN, settings).agents == ()
    assert agents_for(ANNA, settings, "mcp") == []
    assert agent_for("helper", ANNA, settings, "openai").name == "helper"
    for name, user, channel in (
        ("helper", BEN, "chat"),
        ("helper", ANNA, "mcp"),
        ("none", ANNA, "chat"),
    ):
        with pytest.raises(NotFoundError, match=f"There is no agent '{name}'"):
            agent_for(name, user, settings, channel)  # type: ignore[arg-type]


def test_a_message_of_a_chat_names_its_agent_first(tmp_path: Path) -> None:
    write_agent_file(tmp_path)
    settings = fake_settings(agents_folder=str(tmp_path))
    assert asked_agent("Helper: which pump?", ANNA, settings) == ("helper", "which pump?")
    for text in ("helper:", "Remember: which pump?", "Which helper: this?", "helper"):
        assert asked_agent(text, ANNA, settings) == (None, text)
    assert asked_agent("helper: which pump?", BEN, settings) == (None, "helper: which pump?")


def test_without_a_folder_there_are_no_agents() -> None:
    assert agents_of(fake_settings(agents_folder="no/such/folder")) == {}


def test_the_samples_are_right() -> None:
    agents = agents_of(fake_settings(agents_folder=str(ROOT / "samples/agents")))
    assert set(agents) == {"engineer", "handbook", "librarian"}
