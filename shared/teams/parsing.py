"""Parsing of messages into commands, file names and answers to clarifications, and derivation of storage
keys. Pure.
"""

import re
from collections.abc import Sequence

from shared.access.owner_ids import owned_id
from shared.answering.clarification import read_reply
from shared.platform.hashing import digest
from shared.runs.models import Choice, ClarificationAnswer, ClarificationOption
from shared.teams.models import BotActivity, BotConversation, BotIgnored, BotSender, Command

_COMMANDS: dict[str, Command] = {
    "new": "new",
    "neu": "new",
    "sources": "sources",
    "quellen": "sources",
    "keep": "keep",
    "behalten": "keep",
    "forget": "forget",
    "vergessen": "forget",
    "help": "help",
    "hilfe": "help",
    "start": "help",  # Some channels send this when a conversation begins.
}

_MAX_WORDS_OF_ADDITION = 8  # "the one of the Hamburg plant, please"; longer texts are new questions

_ASKING = frozenset(
    (
        "what who where when why how which whose is are was were do does did can could should compare "
        "list show summarize summarise explain tell find wer wo wann warum wieso wie welche welcher welches "
        "welchem welchen ist sind war waren kann können soll sollen gibt vergleiche liste zeige fasse "
        "erkläre nenne suche hat haben"
    ).split()
)

_KEEP = re.compile(r"/\s*(?:keep|behalten)\s+(\S.*)", re.IGNORECASE | re.DOTALL)
_WORD = re.compile(r"[^\W_]+")
_LONE_WORD = re.compile(r"/+[^\s/]{1,32}")
_NUMBER = re.compile(r"\W*\d{1,2}\W*")
MAX_OPTION_CHARS = 500


def command_of(text: str) -> Command | None:
    """Return the command that a message consists of, with or without a slash, or None if it is not a
    command.
    """
    if file_to_keep(text):
        return "keep"
    return _COMMANDS.get(text.strip().removeprefix("/").strip(".!? ").casefold())


def file_to_keep(text: str) -> str:
    """Return the file name that follows `/keep`, or "" for all other messages."""
    match = _KEEP.fullmatch(text.strip())
    return match[1].strip("*\"“”„' ") if match else ""


def is_unknown_command(text: str) -> bool:
    """Return whether a message is a slash with an unknown word, or a known command followed by unexpected
    words.

    Such a text isn't answered as a question: after "/forget everything" the answer could pass for a deletion.
    """
    first, _, more = text.strip().partition(" ")
    if more:
        return first.startswith("/") and command_of(first.rstrip(":,;")) is not None
    return _LONE_WORD.fullmatch(first) is not None and command_of(first) is None


def has_words(text: str) -> bool:
    """Return whether a message contains a letter or digit. A message of emojis does not."""
    return _WORD.search(text) is not None


def is_number_of_option(text: str) -> bool:
    """Return whether a message is only a number. Such a message answers a clarification, even one that has
    expired.
    """
    return _NUMBER.fullmatch(text) is not None


def conversation_key(conversation: BotConversation) -> str:
    """Return the key under which the state of a conversation is stored."""
    where = (conversation.channel, conversation.tenant_id or "", conversation.conversation_id)
    return digest("conversation", *where)[:32]


def reply_key(activity: BotActivity, owner_id_key: str) -> str:
    """Return the key of the reply to an activity. Repeated deliveries of the activity yield the same key.

    It is also the id of the question's run, so it begins like all ids of its owner.

    Raises:
        ValueError: the activity needs no reply.
    """
    if isinstance(activity, BotIgnored):
        raise ValueError("unhandled message type")
    unique = digest("activity", conversation_key(activity.conversation), activity.activity_id)
    return owned_id(owner_of(activity.conversation, activity.sender), owner_id_key, unique)


def owner_of(conversation: BotConversation, sender: BotSender) -> str:
    """Return the id that owns the thread and the runs: the person's, or a derived id for a group or an
    anonymous user.
    """
    if conversation.kind != "personal":
        return f"conversation:{conversation_key(conversation)}"
    if sender.object_id is None:
        return f"channel:{conversation.channel}:{digest(conversation.channel, sender.channel_user_id)[:32]}"
    return sender.object_id


def as_answer(text: str, options: Sequence[ClarificationOption]) -> Choice | None:
    """Interpret a message as the answer to a clarification. Return None if it is a new question.

    Raises:
        CallerError: no option has this number.
    """
    words = text.strip()[:MAX_OPTION_CHARS]
    choice = read_reply(ClarificationAnswer(text=words), options)
    if choice.numbers:
        return None if words.endswith("?") and not _is_short(words) else choice
    return None if _asks(words) else choice


def _asks(text: str) -> bool:
    words = _WORD.findall(text.casefold())
    return text.endswith("?") or not _is_short(text) or not words or words[0] in _ASKING


def _is_short(words: str) -> bool:
    return len(_WORD.findall(words)) <= _MAX_WORDS_OF_ADDITION
