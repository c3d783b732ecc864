"""Tests for threads with fake services: the order of turns, conversations for questions, and privacy."""

import asyncio
import uuid
from typing import Any

import pytest

from shared.access.models import UserContext
from shared.answering.inline import run_to_end
from shared.answering.runs import begin_run
from shared.conversations.threads import (
    clear_thread,
    delete_thread,
    find_threads,
    list_threads,
    new_thread,
    owned_thread,
    read_messages,
    rename_thread,
    thread_and_turns,
)
from shared.conversations.window import conversation_from
from shared.platform.errors import CallerError, ConflictError, NotFoundError
from shared.runs.models import ChatRequest, Conversation, RunRequest
from shared.runs.run_files import RunFiles
from shared.wiring import Services
from tests.fakes.run_log import InMemoryRunLog
from tests.world import ANNA, BEN, corpus_services


async def begin(services: Services, question: str, thread_id: str | None = None, **of: Any) -> RunRequest:
    chat = ChatRequest(question=question, thread_id=thread_id)
    return await begin_run(chat, of.get("user", ANNA), services)


async def ask(services: Services, question: str, thread_id: str | None = None, **of: Any) -> RunRequest:
    request = await begin(services, question, thread_id, **of)
    await run_to_end(request.run_id, services)
    return request


async def questions_of(services: Services, thread_id: str, user: UserContext = ANNA) -> list[str]:
    return [message.question for message in (await read_messages(thread_id, user, services, 20)).messages]


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


def questions(request: RunRequest) -> list[str]:
    return [turn.question for turn in request.conversation.turns]


async def test_a_thread_with_a_title_of_its_own_keeps_it() -> None:
    services = await corpus_services()
    titled_thread = await new_thread("Pumps", ANNA, services.threads, uuid.uuid4().hex)
    untitled_thread = await new_thread(None, ANNA, services.threads, uuid.uuid4().hex)
    for thread in (titled_thread, untitled_thread):
        await ask(services, "How much?", thread.thread_id)
    assert [one.title for one in (await list_threads(ANNA, services.threads, 10)).threads] == [
        "How much?",
        "Pumps",
    ]
    renamed = await rename_thread(untitled_thread.thread_id, "Prices", ANNA, services.threads)
    assert renamed.title == "Prices"


async def test_threads_come_in_pages_the_last_one_used_first() -> None:
    services = await corpus_services()
    threads = [
        await new_thread(f"t{number}", ANNA, services.threads, uuid.uuid4().hex) for number in range(5)
    ]
    await begin(services, "again", threads[0].thread_id)
    seen: list[str] = []
    cursor = None
    while True:
        page = await list_threads(ANNA, services.threads, 2, cursor)
        seen += [thread.title for thread in page.threads]
        cursor = page.cursor
        if cursor is None:
            break
    assert seen == ["t0", "t4", "t3", "t2", "t1"]
    with pytest.raises(CallerError):
        await list_threads(ANNA, services.threads, 2, "strange")


async def test_threads_are_found_by_words_of_title_and_questions_that_stand() -> None:
    services = await corpus_services()
    pumps = await new_thread("Pumps", ANNA, services.threads, uuid.uuid4().hex)
    await ask(services, "How much does the Heron weigh?", pumps.thread_id)
    await ask(services, "Who services it?", pumps.thread_id)
    leave = await ask(services, "How long is parental leave?")

    async def find_ids(words: str, user: UserContext = ANNA) -> list[str]:
        return [one.thread_id for one in (await find_threads(words, user, services.threads, 10)).threads]

    assert await find_ids("HERON pump serv") == [pumps.thread_id]
    assert await find_ids("how") == [leave.thread_id, pumps.thread_id]
    assert await find_ids("heron leave") == []
    assert await find_ids("heron", BEN) == []
    await clear_thread(pumps.thread_id, ANNA, services)
    assert await find_ids("heron") == []


async def test_questions_at_once_get_numbers_of_their_own() -> None:
    services = await corpus_services()
    thread = await new_thread(None, ANNA, services.threads, uuid.uuid4().hex)
    await asyncio.gather(*(begin(services, f"q{number}", thread.thread_id) for number in range(5)))
    assert (await owned_thread(thread.thread_id, ANNA, services.threads)).turn_count == 5
    assert sorted(await questions_of(services, thread.thread_id)) == [f"q{number}" for number in range(5)]


async def test_messages_come_from_the_newest_page_on_and_in_order() -> None:
    services = await corpus_services()
    thread = await new_thread(None, ANNA, services.threads, uuid.uuid4().hex)
    for number in range(5):
        await ask(services, f"q{number}", thread.thread_id)
    newest = await read_messages(thread.thread_id, ANNA, services, 2)
    assert [message.question for message in newest.messages] == ["q3", "q4"]
    assert newest.messages[0].answer is not None
    assert newest.messages[0].answer.citations[0].filename == "manual.pdf"
    assert newest.cursor is not None
    older = await read_messages(thread.thread_id, ANNA, services, 3, int(newest.cursor))
    assert [message.question for message in older.messages] == ["q0", "q1", "q2"]
    assert older.cursor is None


async def test_somebody_elses_thread_is_not_there() -> None:
    services = await corpus_services()
    mine = await ask(services, "At what pressure does the pump run?")
    assert isinstance(services.run_log, InMemoryRunLog)
    logs = set(services.run_log.logs)
    for attempt in (
        lambda: begin(services, "And why?", mine.thread_id, user=BEN),
        lambda: owned_thread(mine.thread_id, BEN, services.threads),
        lambda: thread_and_turns(mine.thread_id, BEN, services.threads),
        lambda: rename_thread(mine.thread_id, "x", BEN, services.threads),
        lambda: clear_thread(mine.thread_id, BEN, services),
        lambda: delete_thread(mine.thread_id, BEN, services),
        lambda: read_messages(mine.thread_id, BEN, services, 10),
        lambda: begin(services, "And why?", "never-was", user=BEN),
        lambda: owned_thread("a/b", BEN, services.threads),
    ):
        with pytest.raises(NotFoundError) as refused:
            await attempt()
        assert refused.value.detail.startswith("There is no thread")
    assert (await list_threads(BEN, services.threads, 10)).threads == ()
    assert set(services.run_log.logs) == logs
    assert await questions_of(services, mine.thread_id) == ["At what pressure does the pump run?"]


async def test_a_cleared_thread_is_empty_and_goes_on() -> None:
    services = await corpus_services()
    first = await ask(services, "At what pressure does the pump run?")
    cleared = await clear_thread(first.thread_id, ANNA, services)
    assert cleared.turn_count == 0
    assert await questions_of(services, first.thread_id) == []
    assert (
        conversation_from(*await thread_and_turns(first.thread_id, ANNA, services.threads)) == Conversation()
    )
    await ask(services, "What now?", first.thread_id)
    assert await questions_of(services, first.thread_id) == ["What now?"]
    assert (await owned_thread(first.thread_id, ANNA, services.threads)).turn_count == 2


async def test_a_deleted_thread_is_gone_at_once_and_deleting_again_is_no_error() -> None:
    services = await corpus_services()
    first = await ask(services, "At what pressure does the pump run?")
    await delete_thread(first.thread_id, ANNA, services)
    await delete_thread(first.thread_id, ANNA, services)
    assert (await list_threads(ANNA, services.threads, 10)).threads == ()
    for attempt in (
        lambda: owned_thread(first.thread_id, ANNA, services.threads),
        lambda: begin(services, "And?", first.thread_id),
        lambda: rename_thread(first.thread_id, "x", ANNA, services.threads),
    ):
        with pytest.raises(NotFoundError):
            await attempt()


async def test_a_conversation_is_bounded() -> None:
    services = await corpus_services()
    thread = await new_thread(None, ANNA, services.threads, uuid.uuid4().hex)
    for number in range(8):
        await begin(services, f"{number} " + "word " * 1500, thread.thread_id)
    conversation = conversation_from(*await thread_and_turns(thread.thread_id, ANNA, services.threads))
    assert sum(len(turn.question) for turn in conversation.turns) <= 12_000
    assert [turn.question[0] for turn in conversation.turns] == ["5", "6", "7"]
