"""Tests for episodic memory: recalled, listed and forgotten by its owner alone."""

from typing import Any

import pytest

from shared.access.models import UserContext
from shared.conversations.memory import Memories, MemorySearch, forget_all, list_memories
from shared.platform.errors import AccessDeniedError, CallerError
from shared.tools.recall_memory import RecallMemory
from tests.fakes.search_index import InMemorySearchIndex
from tests.queued_work import remember_queued
from tests.unit.conversations.asking import ask
from tests.unit.conversations.remembered import rows
from tests.world import ANNA, BEN, corpus_services


async def test_an_answer_from_a_document_that_is_closed_by_now_is_not_told_again() -> None:
    services = await corpus_services()
    await ask(services, "At what pressure does the pump run?")
    await remember_queued(services)
    search = MemorySearch(services, ANNA)
    assert (await search.recall("pressure"))[0].answer_summary == "It runs at 15 bar."
    assert isinstance(services.documents_index, InMemorySearchIndex)
    for row in services.documents_index.rows.values():
        row["access_control_list"] = ["ben"]
    listed = await list_memories(ANNA, services, 10)
    for memory in (*listed.memories, *await search.recall("pressure")):
        assert (memory.question, memory.answer_summary) == ("At what pressure does the pump run?", "")
    assert "doc_ids" not in listed.model_dump_json()


async def test_recalled_are_ones_own_questions_alone() -> None:
    services = await corpus_services()
    await ask(services, "At what pressure does the pump run?", user=ANNA)
    await ask(services, "What is the travel allowance in Bern?", user=ANNA)
    await ask(services, "At what pressure does the secret pump run?", user=BEN)
    await remember_queued(services)
    result = await RecallMemory(MemorySearch(services, ANNA)).execute(query="pump pressure")
    assert result["success"] is True
    assert result["memories"][0]["question"] == "At what pressure does the pump run?"
    assert "secret" not in str(result)
    assert result["result_count"] == 2
    of_ben = await RecallMemory(MemorySearch(services, BEN)).execute(query="travel allowance")
    assert [memory["question"] for memory in of_ben["memories"]] == [
        "At what pressure does the secret pump run?"
    ]


@pytest.mark.parametrize("more", [{"user_id": "ben"}, {"filters": {"user_id": "ben"}}, {"user": BEN}])
async def test_no_argument_leads_to_somebody_else(more: dict[str, Any]) -> None:
    services = await corpus_services()
    await ask(services, "At what pressure does the pump run?", user=ANNA)
    await ask(services, "At what pressure does the secret pump run?", user=BEN)
    await remember_queued(services)
    recall = RecallMemory(MemorySearch(services, ANNA))
    result = await recall.execute(query="pump", **more)
    assert next(iter(more)) in result.pop("hints")[0]
    assert result == await recall.execute(query="pump")
    assert "secret" not in str(result)


@pytest.mark.parametrize("arguments", [{"query": ""}, {}])
async def test_nothing_is_recalled_for_no_words(arguments: dict[str, Any]) -> None:
    result = await RecallMemory(MemorySearch(await corpus_services(), ANNA)).execute(**arguments)
    assert (result["success"], result["type"]) == (False, "InvalidQueryError")
    assert result["hints"]


@pytest.mark.parametrize("user", [None, UserContext(user_id=""), UserContext(user_id="  ")])
async def test_without_a_user_there_are_no_memories(user: UserContext | None) -> None:
    with pytest.raises(AccessDeniedError):
        Memories(InMemorySearchIndex("memory_id"), user)


async def test_a_user_id_cannot_widen_the_filter() -> None:
    services = await corpus_services()
    await ask(services, "At what pressure does the pump run?")
    await remember_queued(services)
    mallory = UserContext(user_id="x' or user_id ne 'x")
    assert (await list_memories(mallory, services, 10)).memories == ()


async def test_memories_come_in_pages_newest_first() -> None:
    services = await corpus_services()
    for number in range(3):
        await ask(services, f"question {number}")
    await remember_queued(services)
    page = await list_memories(ANNA, services, 2)
    rest = await list_memories(ANNA, services, 2, page.cursor)
    questions = [memory.question for memory in (*page.memories, *rest.memories)]
    assert (questions, rest.cursor) == (["question 2", "question 1", "question 0"], None)
    for cursor in ("x", "-1", "9999999", "١"):
        with pytest.raises(CallerError):
            await list_memories(ANNA, services, 2, cursor)


async def test_what_is_forgotten_does_not_come_back() -> None:
    services = await corpus_services()
    first = await ask(services, "At what pressure does the pump run?")
    await ask(services, "Of Ben?", user=BEN)
    await remember_queued(services)
    late = await ask(services, "A question whose message waits.", first.thread_id)
    assert (await forget_all(ANNA, services.memory_index, services.threads)).deleted == 1
    await remember_queued(services)
    assert late.run_id not in rows(services)
    assert [row["user_id"] for row in rows(services).values()] == ["ben"]
    assert (await forget_all(ANNA, services.memory_index, services.threads)).deleted == 0
    await ask(services, "A new question.")
    await remember_queued(services)
    assert [one.question for one in (await list_memories(ANNA, services, 9)).memories] == ["A new question."]
