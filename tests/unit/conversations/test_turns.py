"""Tests for turns with fake services: their order, and the conversation that a question receives."""

import asyncio
import uuid

import pytest

from shared.answering.inline import run_to_end
from shared.answering.runs import begin_run
from shared.conversations.messages import read_messages
from shared.conversations.threads import list_threads, new_thread, owned_thread
from shared.conversations.turns import thread_and_turns
from shared.conversations.window import conversation_from
from shared.platform.errors import ConflictError
from shared.runs.models import ChatRequest
from shared.runs.run_files import RunFiles
from tests.unit.conversations.asking import ask, begin, questions, questions_of
from tests.world import ANNA, corpus_services


async def test_a_question_without_a_thread_begins_one_with_its_title() -> None:
    services = await corpus_services()
    request = await ask(services, "At what  pressure\ndoes the pump run? " + "x" * 300)
    (thread,) = (await list_threads(ANNA, services.threads, 10)).threads
    assert thread.thread_id == request.thread_id
    assert thread.title.startswith("At what pressure does the pump run?")
    assert len(thread.title) <= 120
    assert thread.turn_count == 1


async def test_a_follow_up_is_told_what_was_said_before() -> None:
    services = await corpus_services()
    first = await ask(services, "At what pressure does the pump run?")
    second = await begin(services, "And why?", first.thread_id)
    (turn,) = second.conversation.turns
    assert turn.question == "At what pressure does the pump run?"
    assert turn.answer == "It runs at 15 bar."
    assert (turn.doc_ids, turn.filenames) == (("manual",), ("manual.pdf",))
    stored = await RunFiles(services.blobs, second.run_id).request()
    assert stored.conversation == second.conversation


async def test_a_replaced_turn_is_shown_but_not_told_to_later_questions() -> None:
    services = await corpus_services()
    first = await ask(services, "At what pressure does the pump run?")
    again = ChatRequest(
        question="At what pressure does it run?", thread_id=first.thread_id, replaces=first.run_id
    )
    second = await begin_run(again, ANNA, services)
    assert second.conversation.turns == ()
    await run_to_end(second.run_id, services)
    third = await begin(services, "And why?", first.thread_id)
    assert questions(third) == ["At what pressure does it run?"]
    messages = (await read_messages(first.thread_id, ANNA, services, 20)).messages
    assert [message.replaces for message in messages] == [None, first.run_id, None]


async def test_an_older_turn_is_replaced_with_all_that_followed_it() -> None:
    services = await corpus_services()
    first = await ask(services, "At what pressure does the pump run?")
    thread = first.thread_id
    second = await ask(services, "And why?", thread)
    await ask(services, "Since when?", thread)
    again = ChatRequest(question="Why is that?", thread_id=thread, replaces=second.run_id)
    newer = await begin_run(again, ANNA, services)
    assert questions(newer) == [first.question]
    await run_to_end(newer.run_id, services)
    next_one = await ask(services, "Until when?", thread)
    assert questions(next_one) == [first.question, "Why is that?"]
    # An earlier version of a turn can also be replaced.
    third = await begin_run(again, ANNA, services)
    assert questions(third) == [first.question]
    messages = (await read_messages(thread, ANNA, services, 20)).messages
    assert [message.replaces for message in messages] == [
        None,
        None,
        None,
        second.run_id,
        None,
        second.run_id,
    ]


async def test_a_turn_that_is_missing_or_summarised_is_not_replaced() -> None:
    services = await corpus_services()
    first = await ask(services, "At what pressure does the pump run?")
    second = await ask(services, "And why?", first.thread_id)
    stored = await services.threads.get(ANNA.user_id, first.thread_id)
    assert stored is not None
    summarised = stored.model_copy(update={"summarised_count": 1, "summary": "About a pump."})
    turn = await services.threads.turn(ANNA.user_id, first.thread_id, 2)
    assert turn is not None
    await services.threads.replace(stored, summarised, turn)
    for replaced in (first.run_id, "f" * 32):
        again = ChatRequest(question="How?", thread_id=first.thread_id, replaces=replaced)
        with pytest.raises(ConflictError):
            await begin_run(again, ANNA, services)
    newer = ChatRequest(question="How?", thread_id=first.thread_id, replaces=second.run_id)
    assert (await begin_run(newer, ANNA, services)).conversation.summary == "About a pump."


async def test_questions_at_once_get_numbers_of_their_own() -> None:
    services = await corpus_services()
    thread = await new_thread(None, ANNA, services.threads, uuid.uuid4().hex)
    await asyncio.gather(*(begin(services, f"q{number}", thread.thread_id) for number in range(5)))
    assert (await owned_thread(thread.thread_id, ANNA, services.threads)).turn_count == 5
    assert sorted(await questions_of(services, thread.thread_id)) == [f"q{number}" for number in range(5)]


async def test_a_conversation_is_bounded() -> None:
    services = await corpus_services()
    thread = await new_thread(None, ANNA, services.threads, uuid.uuid4().hex)
    for number in range(8):
        await begin(services, f"{number} " + "word " * 1500, thread.thread_id)
    conversation = conversation_from(*await thread_and_turns(thread.thread_id, ANNA, services.threads))
    assert sum(len(turn.question) for turn in conversation.turns) <= 12_000
    assert [turn.question[0] for turn in conversation.turns] == ["5", "6", "7"]
