"""Tests for threads with fake services: lists, titles, clearing, deletion, and privacy."""

import uuid

import pytest

from shared.conversations.messages import read_messages
from shared.conversations.threads import (
    clear_thread,
    delete_thread,
    list_threads,
    new_thread,
    owned_thread,
    rename_thread,
)
from shared.conversations.turns import thread_and_turns
from shared.conversations.window import conversation_from
from shared.platform.errors import CallerError, NotFoundError
from shared.runs.models import Conversation
from tests.fakes.run_log import InMemoryRunLog
from tests.unit.conversations.asking import ask, begin, questions_of
from tests.world import ANNA, BEN, corpus_services


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
