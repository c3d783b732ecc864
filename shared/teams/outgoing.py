"""Messages of ours as the Bot Framework protocol has them. Pure: a reply becomes one activity, or several.

Source: Bot Framework Activity schema 3.1; Microsoft Teams, "Enhance AI-generated bot messages", "Stream bot
messages", "Format your bot messages".
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from shared.teams.activities import TEAMS
from shared.teams.cards import card_of
from shared.teams.models import BotConversation, BotReply, ChosenOption, ShownCitation

_SIGNS = re.compile(r"[\\`*|~\[\]]|(?<![^\W_])_|_(?![^\W_])")
_ADDRESS = re.compile(r":(?=//)|\bwww(?=\.)", re.IGNORECASE)
_CITED = re.compile(r"\[(\d{1,3})\]")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_EMPHASIS = re.compile(r"(?<!\\)(\*{1,3})(?=\S)(.+?)(?<=\S)(?<!\\)\1")
_GENERATED = {"de": "Von KI erzeugt.", "en": "AI-generated."}
_SOURCES = {"de": "Quellen", "en": "Sources"}
MARKDOWN_CHANNELS = frozenset(("msteams", "webchat", "directline", "emulator", "skype", "slack", "cortana"))


def with_choices(reply: BotReply) -> str:
    """The text, and below it the options that can be chosen by their number."""
    options = [
        f"{button.value.number}. {_literal(button.title)}"
        for button in reply.buttons
        if isinstance(button.value, ChosenOption)
    ]
    return "\n\n".join(part for part in (reply.text, "\n".join(options)) if part)


def in_words(reply: BotReply, language: str) -> str:
    """Markdown that holds all of a message: for channels that show nothing beside it."""
    commands = " · ".join(
        f"`{button.value.command}`" for button in reply.buttons if not isinstance(button.value, ChosenOption)
    )
    figures = "\n".join(
        f"- {_literal(figure.caption)}{f': {figure.page_url}' if figure.page_url else ''}"
        for figure in reply.figures
    )
    sources = [_source(cited) for cited in cited_in(reply.text, reply.citations)]
    parts = (
        with_choices(reply),
        commands,
        figures,
        "\n".join((f"**{_SOURCES[language]}**", *sources)) if sources else "",
        f"*{_GENERATED[language]}*" if reply.is_generated else "",
    )
    return "\n\n".join(part for part in parts if part)


def without_markdown(text: str) -> str:
    """For channels that show the signs of Markdown as they are, such as SMS."""
    text = _EMPHASIS.sub(r"\2", text)
    return _ESCAPED.sub(r"\1", text).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def cited_in(text: str, citations: tuple[ShownCitation, ...]) -> list[ShownCitation]:
    """Those whose `[n]` stands in the text."""
    numbers = {int(found) for found in _CITED.findall(text)}
    return [citation for citation in citations if citation.n in numbers]


def split(text: str, most_chars: int) -> list[str]:
    """The text in parts of no more than `most_chars`, cut between paragraphs, else lines, else words.

    Code that is cut is closed, and opened again in the next part.
    """
    parts, rest = [], text.strip()
    while len(rest) > most_chars:
        room = most_chars - 8  # for the lines that close code and open it again
        end = _place_to_cut(rest[:room])
        part, rest = rest[:end].rstrip(), rest[end:].lstrip("\n")
        fence = _open_fence(part)
        parts.append(f"{part}\n{fence}" if fence else part)
        rest = f"{fence}\n{rest}" if fence else rest.lstrip()
    return [*parts, rest] if rest or not parts else parts


def _place_to_cut(room: str) -> int:
    """After the last break in the second half of what there is room for."""
    for sign in ("\n\n", "\n", " "):
        found = room.rfind(sign, len(room) // 2)
        if found > 0:
            return found + len(sign)
    return len(room)


def _open_fence(part: str) -> str:
    fence = ""
    for found in _fences(part):
        fence = "" if fence and found.startswith(fence) else fence or found
    return fence[:3]


def _fences(part: str) -> Iterator[str]:
    return (found[1] for found in _FENCE.finditer(part))


def _source(citation: ShownCitation) -> str:
    link = f" {citation.url}" if citation.url else ""
    return f"- [{citation.n}] {_literal(citation.name)}: “{_literal(citation.abstract)}”{link}"


def _literal(text: str) -> str:
    """Markdown that shows names and quotations as they are, on one line, and links nothing."""
    line = _ADDRESS.sub(r"\g<0> ", " ".join(text.split()))
    return _SIGNS.sub(r"\\\g<0>", line).replace("&", "&amp;").replace("<", "&lt;")


Wire = dict[str, Any]

# Of one activity, counted as UTF-16. Teams' documentation said 28 KB, then 40, and says 100 today; its older
# clouds are not said to have followed.
MAX_MESSAGE_BYTES = 40_000
MAX_TEXT_CHARS = 8_000  # leaves room for the sources of a text
MAX_CARD_BYTES = 27_000  # as UTF-8; Teams refuses cards of more than 28 KB
MAX_CITATIONS = 10  # of one message, in the schema of Microsoft's own Agents Playground 0.2.28
_MAX_NAME_CHARS = 80
_MAX_ABSTRACT_CHARS = 480  # what the Agents SDK 1.9.0 sends at most
_MIN_SPLIT_CHARS = 200
_KINDS = {"personal": "personal", "group": "groupChat", "channel": "channel"}


@dataclass(frozen=True)
class StreamState:
    """Where a growing message stands; `stream_id` is empty until the channel has given one."""

    kind: Literal["informative", "streaming", "final"]
    stream_id: str = ""
    sequence: int = 0  # counted from 1; a final one has none


def language_of(conversation: BotConversation) -> str:
    """Of our own words beside a text."""
    return "de" if (conversation.locale or "").casefold().split("-")[0] == "de" else "en"


def typing_of(conversation: BotConversation) -> Wire:
    """The sign that we write."""
    return _addressed(conversation, {"type": "typing"})


def update_of(conversation: BotConversation, text: str, state: StreamState) -> Wire:
    """A part of a growing message: all of its text so far, or what is being done."""
    return streamed(_addressed(conversation, {"type": "typing", "text": text}), state)


def streamed(activity: Wire, state: StreamState) -> Wire:
    """The activity as a part of a growing message."""
    told: Wire = {"type": "streaminfo", "streamType": state.kind}
    if state.kind != "final":
        told["streamSequence"] = state.sequence
    own: Wire = {}
    if state.stream_id:
        told["streamId"] = own["id"] = state.stream_id
    return {**activity, **own, "entities": [*activity.get("entities", ()), told]}


def messages_of(conversation: BotConversation, reply: BotReply) -> list[Wire]:
    """The activities that tell a reply, in order. Its card, and the thumbs, are with the last."""
    if conversation.channel != TEAMS:
        return _messages_in_words(conversation, reply)
    texts = [
        part
        for text in split(with_choices(reply), MAX_TEXT_CHARS)
        for part in _fitting(conversation, reply, text)
    ]
    messages = [_message(conversation, reply, text) for text in texts]
    card = _small_card(reply, language_of(conversation))
    if card is not None:
        with_card = {**messages[-1], "attachments": [card]}
        if _size(with_card) <= MAX_MESSAGE_BYTES:
            messages[-1] = with_card
        else:
            alone = reply.model_copy(update={"citations": ()})
            messages.append({**_message(conversation, alone, ""), "attachments": [card]})
    if reply.can_be_rated:
        messages[-1]["channelData"] = {"feedbackLoop": {"type": "default"}}
    return messages


def _messages_in_words(conversation: BotConversation, reply: BotReply) -> list[Wire]:
    is_markdown = conversation.channel in MARKDOWN_CHANNELS
    text = in_words(reply, language_of(conversation))
    shown = text if is_markdown else without_markdown(text)
    told = {"type": "message", "textFormat": "markdown" if is_markdown else "plain"}
    return [_addressed(conversation, {**told, "text": part}) for part in split(shown, MAX_TEXT_CHARS)]


def _fitting(conversation: BotConversation, reply: BotReply, text: str) -> list[str]:
    """The text, or its halves, so that each with its sources is no more than a message may be."""
    is_few = len(cited_in(text, reply.citations)) <= MAX_CITATIONS
    is_small = _size(_message(conversation, reply, text)) <= MAX_MESSAGE_BYTES
    if len(text) < _MIN_SPLIT_CHARS or (is_few and is_small):
        return [text]
    halves = split(text, len(text) // 2 + 16)
    return [part for half in halves for part in _fitting(conversation, reply, half)]


def _message(conversation: BotConversation, reply: BotReply, text: str) -> Wire:
    message = {"type": "message", "textFormat": "markdown", "text": text}
    entity = _sources(cited_in(text, reply.citations), is_generated=reply.is_generated)
    return _addressed(conversation, {**message, **({"entities": [entity]} if entity else {})})


def _sources(citations: list[ShownCitation], *, is_generated: bool) -> Wire | None:
    if not citations and not is_generated:
        return None
    entity: Wire = {
        "type": "https://schema.org/Message",
        "@type": "Message",
        "@context": "https://schema.org",
    }
    if is_generated:
        entity["additionalType"] = ["AIGeneratedContent"]
    if citations:
        entity["citation"] = [_claim(citation) for citation in citations[:MAX_CITATIONS]]
    return entity


def _claim(citation: ShownCitation) -> Wire:
    document: Wire = {
        "@type": "DigitalDocument",
        "name": _cut(citation.name, _MAX_NAME_CHARS),
        "abstract": _cut(citation.abstract, _MAX_ABSTRACT_CHARS),
    }
    if citation.url:
        document["url"] = citation.url
    return {"@type": "Claim", "position": citation.n, "appearance": document}


def _small_card(reply: BotReply, language: str) -> Wire | None:
    """The card; without its tables, which the text has as well, where it would be too large."""
    card = card_of(reply, language)
    if card is None or len(json.dumps(card).encode()) <= MAX_CARD_BYTES:
        return card
    return card_of(reply.model_copy(update={"tables": ()}), language)


def _addressed(conversation: BotConversation, activity: Wire) -> Wire:
    place: Wire = {"id": conversation.conversation_id}
    if conversation.channel == TEAMS:  # it lets messages grow only where it is told that nobody reads along
        place["conversationType"] = _KINDS[conversation.kind]
        place["isGroup"] = conversation.kind != "personal"
    if conversation.tenant_id:
        place["tenantId"] = conversation.tenant_id
    addressed = {
        **activity,
        "channelId": conversation.channel,
        "serviceUrl": conversation.service_url,
        "conversation": place,
    }
    if conversation.bot_id:  # a channel that never named us knows by the token who we are
        name = {"name": conversation.bot_name} if conversation.bot_name else {}
        addressed["from"] = {"id": conversation.bot_id, **name}
    return addressed


def _size(activity: Wire) -> int:
    return 2 * len(json.dumps(activity, ensure_ascii=False))


def _cut(text: str, most_chars: int) -> str:
    return text if len(text) <= most_chars else text[: most_chars - 1].rstrip() + "…"
