"""Tests for agents in chats: which users see them in the help, and how to address them."""

from pathlib import Path

import pytest

from shared.runs.run_files import RunFiles
from tests.unit.teams.chat import ANNA, ANSWERED, BEN, GROUP, QUESTION, Chat, chat
from tests.world import Model, plan

AGENT = """---
name: {name}
description: Helps with *pumps*.
tools: [rag_semantic_search]
access: {access}
---
You help.
"""


@pytest.fixture
async def bot(tmp_path: Path) -> Chat:
    for name, access in (("pumps", "[engineering]"), ("everybody", '["*"]')):
        (tmp_path / f"{name}.agent.md").write_text(AGENT.format(name=name, access=access))
    return await chat(agents_folder=str(tmp_path))


async def agent_of_last(bot: Chat) -> str | None:
    run_id = [one for one, (name, _) in bot.orchestrations.started.items() if name == "answer_question"][-1]
    agent = (await RunFiles(bot.services.blobs, run_id).request()).agent
    return agent.name if agent else None


async def test_a_message_that_begins_with_its_name_asks_an_agent(bot: Chat) -> None:
    (message,) = await bot.write(f"Pumps: {QUESTION}")
    assert message.reply.text.startswith(ANSWERED)
    assert await agent_of_last(bot) == "pumps"
    await bot.write(QUESTION)
    assert await agent_of_last(bot) is None


@pytest.mark.parametrize("agent", ["engineer", "handbook", "librarian"])
async def test_each_sample_agent_answers(agent: str) -> None:
    model = Model(plan(), answer="<answer>It runs at 15 bar.") if agent == "librarian" else None
    bot = await chat(model, agents_folder="samples/agents")
    (message,) = await bot.write(f"{agent}: {QUESTION}")
    assert message.reply.text.startswith(ANSWERED)
    assert await agent_of_last(bot) == agent


async def test_an_agent_that_is_not_open_to_the_sender_is_only_words(bot: Chat) -> None:
    await bot.write(f"pumps: {QUESTION}", BEN)
    assert await agent_of_last(bot) is None


async def test_where_several_read_along_only_agents_for_everybody_are_asked(bot: Chat) -> None:
    await bot.write(f"pumps: {QUESTION}", ANNA, conversation=GROUP)
    assert await agent_of_last(bot) is None
    await bot.write(f"everybody: {QUESTION}", ANNA, conversation=GROUP)
    assert await agent_of_last(bot) == "everybody"


async def test_the_help_names_the_agents_of_the_sender(bot: Chat) -> None:
    (message,) = await bot.write("/help")
    assert "**pumps:** Helps with \\*pumps\\*" in message.reply.text
    (message,) = await bot.write("/help", BEN)
    assert "**everybody:**" in message.reply.text
    assert "**pumps:**" not in message.reply.text
    assert "agent" not in (await (await chat()).write("/help"))[0].reply.text
