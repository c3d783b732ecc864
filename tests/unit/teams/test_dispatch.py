"""Tests for handling a chat message: files, people and clarifications."""

import pytest

from shared.access.models import DirectoryPerson, UserContext
from shared.answering.clarification_steps import answer_clarification
from shared.platform.errors import DependencyError
from shared.runs.models import ClarificationAnswer
from shared.runs.run_store import owned_run
from shared.teams.models import BotReply, BotSender, ButtonValue, ChosenOption, ReplyStep
from shared.teams.parsing import conversation_key
from shared.teams.steps import perform_reply
from tests.fakes.directory import InMemoryDirectory
from tests.fakes.models import scripted
from tests.unit.answering.test_clarifying import QUESTION as UNCLEAR
from tests.unit.answering.test_clarifying import REVENUE
from tests.unit.teams.chat import ANNA, ANSWERED, BEN, GROUP, PERSONAL, QUESTION, Chat, chat

GIVEN = UserContext(user_id="anna")


async def ask_unclear_question() -> tuple[Chat, BotReply, str]:
    """Return a chat with a waiting run, the clarification that it sent, and the run's id."""
    bot = await chat(REVENUE)
    (message,) = await bot.write(UNCLEAR)
    run_id = (await bot.turn()).waiting_run_id
    assert run_id is not None
    return bot, message.reply, run_id


def button(reply: BotReply, number: int) -> ButtonValue:
    return reply.buttons[number - 1].value


async def chosen(bot: Chat, run_id: str) -> tuple[int, ...]:
    from shared.runs.journal import clarification_of

    record = await owned_run(run_id, GIVEN, bot.services.runs)
    _, reply = await clarification_of(run_id, record.ask_step, bot.services.run_log)
    return reply.choice.numbers if reply else ()


async def test_the_options_are_buttons() -> None:
    bot, reply, run_id = await ask_unclear_question()
    assert [one.value for one in reply.buttons] == [
        ChosenOption(run_id=run_id, number=1),
        ChosenOption(run_id=run_id, number=2),
    ]
    assert "report-2023.pdf" in reply.buttons[0].title
    assert not reply.can_be_rated
    assert bot.steps[-1].kind == "expire"
    assert bot.steps[-1].delay_s > 2 * 86400


@pytest.mark.parametrize("text", ["2", "the 2024 one", "the second", "report-2024"])
async def test_an_answer_may_be_a_number_or_words(text: str) -> None:
    bot, _, run_id = await ask_unclear_question()
    (message,) = await bot.write(text)
    assert "It was 53" in message.reply.text
    assert await chosen(bot, run_id) == (2,)
    assert (await bot.turn()).waiting_run_id is None
    assert (await bot.turn()).last_run_id == run_id


async def test_an_answer_may_be_a_button() -> None:
    bot, reply, run_id = await ask_unclear_question()
    (message,) = await bot.press(button(reply, 2))
    assert "It was 53" in message.reply.text
    assert await chosen(bot, run_id) == (2,)


async def test_a_button_that_is_pressed_twice_is_answered_once() -> None:
    bot, reply, _ = await ask_unclear_question()
    assert len(await bot.press(button(reply, 2))) == 1
    assert await bot.press(button(reply, 2)) == []


async def test_another_button_comes_too_late() -> None:
    bot, reply, run_id = await ask_unclear_question()
    await bot.press(button(reply, 2))
    (message,) = await bot.press(button(reply, 1))
    assert "closed" in message.reply.text
    assert await chosen(bot, run_id) == (2,)


async def test_a_number_that_no_option_has_leaves_the_question_open() -> None:
    bot, _, run_id = await ask_unclear_question()
    (message,) = await bot.write("7")
    assert "from 1 to 2" in message.reply.text
    assert (await bot.turn()).waiting_run_id == run_id
    (message,) = await bot.write("1")
    assert await chosen(bot, run_id) == (1,)


async def test_few_words_that_choose_nothing_are_added_to_the_question() -> None:
    bot, _, run_id = await ask_unclear_question()
    await bot.write("of the Hamburg plant")
    record = await owned_run(run_id, GIVEN, bot.services.runs)
    assert record.status == "completed"
    assert "Hamburg" in scripted(bot.services.chat_model).prompts[-1].user


async def test_another_question_leaves_the_one_that_waits() -> None:
    bot, reply, run_id = await ask_unclear_question()
    await bot.write(QUESTION)
    assert (await owned_run(run_id, GIVEN, bot.services.runs)).status == "cancelled"
    assert bot.orchestrations.stopped == [run_id]
    assert (await bot.turn()).waiting_run_id != run_id
    (message,) = await bot.press(button(reply, 2))
    assert "closed" in message.reply.text


@pytest.mark.parametrize("command", ["/new", "/forget"])
async def test_a_command_that_ends_the_conversation_ends_the_question(command: str) -> None:
    bot, reply, run_id = await ask_unclear_question()
    await bot.write(command)
    assert run_id in bot.orchestrations.stopped
    (message,) = await bot.press(button(reply, 1))
    assert "closed" in message.reply.text


async def test_the_sources_can_be_looked_at_while_a_question_waits() -> None:
    bot, _, run_id = await ask_unclear_question()
    await bot.write("/sources")
    assert (await bot.turn()).waiting_run_id == run_id


async def test_somebody_elses_button_opens_nothing() -> None:
    bot, reply, run_id = await ask_unclear_question()
    elsewhere = PERSONAL.model_copy(update={"conversation_id": "b"})
    (message,) = await bot.write("", BEN, button=button(reply, 2), conversation=elsewhere)
    assert "closed" in message.reply.text
    assert await chosen(bot, run_id) == ()


async def answered_in_the_web_page(bot: Chat, run_id: str) -> None:
    """Answer the clarification outside the chat and mark the run as running."""
    record = await owned_run(run_id, GIVEN, bot.services.runs)
    await answer_clarification(record, ClarificationAnswer(choice=1), GIVEN, bot.services)
    await bot.services.runs.replace(record.model_copy(update={"status": "running"}))


@pytest.mark.parametrize("text", [QUESTION, "/new"])
async def test_a_run_that_waits_no_more_is_not_ended_by_what_is_said_next(text: str) -> None:
    bot, _, run_id = await ask_unclear_question()
    await answered_in_the_web_page(bot, run_id)
    await bot.write(text)
    assert (await owned_run(run_id, GIVEN, bot.services.runs)).status == "running"
    assert bot.orchestrations.stopped == []


async def test_a_number_that_comes_too_late_is_no_question() -> None:
    bot, _, run_id = await ask_unclear_question()
    await answered_in_the_web_page(bot, run_id)
    started = len(bot.orchestrations.started)
    (message,) = await bot.write("2")
    assert "closed" in message.reply.text
    assert len(bot.orchestrations.started) == started + 1  # only the orchestration of the reply


async def test_a_thumb_that_is_written_leaves_the_question_open() -> None:
    bot, _, run_id = await ask_unclear_question()
    (message,) = await bot.write("\N{THUMBS UP SIGN}")
    assert "in words" in message.reply.text
    assert (await bot.turn()).waiting_run_id == run_id


async def expire_clarification(bot: Chat) -> list[str]:
    """Let the time for an answer pass and return the texts that the bot sends."""
    before = len(bot.outbox.said)
    await bot.reply(bot.steps[-1].model_copy(update={"delay_s": 0.0}))
    return bot.outbox.texts[before:]


async def test_a_question_that_nobody_answers_is_answered_from_all_in_the_end() -> None:
    bot, _, run_id = await ask_unclear_question()
    await bot.nobody_answers(run_id)
    (text,) = await expire_clarification(bot)
    assert "It was 53" in text
    assert bot.last.reply_to is None


async def test_who_has_left_meanwhile_is_told_nothing_more() -> None:
    bot, _, run_id = await ask_unclear_question()
    await bot.nobody_answers(run_id)
    directory = bot.services.directory
    assert isinstance(directory, InMemoryDirectory)
    directory.groups.clear()
    assert await expire_clarification(bot) == []


async def test_what_was_answered_here_is_not_told_again_when_the_time_is_over() -> None:
    bot, reply, _ = await ask_unclear_question()
    expiry = bot.steps[-1]
    await bot.press(button(reply, 2))
    step = await perform_reply(expiry, bot.deps)
    assert step.kind == "end"


async def test_what_was_answered_in_the_web_page_is_not_told_here() -> None:
    bot, _, run_id = await ask_unclear_question()
    record = await owned_run(run_id, GIVEN, bot.services.runs)
    await answer_clarification(record, ClarificationAnswer(choice=1), GIVEN, bot.services)
    assert await expire_clarification(bot) == []


async def test_a_question_that_was_left_is_not_told_of() -> None:
    bot, _, _ = await ask_unclear_question()
    expiry = bot.steps[-1]
    await bot.write("/new")
    assert (await perform_reply(expiry, bot.deps)).kind == "end"


async def test_whoever_answers_again_after_a_crash_goes_on_with_the_same_answer() -> None:
    bot, _, run_id = await ask_unclear_question()
    message = bot.message("2")
    await bot.send(message)
    message_count = len(bot.outbox.said)
    first = next(step for step in reversed(bot.steps) if step.kind == "follow")
    again = await perform_reply(first, bot.deps)
    assert again.kind == "end"  # the message was sent completely
    assert len(bot.outbox.said) == message_count
    assert isinstance(first, ReplyStep)
    assert await chosen(bot, run_id) == (2,)


async def test_each_person_is_answered_from_what_they_may_read() -> None:
    bot = await chat()
    (anna,) = await bot.write(QUESTION)
    (ben,) = await bot.write(QUESTION, BEN, conversation=PERSONAL.model_copy(update={"conversation_id": "b"}))
    assert [cited.name.partition(",")[0] for cited in anna.reply.citations] == ["manual.pdf"]
    assert "manual" not in str(ben.reply)


async def test_where_several_read_along_only_what_everybody_may_read_is_used() -> None:
    bot = await chat()
    (message,) = await bot.write(QUESTION, conversation=GROUP)
    assert "manual" not in str(message.reply)
    (turn,) = bot.turns.turns.values()
    assert turn.owner_id == f"conversation:{conversation_key(GROUP)}"
    assert isinstance(bot.services.directory, InMemoryDirectory)
    assert bot.services.directory.asked == []
    (help_text,) = await bot.write("/help", conversation=GROUP)
    assert "everyone can read" in help_text.reply.text


async def test_where_several_read_along_an_answer_that_is_not_there_says_what_was_read() -> None:
    bot = await chat()
    (message,) = await bot.write(QUESTION, conversation=GROUP)
    assert "documents that everyone can read" in message.reply.text
    (message,) = await bot.write(QUESTION)
    assert ANSWERED in message.reply.text
    assert "everybody" not in message.reply.text


async def test_a_group_shares_one_thread() -> None:
    bot = await chat()
    await bot.write(QUESTION, ANNA, conversation=GROUP)
    await bot.write(QUESTION, BEN, conversation=GROUP)
    (turn,) = bot.turns.turns.values()
    thread = await bot.services.threads.get(turn.owner_id, turn.thread_id or "")
    assert thread is not None
    assert thread.turn_count == 2


async def test_forgetting_in_a_group_deletes_its_own_thread_and_nothing_of_a_persons() -> None:
    bot = await chat()
    await bot.write(QUESTION)
    await bot.write(QUESTION, conversation=GROUP)
    await bot.write("/forget", conversation=GROUP)
    (turn,) = bot.turns.turns.values()
    assert turn.owner_id == "anna"
    assert await bot.services.threads.forgotten_until("anna") is None


async def test_somebody_whom_no_channel_vouches_for_reads_what_everybody_may_read() -> None:
    bot = await chat()
    stranger = BotSender(channel_user_id="web-1")
    web = PERSONAL.model_copy(update={"channel": "webchat", "tenant_id": None})
    (message,) = await bot.write(QUESTION, stranger, conversation=web)
    assert "manual" not in str(message.reply)
    (turn,) = bot.turns.turns.values()
    assert turn.owner_id.startswith("channel:webchat:")


async def test_who_joins_is_greeted_only_when_it_is_us() -> None:
    bot = await chat()
    (message,) = await bot.join()
    assert "/sources" in message.reply.text
    assert await bot.join(is_us=False) == []


async def test_whom_the_directory_does_not_know_is_refused_politely() -> None:
    bot = await chat()
    stranger = BotSender(channel_user_id="29:eve", object_id="eve", tenant_id="tenant")
    (message,) = await bot.write(QUESTION, stranger)
    assert "can't answer you" in message.reply.text
    assert all(name == "reply_in_channel" for name, _ in bot.orchestrations.started.values())


async def directory_is_down(bot: Chat) -> None:
    assert isinstance(bot.services.directory, InMemoryDirectory)
    bot.services.directory.fails_with = DependencyError("Graph is down: secret-host")


async def test_without_the_directory_a_person_stands_alone_and_is_told() -> None:
    bot = await chat()
    await directory_is_down(bot)
    (message,) = await bot.write(QUESTION)
    assert "manual" not in str(message.reply.citations)  # Anna may read it only through her group
    assert "groups cannot be looked up" in message.reply.text
    (message,) = await bot.write("/help")
    assert "groups cannot be looked up" in message.reply.text


async def test_a_deployment_that_refuses_guests_answers_nobody_without_the_directory() -> None:
    bot = await chat(guests="refused")
    await directory_is_down(bot)
    (message,) = await bot.write(QUESTION)
    assert "cannot be reached" in message.reply.text
    assert "secret-host" not in message.reply.text


async def test_a_guest_is_refused_where_guests_are() -> None:
    bot = await chat(guests="refused")
    assert isinstance(bot.services.directory, InMemoryDirectory)
    bot.services.directory.people["anna"] = DirectoryPerson(is_guest=True)
    (message,) = await bot.write(QUESTION)
    assert "can't answer you" in message.reply.text
