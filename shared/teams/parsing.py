"""Reads messages: commands, answers to a clarification, and the keys of what is stored. Pure."""

import re
from collections.abc import Sequence

from shared.access.owner_ids import owned_id
from shared.answering.clarification import read_answer
from shared.platform.hashing import digest
from shared.runs.models import Choice, ClarificationAnswer, ClarificationOption
from shared.teams.models import BotActivity, BotConversation, BotIgnored, BotSender, Command

_COMMANDS: dict[str, Command] = {
    "new": "new",
    "neu": "new",
    "sources": "sources",
    "quellen": "sources",
    "forget": "forget",
    "vergessen": "forget",
    "help": "help",
    "hilfe": "help",
    "start": "help",  # what some channels send when a conversation begins
}

_MAX_WORDS_OF_ADDITION = 8  # "the one of the Hamburg plant, please"; longer is a question (unmeasured)

_ASKING = frozenset(
    (
        "what who where when why how which whose is are was were do does did can could should compare "
        "list show summarize summarise explain tell find wer wo wann warum wieso wie welche welcher welches "
        "welchem welchen ist sind war waren kann können soll sollen gibt vergleiche liste zeige fasse "
        "erkläre nenne suche hat haben"
    ).split()
)

_WORD = re.compile(r"[^\W_]+")
_LONE_WORD = re.compile(r"/+[^\s/]{1,32}")
_NUMBER = re.compile(r"\W*\d{1,2}\W*")
MAX_OPTION_CHARS = 500


def command_of(text: str) -> Command | None:
    """The command that a message is, with or without its slash; None when it says anything else."""
    return _COMMANDS.get(text.strip().removeprefix("/").strip(".!? ").casefold())


def is_unknown_command(text: str) -> bool:
    """A slash and one unknown word, or a command and more words: not meant as a question.

    A user who writes "/forget everything" would take an answer for a deletion.
    """
    first, _, more = text.strip().partition(" ")
    if more:
        return first.startswith("/") and command_of(first.rstrip(":,;")) is not None
    return _LONE_WORD.fullmatch(first) is not None and command_of(first) is None


def has_words(text: str) -> bool:
    """Whether there is a letter or a digit in it; an emoji asks nothing."""
    return _WORD.search(text) is not None


def is_number_of_option(text: str) -> bool:
    """A number alone: the answer to a clarification, even if that is over."""
    return _NUMBER.fullmatch(text) is not None


def conversation_key(conversation: BotConversation) -> str:
    """The key under which a conversation is stored."""
    where = (conversation.channel, conversation.tenant_id or "", conversation.conversation_id)
    return digest("conversation", *where)[:32]


def reply_key(activity: BotActivity, owner_id_key: str) -> str:
    """Return the same key for the same activity, however often it is delivered.

    It is also the run's id, if the activity is a question; so it begins as the ids of its owner do.

    Raises:
        ValueError: an activity that asks nothing.
    """
    if isinstance(activity, BotIgnored):
        raise ValueError("nothing is said to this")
    unique = digest("activity", conversation_key(activity.conversation), activity.activity_id)
    return owned_id(owner_of(activity.conversation, activity.sender), owner_id_key, unique)


def owner_of(conversation: BotConversation, sender: BotSender) -> str:
    """Owner of the thread and the runs: the person, or a name for a group or a stranger."""
    if conversation.kind != "personal":
        return f"conversation:{conversation_key(conversation)}"
    if sender.object_id is None:
        return f"channel:{conversation.channel}:{digest(conversation.channel, sender.channel_user_id)[:32]}"
    return sender.object_id


def as_answer(text: str, options: Sequence[ClarificationOption]) -> Choice | None:
    """The choice that a message makes in a clarification; None if it is another question.

    Raises:
        CallerError: a number that no option has.
    """
    said = text.strip()[:MAX_OPTION_CHARS]
    choice = read_answer(ClarificationAnswer(text=said), options)
    if choice.numbers:
        return None if said.endswith("?") and not _is_short(said) else choice
    return None if _asks(said) else choice


def _asks(said: str) -> bool:
    words = _WORD.findall(said.casefold())
    return said.endswith("?") or not _is_short(said) or not words or words[0] in _ASKING


def _is_short(said: str) -> bool:
    return len(_WORD.findall(said)) <= _MAX_WORDS_OF_ADDITION
