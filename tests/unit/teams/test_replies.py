"""Replies that take long, break in the middle, or cannot be sent: in the end each is there whole, once."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from shared.access.models import UserContext
from shared.answering.inline import run_to_end
from shared.platform.errors import AccessDeniedError, DependencyError
from shared.runs.log_lines import EventName
from shared.runs.run_store import owned_run
from shared.teams.models import ReplyStep
from shared.teams.parsing import reply_key
from shared.teams.steps import PAUSES_S, perform_reply
from shared.teams.store import purge_taken
from shared.teams.turns import handle
from tests.fakes.blob_store import InMemoryBlobStore
from tests.fakes.run_log import run_event
from tests.unit.teams.chat import ANSWERED, GROUP, QUESTION, Chat, chat, first_step

DOWN = DependencyError("The channel is out of reach.")
BOT_REMOVED = AccessDeniedError("The bot is not part of the conversation roster.")


async def taken(text: str = QUESTION, **fields: Any) -> tuple[Chat, ReplyStep]:
    """A chat in which a run was begun that nobody runs; the step that follows it."""
    bot = await chat()
    bot.runs_are_run = False
    message = bot.message(text, **fields)
    await handle(message, bot.services, bot.orchestrations)
    step = await perform_reply(first_step(reply_key(message)), bot.deps)
    assert (step.kind, step.run_id) == ("follow", reply_key(message))
    return bot, step


async def tell(bot: Chat, step: ReplyStep, events: Sequence[tuple[EventName, dict[str, object]]]) -> None:
    """What a run writes into its log."""
    await bot.services.run_log.append(step.run_id, [run_event(name, **data) for name, data in events])


async def test_a_run_that_takes_longer_than_a_message_may_grow_is_told_anew_when_it_is_done() -> None:
    bot, step = await taken()
    step = await perform_reply(step, bot.deps)
    assert (step.kind, step.part) == ("follow", 1)
    assert "write here when it is done" in bot.last.reply.text
    step = await perform_reply(step, bot.deps)
    assert (step.part, len(bot.outbox.said)) == (2, 1)  # said once
    await run_to_end(step.run_id, bot.services)
    step = await perform_reply(step, bot.deps)
    assert step.kind == "end"
    assert ANSWERED in bot.last.reply.text
    assert (bot.last.pieces, bot.last.reply_to) == ([], None)
    assert bot.outbox.streams == 1


async def test_an_answer_is_followed_while_it_is_written() -> None:
    bot, step = await taken()
    reply, _ = await asyncio.gather(perform_reply(step, bot.deps), run_to_end(step.run_id, bot.services))
    assert reply.kind == "end"
    assert len(bot.outbox.said) == 1


async def test_after_a_crash_in_the_middle_the_whole_is_sent_and_does_not_grow_again() -> None:
    bot, step = await taken()
    await run_to_end(step.run_id, bot.services)
    bot.outbox.fails_with = [DOWN, DOWN]  # the message that grew cannot end, nor be sent anew
    again = await perform_reply(step, bot.deps)
    assert (again.kind, again.attempt, again.delay_s) == ("follow", 1, PAUSES_S[0])
    assert (await perform_reply(again, bot.deps)).kind == "end"
    assert ANSWERED in bot.last.reply.text
    assert bot.last.pieces == []
    assert bot.outbox.streams == 1


async def test_a_message_that_cannot_end_as_it_began_is_sent_whole() -> None:
    bot, step = await taken()
    await run_to_end(step.run_id, bot.services)
    bot.outbox.fails_with = [DOWN]
    assert (await perform_reply(step, bot.deps)).kind == "end"
    assert ANSWERED in bot.last.reply.text
    assert bot.last.reply_to == "activity-1"


async def test_what_went_out_whole_is_not_sent_again() -> None:
    bot, step = await taken()
    await run_to_end(step.run_id, bot.services)
    for _ in range(3):
        assert (await perform_reply(step, bot.deps)).kind == "end"
    assert len(bot.outbox.said) == 1


async def test_a_question_taken_twice_after_a_crash_is_one_run() -> None:
    bot, step = await taken()
    first = first_step(step.reply_key)
    assert await perform_reply(first, bot.deps) == step
    thread = await bot.services.threads.get("anna", (await bot.turn()).thread_id or "")
    assert thread is not None
    assert thread.turn_count == 1


async def test_a_channel_that_stays_out_of_reach_ends_in_an_apology_that_may_fail_too() -> None:
    bot, step = await taken()
    await run_to_end(step.run_id, bot.services)
    bot.outbox.fails_with = [DOWN] * 20
    kinds = []
    while step.kind != "end":
        step = await perform_reply(step, bot.deps)
        kinds.append((step.kind, step.attempt))
    assert kinds[:4] == [("follow", 1), ("follow", 2), ("follow", 3), ("apologise", 0)]
    assert bot.outbox.said == []


async def test_a_bot_that_was_removed_says_nothing_more() -> None:
    bot, step = await taken()
    await run_to_end(step.run_id, bot.services)
    bot.outbox.fails_with = [BOT_REMOVED, BOT_REMOVED]
    step = await perform_reply(step, bot.deps)
    assert (step.kind, step.attempt) == ("apologise", 0)
    assert (await perform_reply(step, bot.deps)).kind == "end"
    assert bot.outbox.said == []


async def test_a_run_that_died_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.teams.replies._CHECK_AFTER_S", 0.1)
    bot, step = await taken()
    bot.orchestrations.dead.add(step.run_id)
    assert (await perform_reply(step, bot.deps)).kind == "end"
    assert "Something went wrong" in bot.last.reply.text
    assert step.run_id[:8] in bot.last.reply.text


async def test_a_run_whose_log_is_gone_is_told_of() -> None:
    bot, step = await taken()
    await bot.services.run_log.delete(step.run_id)
    step = await perform_reply(step, bot.deps)
    assert step.kind == "apologise"
    await perform_reply(step, bot.deps)
    assert "was deleted" in bot.last.reply.text


async def test_text_that_was_withdrawn_is_shown_again_only_from_where_it_goes_on() -> None:
    bot, step = await taken()
    await tell(
        bot,
        step,
        [
            ("TOKEN", {"step": 3, "text": "One two "}),
            ("STATUS", {"step": 3, "state": "restarted", "attempt": "2"}),
            ("TOKEN", {"step": 3, "text": "One "}),
            ("TOKEN", {"step": 3, "text": "two three. "}),
            ("STATUS", {"step": 3, "state": "discarded"}),
            ("TOKEN", {"step": 5, "text": "Something else. "}),
        ],
    )
    await perform_reply(step, bot.deps)
    assert "".join(bot.last.pieces).split() == ["One", "two", "three."]


async def test_in_a_group_people_see_that_we_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.teams.replies._TYPING_EVERY_S", 0.05)
    bot, step = await taken(conversation=GROUP)
    typed = bot.outbox.typed
    await perform_reply(step, bot.deps)
    assert bot.outbox.typed > typed


async def test_the_words_of_a_message_go_when_it_is_answered_and_the_rest_with_its_day() -> None:
    from datetime import UTC, datetime, timedelta

    bot = await chat()
    await bot.write(QUESTION)
    blobs = bot.services.blobs
    assert isinstance(blobs, InMemoryBlobStore)
    (name,) = [found.name async for found in blobs.list_blobs("work", "channel/")]
    assert QUESTION.encode() not in await blobs.read("work", name)
    now = datetime.now(UTC)
    forgotten: list[str] = []

    async def forget(instance_id: str) -> None:
        forgotten.append(instance_id)

    assert (
        await purge_taken(now + timedelta(days=4), bot.services.settings, bot.services.blobs, forget) == 0
    )  # it may wait three days
    assert await purge_taken(now + timedelta(days=7), bot.services.settings, bot.services.blobs, forget) == 1
    assert forgotten == [one for one in bot.orchestrations.started if one.endswith("-reply")]


async def test_a_conversation_that_was_forgotten_meanwhile_keeps_nothing_of_the_answer() -> None:
    bot, step = await taken()
    await run_to_end(step.run_id, bot.services)
    await bot.services.runs.delete(step.run_id)
    await perform_reply(step, bot.deps)
    assert bot.turns.messages == {}
    record = await bot.services.runs.get(step.run_id)
    assert record is None


async def test_the_run_is_the_persons_own() -> None:
    bot, step = await taken()
    record = await owned_run(step.run_id, UserContext(user_id="anna"), bot.services.runs)
    assert record.question == QUESTION
