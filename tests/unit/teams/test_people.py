"""Who is answered in a chat, and from what: people, groups, strangers, those who are refused."""

from shared.access.models import DirectoryPerson
from shared.platform.errors import DependencyError
from shared.teams.models import BotSender
from shared.teams.parsing import conversation_key
from tests.fakes.directory import InMemoryDirectory
from tests.unit.teams.chat import ANNA, ANSWERED, BEN, GROUP, PERSONAL, QUESTION, Chat, chat


async def test_each_person_is_answered_from_what_they_may_read() -> None:
    bot = await chat()
    (anna,) = await bot.write(QUESTION)
    (ben,) = await bot.write(QUESTION, BEN, conversation=PERSONAL.model_copy(update={"conversation_id": "b"}))
    assert [cited.name.partition(",")[0] for cited in anna.reply.citations] == ["manual.pdf"]
    assert "manual" not in str(ben.reply)


async def test_where_several_read_along_only_what_everybody_may_read_is_used() -> None:
    bot = await chat()
    (said,) = await bot.write(QUESTION, conversation=GROUP)
    assert "manual" not in str(said.reply)
    (turn,) = bot.turns.turns.values()
    assert turn.owner_id == f"conversation:{conversation_key(GROUP)}"
    assert isinstance(bot.services.directory, InMemoryDirectory)
    assert bot.services.directory.asked == []
    (help_text,) = await bot.write("/help", conversation=GROUP)
    assert "everybody may read" in help_text.reply.text


async def test_where_several_read_along_an_answer_that_is_not_there_says_what_was_read() -> None:
    bot = await chat()
    (said,) = await bot.write(QUESTION, conversation=GROUP)
    assert "documents that everybody may read" in said.reply.text
    (said,) = await bot.write(QUESTION)
    assert ANSWERED in said.reply.text
    assert "everybody" not in said.reply.text


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
    (said,) = await bot.write(QUESTION, stranger, conversation=web)
    assert "manual" not in str(said.reply)
    (turn,) = bot.turns.turns.values()
    assert turn.owner_id.startswith("channel:webchat:")


async def test_who_joins_is_greeted_only_when_it_is_us() -> None:
    bot = await chat()
    (said,) = await bot.join()
    assert "/sources" in said.reply.text
    assert await bot.join(is_us=False) == []


async def test_whom_the_directory_does_not_know_is_refused_politely() -> None:
    bot = await chat()
    stranger = BotSender(channel_user_id="29:eve", object_id="eve", tenant_id="tenant")
    (said,) = await bot.write(QUESTION, stranger)
    assert "may not answer you" in said.reply.text
    assert all(name == "reply_in_channel" for name, _ in bot.orchestrations.started.values())


async def directory_is_down(bot: Chat) -> None:
    assert isinstance(bot.services.directory, InMemoryDirectory)
    bot.services.directory.fails_with = DependencyError("Graph is down: secret-host")


async def test_without_the_directory_a_person_stands_alone_and_is_told() -> None:
    bot = await chat()
    await directory_is_down(bot)
    (said,) = await bot.write(QUESTION)
    assert "manual" not in str(said.reply.citations)  # Anna reads it by her group alone
    assert "groups cannot be looked up" in said.reply.text
    (said,) = await bot.write("/help")
    assert "groups cannot be looked up" in said.reply.text


async def test_a_deployment_that_refuses_guests_answers_nobody_without_the_directory() -> None:
    bot = await chat(guests="refused")
    await directory_is_down(bot)
    (said,) = await bot.write(QUESTION)
    assert "cannot be reached" in said.reply.text
    assert "secret-host" not in said.reply.text


async def test_a_guest_is_refused_where_guests_are() -> None:
    bot = await chat(guests="refused")
    assert isinstance(bot.services.directory, InMemoryDirectory)
    bot.services.directory.people["anna"] = DirectoryPerson(is_guest=True)
    (said,) = await bot.write(QUESTION)
    assert "may not answer you" in said.reply.text
