"""Questions back in a chat: by button, number and words; left, answered twice, elsewhere, or by nobody."""

import pytest

from shared.access.models import UserContext
from shared.answering.clarification_steps import answer_clarification
from shared.runs.models import ClarificationAnswer
from shared.runs.run_store import owned_run
from shared.teams.models import BotReply, ButtonValue, ChosenOption, ReplyStep
from shared.teams.steps import perform_reply
from tests.fakes.directory import InMemoryDirectory
from tests.unit.answering.test_clarifying import QUESTION as UNCLEAR
from tests.unit.answering.test_clarifying import REVENUE
from tests.unit.teams.chat import BEN, PERSONAL, QUESTION, Chat, chat

GIVEN = UserContext(user_id="anna")


async def asked() -> tuple[Chat, BotReply, str]:
    """A chat in which a run waits; what it asked, and its id."""
    bot = await chat(REVENUE)
    (said,) = await bot.write(UNCLEAR)
    run_id = (await bot.turn()).waiting_run_id
    assert run_id is not None
    return bot, said.reply, run_id


def button(reply: BotReply, number: int) -> ButtonValue:
    return reply.buttons[number - 1].value


async def chosen(bot: Chat, run_id: str) -> tuple[int, ...]:
    from shared.runs.working_memory import WorkingMemory

    record = await owned_run(run_id, GIVEN, bot.services.runs)
    choice = await WorkingMemory(bot.services.blobs, run_id).find_choice(record.ask_step)
    return choice.numbers if choice else ()


async def test_the_options_are_buttons() -> None:
    bot, reply, run_id = await asked()
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
    bot, _, run_id = await asked()
    (said,) = await bot.write(text)
    assert "It was 53" in said.reply.text
    assert await chosen(bot, run_id) == (2,)
    assert (await bot.turn()).waiting_run_id is None
    assert (await bot.turn()).last_run_id == run_id


async def test_an_answer_may_be_a_button() -> None:
    bot, reply, run_id = await asked()
    (said,) = await bot.press(button(reply, 2))
    assert "It was 53" in said.reply.text
    assert await chosen(bot, run_id) == (2,)


async def test_a_button_that_is_pressed_twice_is_answered_once() -> None:
    bot, reply, _ = await asked()
    assert len(await bot.press(button(reply, 2))) == 1
    assert await bot.press(button(reply, 2)) == []


async def test_another_button_comes_too_late() -> None:
    bot, reply, run_id = await asked()
    await bot.press(button(reply, 2))
    (said,) = await bot.press(button(reply, 1))
    assert "closed" in said.reply.text
    assert await chosen(bot, run_id) == (2,)


async def test_a_number_that_no_option_has_leaves_the_question_open() -> None:
    bot, _, run_id = await asked()
    (said,) = await bot.write("7")
    assert "from 1 to 2" in said.reply.text
    assert (await bot.turn()).waiting_run_id == run_id
    (said,) = await bot.write("1")
    assert await chosen(bot, run_id) == (1,)


async def test_few_words_that_choose_nothing_are_added_to_the_question() -> None:
    bot, _, run_id = await asked()
    await bot.write("of the Hamburg plant")
    record = await owned_run(run_id, GIVEN, bot.services.runs)
    assert record.status == "completed"
    assert "Hamburg" in str(bot.services.chat_model.prompts[-1].user)  # type: ignore[attr-defined]


async def test_another_question_leaves_the_one_that_waits() -> None:
    bot, reply, run_id = await asked()
    await bot.write(QUESTION)
    assert (await owned_run(run_id, GIVEN, bot.services.runs)).status == "cancelled"
    assert bot.orchestrations.stopped == [run_id]
    assert (await bot.turn()).waiting_run_id != run_id
    (said,) = await bot.press(button(reply, 2))
    assert "closed" in said.reply.text


@pytest.mark.parametrize("command", ["/new", "/forget"])
async def test_a_command_that_ends_the_conversation_ends_the_question(command: str) -> None:
    bot, reply, run_id = await asked()
    await bot.write(command)
    assert run_id in bot.orchestrations.stopped
    (said,) = await bot.press(button(reply, 1))
    assert "closed" in said.reply.text


async def test_the_sources_can_be_looked_at_while_a_question_waits() -> None:
    bot, _, run_id = await asked()
    await bot.write("/sources")
    assert (await bot.turn()).waiting_run_id == run_id


async def test_somebody_elses_button_opens_nothing() -> None:
    bot, reply, run_id = await asked()
    elsewhere = PERSONAL.model_copy(update={"conversation_id": "b"})
    (said,) = await bot.write("", BEN, button=button(reply, 2), conversation=elsewhere)
    assert "closed" in said.reply.text
    assert await chosen(bot, run_id) == ()


async def answered_in_the_web_page(bot: Chat, run_id: str) -> None:
    """The run goes on, and is at work."""
    record = await owned_run(run_id, GIVEN, bot.services.runs)
    await answer_clarification(record, ClarificationAnswer(choice=1), GIVEN, bot.services.blobs)
    await bot.services.runs.replace(record.model_copy(update={"status": "running"}))


@pytest.mark.parametrize("text", [QUESTION, "/new"])
async def test_a_run_that_waits_no_more_is_not_ended_by_what_is_said_next(text: str) -> None:
    bot, _, run_id = await asked()
    await answered_in_the_web_page(bot, run_id)
    await bot.write(text)
    assert (await owned_run(run_id, GIVEN, bot.services.runs)).status == "running"
    assert bot.orchestrations.stopped == []


async def test_a_number_that_comes_too_late_is_no_question() -> None:
    bot, _, run_id = await asked()
    await answered_in_the_web_page(bot, run_id)
    started = len(bot.orchestrations.started)
    (said,) = await bot.write("2")
    assert "closed" in said.reply.text
    assert len(bot.orchestrations.started) == started + 1  # the reply's own


async def test_a_thumb_that_is_written_leaves_the_question_open() -> None:
    bot, _, run_id = await asked()
    (said,) = await bot.write("\N{THUMBS UP SIGN}")
    assert "in words" in said.reply.text
    assert (await bot.turn()).waiting_run_id == run_id


async def waited(bot: Chat) -> list[str]:
    """What is said when the time for an answer is over."""
    before = len(bot.outbox.said)
    await bot.reply(bot.steps[-1].model_copy(update={"delay_s": 0.0}))
    return bot.outbox.texts[before:]


async def test_a_question_that_nobody_answers_is_answered_from_all_in_the_end() -> None:
    bot, _, run_id = await asked()
    await bot.nobody_answers(run_id)
    (text,) = await waited(bot)
    assert "It was 53" in text
    assert bot.last.reply_to is None


async def test_who_has_left_meanwhile_is_told_nothing_more() -> None:
    bot, _, run_id = await asked()
    await bot.nobody_answers(run_id)
    directory = bot.services.directory
    assert isinstance(directory, InMemoryDirectory)
    directory.groups.clear()
    assert await waited(bot) == []


async def test_what_was_answered_here_is_not_told_again_when_the_time_is_over() -> None:
    bot, reply, _ = await asked()
    expiry = bot.steps[-1]
    await bot.press(button(reply, 2))
    step = await perform_reply(expiry, bot.deps)
    assert step.kind == "end"


async def test_what_was_answered_in_the_web_page_is_not_told_here() -> None:
    bot, _, run_id = await asked()
    record = await owned_run(run_id, GIVEN, bot.services.runs)
    await answer_clarification(record, ClarificationAnswer(choice=1), GIVEN, bot.services.blobs)
    assert await waited(bot) == []


async def test_a_question_that_was_left_is_not_told_of() -> None:
    bot, _, _ = await asked()
    expiry = bot.steps[-1]
    await bot.write("/new")
    assert (await perform_reply(expiry, bot.deps)).kind == "end"


async def test_whoever_answers_again_after_a_crash_goes_on_with_the_same_answer() -> None:
    bot, _, run_id = await asked()
    message = bot.message("2")
    await bot.send(message)
    told = len(bot.outbox.said)
    first = next(step for step in reversed(bot.steps) if step.kind == "follow")
    again = await perform_reply(first, bot.deps)
    assert again.kind == "end"  # it went out whole
    assert len(bot.outbox.said) == told
    assert isinstance(first, ReplyStep)
    assert await chosen(bot, run_id) == (2,)
