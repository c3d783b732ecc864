"""Tests for the work after an answer: what is remembered and summarised, and what is not."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.conversations.memory import list_memories
from shared.conversations.models import ConversationSummary, RememberTask
from shared.conversations.remembering import remember
from shared.conversations.threads import clear_thread, delete_thread
from shared.conversations.turns import thread_and_turns
from shared.conversations.window import conversation_from
from shared.platform.errors import DependencyError
from shared.platform.language_models.models import Prompt
from shared.platform.names import TURNS_QUEUE
from shared.wiring import Services
from tests.fakes.models import Reply, ScriptedChatModel
from tests.fakes.search_index import InMemorySearchIndex
from tests.fakes.services import fake_settings
from tests.fakes.stores import InMemoryTaskQueues
from tests.queued_work import remember_queued
from tests.unit.conversations.asking import ask
from tests.unit.conversations.remembered import rows
from tests.world import ANNA, Model, corpus_services, plan


def tasks(services: Services) -> list[RememberTask]:
    assert isinstance(services.queues, InMemoryTaskQueues)
    return [RememberTask.model_validate_json(message) for message in services.queues.take(TURNS_QUEUE)]


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


async def test_a_message_that_was_lost_is_made_good_by_the_next() -> None:
    services = await corpus_services()
    first = await ask(services, "At what pressure does the pump run?")
    tasks(services)
    second = await ask(services, "And why?", first.thread_id)
    await remember_queued(services)
    assert set(rows(services)) == {first.run_id, second.run_id}


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
