"""Tests for the turns and answers that the owner of a thread sees."""

import uuid

from shared.conversations.messages import read_messages
from shared.conversations.threads import new_thread
from tests.unit.conversations.asking import ask
from tests.world import ANNA, corpus_services


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
