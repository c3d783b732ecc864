"""What a message asks: a command, the answer to a question of ours, files, or a question of its own."""

from contextlib import suppress

from shared.agents.channel.asking import answer, ask, choose
from shared.agents.channel.commands import obey, show_help
from shared.agents.channel.visit import Visit
from shared.core import channel_texts as texts
from shared.core.channel_texts import Texts
from shared.core.channel_words import command_of, has_words, is_unknown_command
from shared.errors import GroundworkError
from shared.models.bot import BotJoined, BotMessage, ButtonCommand, ChosenOption
from shared.models.channel import ReplyStep


async def take(visit: Visit) -> ReplyStep:
    """Do what the message asks, or say what is to be done next: its files come before its words."""
    with suppress(GroundworkError):
        await visit.world.outbox.typing(visit.conversation)
    button = visit.message.button
    if isinstance(button, ChosenOption):
        return await choose(visit, button.run_id, button.number)
    if visit.message.attachments:
        return visit.step.model_copy(update={"kind": "store_files", "attempt": 0})
    return await heed(visit)


async def heed(visit: Visit, doc_ids: tuple[str, ...] = ()) -> ReplyStep:
    """Do what the words of a message say. `doc_ids`: documents that came with them."""
    button = visit.message.button
    text = button.command if isinstance(button, ButtonCommand) else visit.message.text
    if not text.strip():
        return visit.end
    if (command := command_of(text)) is not None:
        return await obey(command, visit)
    if (refusal := _refusal(text)) is not None:
        return await visit.say(refusal)
    turn = None if doc_ids else await visit.turn()
    return await answer(visit, turn) if turn and turn.waiting_run_id else await ask(visit, doc_ids)


def _refusal(text: str) -> Texts | None:
    """What is said to words that nobody can mean as a question."""
    if not has_words(text):
        return texts.NO_WORDS
    return texts.NO_SUCH_COMMAND if is_unknown_command(text) else None


async def greet(visit: Visit) -> ReplyStep:
    """Somebody has added us."""
    return await show_help(visit)


def as_message(said: BotMessage | BotJoined) -> BotMessage:
    """What was said, as a message; a greeting has no words."""
    if isinstance(said, BotMessage):
        return said
    return BotMessage(activity_id=said.activity_id, conversation=said.conversation, sender=said.sender)
