"""Tests for memory after a turn: stored once, summarised when due, private, and deleted completely."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.access.models import UserContext
from shared.conversations.memory import Memories, MemorySearch, forget_all, list_memories, remember
from shared.conversations.models import ConversationSummary, RememberTask
from shared.conversations.threads import clear_thread, delete_thread
from shared.conversations.turns import thread_and_turns
from shared.conversations.window import conversation_from
from shared.platform.errors import AccessDeniedError, CallerError, DependencyError
from shared.platform.language_models.models import Prompt
from shared.platform.names import TURNS_QUEUE
from shared.platform.search import IndexRow
from shared.tools.recall_memory import RecallMemory
from shared.wiring import Services
from tests.fakes.models import Reply, ScriptedChatModel
from tests.fakes.search_index import InMemorySearchIndex
from tests.fakes.services import fake_settings
from tests.fakes.stores import InMemoryTaskQueues
from tests.queued_work import remember_queued
from tests.unit.conversations.asking import ask
from tests.world import ANNA, BEN, Model, corpus_services, plan


def tasks(services: Services) -> list[RememberTask]:
    assert isinstance(services.queues, InMemoryTaskQueues)
    return [RememberTask.model_validate_json(message) for message in services.queues.take(TURNS_QUEUE)]


def rows(services: Services) -> dict[str, IndexRow]:
    assert isinstance(services.memory_index, InMemorySearchIndex)
    return services.memory_index.rows


def summarising(summary: Reply) -> ScriptedChatModel:
    """Return the usual model of the test corpus with `summary` as its reply to `summarise_turns`."""
    usual = Model(plan()).chat_model()
    answer = usual._answer
    assert answer is not None

    def reply(prompt: Prompt) -> Reply:
        return summary if prompt.name == "summarise_turns" else answer(prompt)

    return ScriptedChatModel(answer=reply)


async def test_an_answered_turn_is_remembered_once_however_often_it_is_told() -> None:
    services = await corpus_services()
    request = await ask(services, "At what pressure does the pump run?")
    (task,) = tasks(services)
    for _ in range(2):
        await remember(task, services)
    (row,) = rows(services).values()
    assert (row["memory_id"], row["user_id"]) == (request.run_id, "anna")
    assert row["answer_summary"] == "It runs at 15 bar."
    assert len(row["vector"]) == 64
    (listed,) = (await list_memories(ANNA, services, 10)).memories
    assert listed.question == "At what pressure does the pump run?"


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


async def test_a_message_that_was_lost_is_made_good_by_the_next() -> None:
    services = await corpus_services()
    first = await ask(services, "At what pressure does the pump run?")
    tasks(services)
    second = await ask(services, "And why?", first.thread_id)
    await remember_queued(services)
    assert set(rows(services)) == {first.run_id, second.run_id}


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


@pytest.mark.parametrize("remove", [clear_thread, delete_thread])
async def test_turns_that_went_before_their_message_are_not_remembered(remove: Any) -> None:
    services = await corpus_services()
    request = await ask(services, "At what pressure does the pump run?")
    await remove(request.thread_id, ANNA, services)
    await remember_queued(services)
    assert rows(services) == {}


async def test_a_thread_deleted_while_a_turn_is_remembered_leaves_nothing() -> None:
    services = await corpus_services()
    request = await ask(services, "At what pressure does the pump run?")
    index = services.memory_index
    assert isinstance(index, InMemorySearchIndex)
    upload = index.upload

    async def upload_late(rows: Any) -> None:
        await delete_thread(request.thread_id, ANNA, services)
        await upload(rows)

    index.upload = upload_late  # type: ignore[method-assign]
    await remember_queued(services)
    assert rows(services) == {}


async def test_older_turns_are_summarised_and_the_newest_kept_as_they_were() -> None:
    model = summarising(ConversationSummary(summary="They spoke of pumps."))
    services = await corpus_services(
        chat_model=model, settings=fake_settings(conversation_turns=4, subagents_enabled=False)
    )
    first = await ask(services, "q1")
    for number in range(2, 6):
        await remember_queued(services)
        await ask(services, f"q{number}", first.thread_id)
    assert all(prompt.name != "summarise_turns" for prompt in model.prompts)
    await remember_queued(services)
    (prompt,) = [prompt for prompt in model.prompts if prompt.name == "summarise_turns"]
    assert all(f">q{number}<" in prompt.user for number in (1, 2, 3))
    assert ">q4<" not in prompt.user
    conversation = conversation_from(*await thread_and_turns(first.thread_id, ANNA, services.threads))
    assert conversation.summary == "They spoke of pumps."
    assert [turn.question for turn in conversation.turns] == ["q4", "q5"]
    for number in range(6, 9):
        await ask(services, f"q{number}", first.thread_id)
    await remember_queued(services)
    last = [prompt for prompt in model.prompts if prompt.name == "summarise_turns"][-1]
    assert "<previous_summary>They spoke of pumps.</previous_summary>" in last.user
    assert ">q3<" not in last.user


async def test_a_summary_of_a_thread_that_was_cleared_meanwhile_is_dropped() -> None:
    services = await corpus_services(settings=fake_settings(conversation_turns=2, subagents_enabled=False))
    first = await ask(services, "q1")
    for number in (2, 3):
        await ask(services, f"q{number}", first.thread_id)
    parse = services.chat_model.parse

    async def clear_first(prompt: Prompt, output: Any, limits: Any) -> Any:
        if prompt.name != "summarise_turns":
            return await parse(prompt, output, limits)
        await clear_thread(first.thread_id, ANNA, services)
        return ConversationSummary(summary="They spoke of pumps.")

    services.chat_model.parse = clear_first  # type: ignore[method-assign]
    await remember_queued(services)
    assert conversation_from(*await thread_and_turns(first.thread_id, ANNA, services.threads)).summary == ""


async def test_a_model_that_is_down_is_asked_again_later_and_given_up_at_last() -> None:
    model = summarising(DependencyError("The model is down."))
    services = await corpus_services(
        chat_model=model, settings=fake_settings(conversation_turns=2, subagents_enabled=False)
    )
    first = await ask(services, "q1")
    for number in (2, 3):
        await ask(services, f"q{number}", first.thread_id)
    task = tasks(services)[-1]
    pauses = []
    while True:
        assert isinstance(services.queues, InMemoryTaskQueues)
        try:
            await remember(task, services)
        except DependencyError:
            break
        ((message, pause_s),) = services.queues.messages.pop(TURNS_QUEUE)
        task = RememberTask.model_validate_json(message)
        pauses.append(pause_s)
    assert pauses == [10, 20, 40, 80, 160, 320, 640]
    assert len(rows(services)) == 3


async def test_answers_do_not_wait_for_a_queue_that_is_down() -> None:
    class Down(InMemoryTaskQueues):
        async def send(self, queue: str, message: str, delay_s: float = 0.0) -> None:
            raise DependencyError("The queues are down.")

    services = await corpus_services(queues=Down())
    request = await ask(services, "At what pressure does the pump run?")
    record = await services.runs.get(request.run_id)
    assert record is not None
    assert record.status == "completed"
    assert record.finished_at is not None
    assert record.finished_at - datetime.now(UTC) < timedelta(seconds=1)


async def test_an_abstention_is_not_remembered() -> None:
    services = await corpus_services(Model(plan(), answer='<gap missing="the weight" next_step="Ask Ann."/>'))
    request = await ask(services, "How heavy is the pump?")
    await remember_queued(services)
    assert rows(services) == {}
    (turn,) = await services.threads.turns("anna", request.thread_id, 10)
    assert (turn.status, turn.is_remembered) == ("answered", True)
