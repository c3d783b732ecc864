"""Tests for chats with fake services: questions, threads, commands, ratings and several users."""

import pytest

from shared.platform.errors import AuthenticationError, ConfigurationError, DependencyError
from shared.teams.models import BotSender, ButtonCommand
from shared.teams.parsing import reply_key
from shared.teams.turns import handle
from shared.wiring import Services
from tests.fakes.directory import InMemoryDirectory
from tests.fakes.models import ScriptedChatModel
from tests.fakes.services import OWNER_ID_KEY, fake_services
from tests.unit.teams.chat import ANNA, ANSWERED, BEN, GROUP, PERSONAL, QUESTION, chat
from tests.world import Model, plan


async def test_a_question_is_answered_with_its_source() -> None:
    bot = await chat()
    (message,) = await bot.write(QUESTION)
    assert ANSWERED in message.reply.text
    assert [cited.abstract for cited in message.reply.citations] == ["The pump runs at 15 bar."]
    assert message.reply.is_generated
    assert message.reply.can_be_rated
    assert message.reply_to == "activity-1"


async def test_people_see_the_steps_of_the_plan_and_then_the_text_as_it_grows() -> None:
    cited = 'It runs at 15 bar. <cite doc_id="manual" quote="The pump runs at 15 bar."/>'
    bot = await chat(Model(plan(), answer=f"{cited}\n\nSo it says.\n\nNothing else is known."))
    (message,) = await bot.write(QUESTION)
    assert message.lines[:2] == ["Reading your question …", "Step 1 of 2: Known"]
    grown = "".join(message.pieces)
    assert grown.startswith(ANSWERED)
    assert "So it says.\n" in grown
    assert "Nothing else" not in grown  # this line is complete only at the end of the answer


async def test_an_activity_that_is_delivered_again_is_answered_once() -> None:
    bot = await chat()
    message = bot.message(QUESTION)
    assert len(await bot.send(message)) == 1
    assert await bot.send(message) == []
    # The message stays marked as answered even if the orchestration is forgotten.
    bot.orchestrations.started.pop(f"{reply_key(message, OWNER_ID_KEY)}-reply")
    assert await bot.send(message) == []
    assert len(bot.outbox.said) == 1


async def test_nothing_is_asked_or_said_before_the_channel_has_its_answer() -> None:
    bot = await chat()
    assert await handle(bot.message(QUESTION), bot.services, bot.orchestrations) is None
    assert bot.outbox.typed == 0
    assert isinstance(bot.services.directory, InMemoryDirectory)
    assert bot.services.directory.asked == []
    assert [name for name, _ in bot.orchestrations.started.values()] == ["reply_in_channel"]


async def test_what_was_said_stays_in_the_thread_until_a_new_one_begins() -> None:
    bot = await chat()
    await bot.write(QUESTION)
    first = await bot.turn()
    await bot.write("And what did it run at before?")
    assert (await bot.turn()).thread_id == first.thread_id
    thread = await bot.services.threads.get("anna", first.thread_id or "")
    assert thread is not None
    assert thread.turn_count == 2
    (message,) = await bot.write("/new")
    assert "new conversation" in message.reply.text
    await bot.write(QUESTION)
    assert (await bot.turn()).thread_id not in (None, first.thread_id)


async def test_a_thread_that_was_deleted_elsewhere_gives_way_to_a_new_one() -> None:
    from shared.access.models import UserContext
    from shared.conversations.threads import delete_thread

    bot = await chat()
    await bot.write(QUESTION)
    deleted_id = (await bot.turn()).thread_id or ""
    await delete_thread(deleted_id, UserContext(user_id="anna"), bot.services)
    (message,) = await bot.write(QUESTION)
    assert ANSWERED in message.reply.text
    assert (await bot.turn()).thread_id != deleted_id


@pytest.mark.parametrize("text", ["/help", "help", "Hilfe!", " /HILFE "])
async def test_help_is_a_command_in_words_too(text: str) -> None:
    bot = await chat()
    (message,) = await bot.write(text)
    assert "/sources" in message.reply.text
    assert not message.reply.can_be_rated


async def test_a_command_may_be_a_button() -> None:
    bot = await chat()
    (message,) = await bot.press(ButtonCommand(command="/sources"))
    assert "no answer with sources" in message.reply.text


async def test_fixed_texts_are_in_the_persons_language() -> None:
    bot = await chat()
    german = PERSONAL.model_copy(update={"locale": "de-DE"})
    (message,) = await bot.write("/quellen", conversation=german)
    assert "noch keine Antwort" in message.reply.text


@pytest.mark.parametrize("text", ["/delete", "/forget everything", "/new and what is the pressure?"])
async def test_what_is_no_command_as_it_stands_does_nothing_and_says_so(text: str) -> None:
    bot = await chat()
    await bot.write(QUESTION)
    thread_id = (await bot.turn()).thread_id
    bot.orchestrations.started.clear()
    (message,) = await bot.write(text)
    assert (await bot.turn()).thread_id == thread_id
    assert "/help" in message.reply.text
    assert [name for name, _ in bot.orchestrations.started.values()] == ["reply_in_channel"]


@pytest.mark.parametrize("text", ["\N{THUMBS UP SIGN}", "???"])
async def test_what_has_no_words_costs_no_run(text: str) -> None:
    bot = await chat()
    (message,) = await bot.write(text)
    assert "in words" in message.reply.text
    assert [name for name, _ in bot.orchestrations.started.values()] == ["reply_in_channel"]


async def test_the_sources_of_the_last_answer_can_be_seen() -> None:
    bot = await chat()
    await bot.write(QUESTION)
    (message,) = await bot.write("/sources")
    assert "manual" in message.reply.text
    assert "[1]" in message.reply.text
    assert [cited.abstract for cited in message.reply.citations] == ["The pump runs at 15 bar."]


async def test_forgetting_deletes_the_thread_and_what_is_remembered() -> None:
    bot = await chat()
    await bot.write(QUESTION)
    thread_id = (await bot.turn()).thread_id or ""
    (message,) = await bot.write("/forget")
    assert "deleted" in message.reply.text
    thread = await bot.services.threads.get("anna", thread_id)
    assert thread is not None
    assert thread.is_deleted
    assert await bot.services.threads.forgotten_until("anna") is not None
    assert (bot.turns.turns, bot.turns.messages) == ({}, {})
    (message,) = await bot.write("/sources")
    assert "no answer with sources" in message.reply.text


async def test_a_thumb_is_stored_with_the_run() -> None:
    bot = await chat()
    message = bot.message(QUESTION)
    await bot.send(message)
    assert await bot.rate("message-1", "down") == {}
    record = await bot.services.runs.get(reply_key(message, OWNER_ID_KEY))
    assert record is not None
    assert record.feedback is not None
    assert record.feedback.thumb == "down"


async def test_a_thumb_without_a_message_is_on_the_last_answer() -> None:
    bot = await chat()
    message = bot.message(QUESTION)
    await bot.send(message)
    await bot.rate("", "up")
    record = await bot.services.runs.get(reply_key(message, OWNER_ID_KEY))
    assert record is not None
    assert record.feedback is not None


@pytest.mark.parametrize(("message_id", "sender"), [("message-1", BEN), ("message-9", ANNA)])
async def test_a_thumb_of_somebody_else_or_on_something_else_changes_nothing(
    message_id: str, sender: BotSender
) -> None:
    bot = await chat()
    message = bot.message(QUESTION)
    await bot.send(message)
    assert await bot.rate(message_id, "down", sender) == {}
    record = await bot.services.runs.get(reply_key(message, OWNER_ID_KEY))
    assert record is not None
    assert record.feedback is None


async def test_an_error_is_told_without_its_words() -> None:
    bot = await chat(Model(plan(), answer=AuthenticationError("model-host.internal says 401")))
    (message,) = await bot.write(QUESTION)
    assert "internal" not in message.reply.text
    assert message.reply.text


async def test_a_service_that_is_down_is_told_of_after_two_more_tries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(_: Services) -> None:
        raise DependencyError("search.internal refuses us")

    bot = await chat()
    monkeypatch.setattr(Services, "ensure_prepared", fail)
    (message,) = await bot.write(QUESTION)
    assert [step.attempt for step in bot.steps] == [1, 2, 0, 0]
    assert "cannot be reached" in message.reply.text
    assert "internal" not in message.reply.text
    monkeypatch.undo()
    (message,) = await bot.write(QUESTION)
    assert ANSWERED in message.reply.text


async def test_a_defect_is_told_with_a_reference_alone() -> None:
    from shared.teams.models import apology
    from tests.unit.teams.chat import first_step

    bot = await chat()
    message = bot.message(QUESTION)
    await handle(message, bot.services, bot.orchestrations)
    key = reply_key(message, OWNER_ID_KEY)
    step = await bot.reply(apology(first_step(message), "InternalError"))
    assert step.kind == "end"
    assert key[:8] in bot.last.reply.text
    assert apology(apology(first_step(message), "InternalError"), "InternalError").kind == "end"


async def test_who_asks_too_much_at_once_is_told_to_wait() -> None:
    bot = await chat(rate_limit_per_minute=1)
    await bot.write(QUESTION)
    await bot.write(QUESTION)
    (message,) = await bot.write(QUESTION)
    assert "wait a moment" in message.reply.text


async def test_a_question_that_is_too_long_is_told_so() -> None:
    bot = await chat(max_question_chars=50)
    (message,) = await bot.write("why " * 50)
    assert "too long" in message.reply.text


async def test_without_a_bot_nothing_is_taken_down() -> None:
    bot = await chat()
    services = fake_services(chat_model=ScriptedChatModel())
    with pytest.raises(ConfigurationError):
        await handle(bot.message(QUESTION), services, bot.orchestrations)


async def test_small_talk_is_answered_and_leaves_the_sources_of_the_answer_before() -> None:
    bot = await chat()
    await bot.write(QUESTION)
    talk = plan(query_type="CONVERSATION", reply="You're welcome.", search_queries=(), todo=())
    bot.services.chat_model = Model(talk).chat_model()
    (message,) = await bot.write("Thank you!")
    assert message.reply.text == "You're welcome."
    (sources,) = await bot.write("/sources")
    assert len(sources.reply.citations) == 1
    (message,) = await bot.write("Hello", conversation=GROUP)
    assert message.reply.text == "You're welcome.", "no note on which documents were read: none were"
