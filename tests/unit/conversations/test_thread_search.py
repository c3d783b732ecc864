"""Tests for searches over all threads of a user."""

import uuid

from shared.access.models import UserContext
from shared.conversations.thread_search import find_threads, thread_with
from shared.conversations.threads import clear_thread, delete_thread, new_thread
from tests.unit.conversations.asking import ask
from tests.world import ANNA, BEN, corpus_services


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


async def test_a_conversation_is_found_by_its_questions_until_it_is_cleared_or_deleted() -> None:
    services = await corpus_services()
    cleared, deleted = [await ask(services, "How much does the Heron weigh?") for _ in range(2)]
    await ask(services, "Who services it?", deleted.thread_id)
    texts = ("How much does the Heron weigh?", "Who services it?")
    newest = await thread_with(texts, ANNA, services.threads)
    assert newest is not None
    assert (newest.thread_id, newest.number) == (deleted.thread_id, 2)
    assert await thread_with(texts, BEN, services.threads) is None
    assert await thread_with(texts[1:], ANNA, services.threads) is None
    # The turns are still stored, until they are erased.
    await delete_thread(deleted.thread_id, ANNA, services)
    other = await thread_with(texts, ANNA, services.threads)
    assert other is not None
    assert other.thread_id == cleared.thread_id
    await clear_thread(cleared.thread_id, ANNA, services)
    assert await thread_with(texts, ANNA, services.threads) is None
