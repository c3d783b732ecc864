"""Rendering of outgoing messages: converts an answer to a reply, and a reply to Bot Framework activities.
Pure.

Links are absolute, because chat clients have no base URL. Only pictures have signed URLs (decision 0023).

In Teams an Adaptive Card below the message shows figures, tables and buttons. Document text appears only in
text blocks of the card, where it can't become a link. Buttons return a value without text (no `messageBack`),
because the Agents Playground 0.2.28 ignores clicks on buttons with text.

Source: Bot Framework Activity schema 3.1; Adaptive Cards 1.5; Microsoft Teams, "Enhance AI-generated bot
messages", "Stream bot messages", "Format your bot messages", "Card actions", "Cards reference".
"""

import json
import re
import textwrap
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

from shared.evidence.figures import alt_text
from shared.evidence.models import AnswerFigure, Citation
from shared.evidence.number_format import column_texts
from shared.evidence.reader_text import MAX_FENCE_CHARS, ReaderText
from shared.evidence.source_links import clock_time
from shared.evidence.untrusted_text import markdown_text, one_line, shown_name
from shared.runs.models import RunAnswer
from shared.teams import messages
from shared.teams.activities import TEAMS
from shared.teams.markdown import cut, for_channel
from shared.teams.messages import OPEN_PAGE, language_of
from shared.teams.models import (
    OWN_KEY,
    BotConversation,
    BotReply,
    ChosenOption,
    Language,
    ShownButton,
    ShownCitation,
    ShownFigure,
    ShownTable,
)

Wire = dict[str, Any]

# Size limit of one activity in UTF-16. The limit in the Teams documentation rose from 28 KB to 40 and then
# 100; older clouds may still enforce the lower ones.
MAX_MESSAGE_BYTES = 40_000
# Maximum length of a message, which leaves space for the sources.
MAX_TEXT_CHARS = 8_000
MAX_CARD_BYTES = 27_000  # as UTF-8; Teams rejects cards above 28 KB
# Citations per message, from the schema of Microsoft's Agents Playground 0.2.28.
MAX_CITATIONS = 10
MAX_ABSTRACT_CHARS = 480  # the limit of the Agents SDK 1.9.0
MARKDOWN_CHANNELS = frozenset(("msteams", "webchat", "directline", "emulator", "skype", "slack", "cortana"))
# Maximum length of the label of a figure whose caption the text already contains. Not measured.
_MAX_LABEL_CHARS = 60
_MAX_NAME_CHARS = 80
_MIN_SPLIT_CHARS = 200
_KINDS = {"personal": "personal", "group": "groupChat", "channel": "channel"}

_CITED = re.compile(r"\[(\d{1,3})\]")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)")
_FENCE = re.compile(rf"^(`{{3,{MAX_FENCE_CHARS}}}|~{{3,{MAX_FENCE_CHARS}}})", re.MULTILINE)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_EMPHASIS = re.compile(r"(?<!\\)(\*{1,3})(?=\S)(.+?)(?<=\S)(?<!\\)\1")

MAX_TABLE_ROWS = 40  # longer tables stay in the text; unmeasured
MAX_TABLE_COLUMNS = 7  # a phone shows about 4 (unmeasured)
_MAX_TITLE_CHARS = 120
_MAX_CELL_CHARS = 400
_REST = "rest"
_OF_ADDRESSES = ":/?#[]@!$&'*+,;=%~"  # legal in a URL, except those that end a Markdown link
# Teams would otherwise render a link, or a date in the reader's format: {{DATE(...)}}.
_SEPARATED = (("](", "] ("), ("{{", "{ {"))


def reply_of(answer: RunAnswer, *, language: Language, public_address: str | None) -> BotReply:
    """Convert an answer to a reply with sources, figures and tables.

    Args:
        answer: refreshed, so that its figures have signed URLs; figures without one are skipped.
        public_address: the app's URL without a trailing slash; None = unknown, so nothing is linked.
    """
    text, tables = for_channel(answer.text, messages.PAGE[language])
    tables = tables or tuple(
        filter(None, (_calculation_table(cited, answer.language) for cited in answer.citations))
    )
    figures = [figure for figure in answer.figures if figure.image_url]
    return BotReply(
        text=text,
        badge=messages.DEEP_ANALYSIS[language] if answer.sub_agents else "",
        citations=tuple(_citation(cited, language, public_address) for cited in answer.citations),
        figures=tuple(
            _figure(figure, _label(figure, text, is_only=len(figures) == 1), language, public_address)
            for figure in figures
        ),
        tables=tables,
        can_be_rated=True,
        is_generated=True,
    )


def messages_of(conversation: BotConversation, reply: BotReply) -> list[Wire]:
    """Convert a reply to the activities to send, in order. The last one contains the card and the rating
    buttons.

    A text that exceeds one message is moved into the card if it fits there.
    """
    language = language_of(conversation)
    if conversation.channel != TEAMS:
        return _messages_in_words(conversation, reply, language)
    texts = [
        part
        for text in split(_with_choices(reply), MAX_TEXT_CHARS)
        for part in _fitting(conversation, reply, text)
    ]
    rest = "\n\n".join(texts[1:])
    if reply.badge:
        texts[0] = f"{texts[0]}\n\n**{reply.badge}**"
    whole = _unfolding(conversation, reply, texts[0], rest) if rest else None
    activities = [whole] if whole else _in_parts(conversation, reply, texts)
    if reply.can_be_rated:
        activities[-1]["channelData"] = {"feedbackLoop": {"type": "default"}}
    return activities


def _unfolding(conversation: BotConversation, reply: BotReply, first: str, rest: str) -> Wire | None:
    """Return a single message whose card hides `rest` behind a button, or None if it exceeds the size
    limits.
    """
    without_tables = reply.model_copy(update={"tables": ()})  # The text already contains the tables.
    card = card_of(without_tables, language_of(conversation), rest)
    message = {**_message(conversation, reply, f"{first}\n\n…"), "attachments": [card]}
    fits = len(json.dumps(card).encode()) <= MAX_CARD_BYTES and _size(message) <= MAX_MESSAGE_BYTES
    return message if fits else None


def _in_parts(conversation: BotConversation, reply: BotReply, texts: list[str]) -> list[Wire]:
    """Return one message per text. The card is attached to the last message, or sent separately if it doesn't
    fit.
    """
    language = language_of(conversation)
    activities = [_message(conversation, reply, text) for text in texts]
    card = card_of(reply, language)
    if card is not None and len(json.dumps(card).encode()) > MAX_CARD_BYTES:
        # The text already contains the tables.
        card = card_of(reply.model_copy(update={"tables": ()}), language)
    if card is not None:
        with_card = {**activities[-1], "attachments": [card]}
        if _size(with_card) <= MAX_MESSAGE_BYTES:
            activities[-1] = with_card
        else:
            alone = reply.model_copy(update={"citations": ()})
            activities.append({**_message(conversation, alone, ""), "attachments": [card]})
    return activities


def typing_of(conversation: BotConversation) -> Wire:
    """Return the activity that shows the typing indicator."""
    return _with_address(conversation, {"type": "typing"})


@dataclass(frozen=True)
class StreamState:
    """The stage of a streamed message. `stream_id` is empty until the channel assigns one."""

    kind: Literal["informative", "streaming", "final"]
    stream_id: str = ""
    sequence: int = 0  # Counted from 1. The final update has no sequence number.


def update_of(conversation: BotConversation, text: str, state: StreamState) -> Wire:
    """Return the activity that updates a streamed message. `text` is the whole text so far, or a progress
    line.
    """
    return as_stream_update(_with_address(conversation, {"type": "typing", "text": text}), state)


def as_stream_update(activity: Wire, state: StreamState) -> Wire:
    """Return a copy of the activity with the metadata of a streamed message."""
    entity: Wire = {"type": "streaminfo", "streamType": state.kind}
    if state.kind != "final":
        entity["streamSequence"] = state.sequence
    own: Wire = {}
    if state.stream_id:
        entity["streamId"] = own["id"] = state.stream_id
    return {**activity, **own, "entities": [*activity.get("entities", ()), entity]}


def in_words(reply: BotReply, language: Language) -> str:
    """Render a reply with its options, figures and sources as Markdown, for channels that support only
    text.
    """
    commands = " · ".join(
        f"`{button.value.command}`" for button in reply.buttons if not isinstance(button.value, ChosenOption)
    )
    figures = "\n".join(
        f"- {markdown_text(figure.caption)}{f': {figure.page_url}' if figure.page_url else ''}"
        for figure in reply.figures
    )
    sources = [
        f"- [{cited.n}] {markdown_text(cited.name)}: “{markdown_text(cited.abstract)}” {cited.url}".rstrip()
        for cited in _cited_in(reply.text, reply.citations)
    ]
    parts = (
        _with_choices(reply),
        f"**{reply.badge}**" if reply.badge else "",
        commands,
        figures,
        "\n".join((f"**{messages.SOURCES_HEADING[language]}**", *sources)) if sources else "",
        f"*{messages.GENERATED[language]}*" if reply.is_generated else "",
    )
    return "\n\n".join(part for part in parts if part)


def without_markdown(text: str) -> str:
    """Remove Markdown markup, for channels that don't render it, such as SMS."""
    text = _EMPHASIS.sub(r"\2", text)
    return _ESCAPED.sub(r"\1", text).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def split(text: str, most_chars: int) -> list[str]:
    """Split the text into parts of at most `most_chars` characters, preferably between paragraphs, then
    between lines, then between words.

    Split code is closed and reopened in the next part.
    """
    parts, rest = [], text.strip()
    while len(rest) > most_chars:
        longest = max((len(fence) for fence in _FENCE.findall(rest)), default=3)
        room = most_chars - 2 * longest - 2  # Leaves space for the lines that close and reopen a code block.
        end = _before_code_span(rest, _place_to_cut(rest[:room]))
        part, rest = rest[:end].rstrip(), rest[end:].lstrip("\n")
        fence = ReaderText.after(f"{part}\n").open_fence
        parts.append(f"{part}\n{fence}" if fence else part)
        rest = f"{fence}\n{rest}" if fence else rest.lstrip()
    return [*parts, rest] if rest or not parts else parts


def _place_to_cut(room: str) -> int:
    """Return the best position for a cut: after the last paragraph, line or word that ends in the second
    half.
    """
    for sign in ("\n\n", "\n", " "):
        position = room.rfind(sign, len(room) // 2)
        if position > 0:
            return position + len(sign)
    return len(room)


def _before_code_span(text: str, end: int) -> int:
    """Return a position before any code span that the cut at `end` would split, because text outside code
    could become a link.
    """
    start = text.rfind("\n", 0, end) + 1
    line = text[start:].partition("\n")[0]
    spans = ((start + span.start(), start + span.end()) for span in _CODE_SPAN.finditer(line))
    return next((first for first, last in spans if 0 < first < end < last), end)


def _citation(citation: Citation, language: Language, public_address: str | None) -> ShownCitation:
    parts = ["; ".join(_page_of(*place, language) for place in citation.places)]
    if citation.start_seconds is not None:
        parts.append(clock_time(citation.start_seconds))
    if citation.kind == "table":
        parts.append(messages.COMPUTED[language])
    # The words come from the caption of a figure, which doesn't count as proof.
    elif citation.quote and not citation.verified:
        parts.append(messages.FIGURE[language])
    if citation.kind == "web":
        parts.append(messages.OUTSIDE[language])
    publisher = f" ({one_line(citation.published_by)})" if citation.published_by else ""
    abstract = f"{citation.sql_in_words} {citation.quote}" if citation.sql_in_words else citation.quote
    return ShownCitation(
        n=citation.n,
        name=", ".join(parts),
        abstract=textwrap.shorten(one_line(abstract) + publisher, MAX_ABSTRACT_CHARS, placeholder=" …"),
        url=_absolute(citation.url, public_address),
    )


def _calculation_table(citation: Citation, answer_language: str) -> ShownTable | None:
    """Return the rows of a calculated answer as a table for the card, or None for a single value or too many
    rows or columns.
    """
    columns, rows = citation.columns or (), citation.rows or ()
    if not len(rows) * len(columns) > 1 or len(rows) > MAX_TABLE_ROWS or len(columns) > MAX_TABLE_COLUMNS:
        return None
    cells = (
        map(one_line, column_texts([row[place] for row in rows], answer_language, name))
        for place, name in enumerate(columns)
    )
    return ShownTable(header=columns, rows=tuple(zip(*cells, strict=True)))


def _figure(figure: AnswerFigure, label: str, language: Language, public_address: str | None) -> ShownFigure:
    view = f"pages/{figure.page_number}" if figure.page_number is not None else "readable"
    source = _page_of(figure.filename, figure.page_number, language)
    return ShownFigure(
        caption=f"{label} ({source})" if label else source,
        alt=f"{alt_text(figure.caption)} ({source})",
        image_url=figure.image_url or "",
        page_url=_absolute(f"/api/documents/{figure.doc_id}/{view}", public_address),
    )


def _label(figure: AnswerFigure, text: str, *, is_only: bool) -> str:
    """Return a figure's caption for the card. If the text already contains it, the only figure gets none and
    others a shortened one.
    """
    caption = alt_text(figure.caption)
    if f"*{caption}*" not in text:
        return caption
    return "" if is_only else textwrap.shorten(caption, _MAX_LABEL_CHARS, placeholder=" …")


def _page_of(filename: str, page_number: int | None, language: Language) -> str:
    name = shown_name(filename)
    return name if page_number is None else f"{name}, {messages.PAGE[language].format(page_number)}"


def _absolute(address: str, public_address: str | None) -> str:
    """Return an absolute URL, or "" if the app's public address is unknown or the URL isn't https."""
    if not address.startswith("/"):
        return address if address.startswith("https://") else ""
    return f"{public_address}{address}" if public_address else ""


def _with_choices(reply: BotReply) -> str:
    """Return the text of a reply followed by the numbered options of its clarification."""
    options = [
        f"{button.value.number}. {markdown_text(button.title)}"
        for button in reply.buttons
        if isinstance(button.value, ChosenOption)
    ]
    return "\n\n".join(part for part in (reply.text, "\n".join(options)) if part)


def _cited_in(text: str, citations: tuple[ShownCitation, ...]) -> list[ShownCitation]:
    """Return the citations that the text refers to as `[n]`."""
    numbers = {int(number) for number in _CITED.findall(text)}
    return [citation for citation in citations if citation.n in numbers]


def _messages_in_words(conversation: BotConversation, reply: BotReply, language: Language) -> list[Wire]:
    is_markdown = conversation.channel in MARKDOWN_CHANNELS
    text = in_words(reply, language)
    visible = text if is_markdown else without_markdown(text)
    fields = {"type": "message", "textFormat": "markdown" if is_markdown else "plain"}
    return [_with_address(conversation, {**fields, "text": part}) for part in split(visible, MAX_TEXT_CHARS)]


def _fitting(conversation: BotConversation, reply: BotReply, text: str) -> list[str]:
    """Split the text in half repeatedly until each part fits into one message together with its sources."""
    is_few = len(_cited_in(text, reply.citations)) <= MAX_CITATIONS
    is_small = _size(_message(conversation, reply, text)) <= MAX_MESSAGE_BYTES
    if len(text) < _MIN_SPLIT_CHARS or (is_few and is_small):
        return [text]
    halves = split(text, len(text) // 2 + 16)
    return [part for half in halves for part in _fitting(conversation, reply, half)]


def _message(conversation: BotConversation, reply: BotReply, text: str) -> Wire:
    message: Wire = {"type": "message", "textFormat": "markdown", "text": text}
    citations = _cited_in(text, reply.citations)
    if citations or reply.is_generated:
        entity: Wire = {
            "type": "https://schema.org/Message",
            "@type": "Message",
            "@context": "https://schema.org",
        }
        if reply.is_generated:
            entity["additionalType"] = ["AIGeneratedContent"]
        if citations:
            entity["citation"] = [_claim(citation) for citation in citations[:MAX_CITATIONS]]
        message["entities"] = [entity]
    return _with_address(conversation, message)


def _claim(citation: ShownCitation) -> Wire:
    document: Wire = {
        "@type": "DigitalDocument",
        "name": cut(citation.name, _MAX_NAME_CHARS),
        "abstract": citation.abstract,
    }
    if citation.url:
        document["url"] = citation.url
    return {"@type": "Claim", "position": citation.n, "appearance": document}


def _with_address(conversation: BotConversation, activity: Wire) -> Wire:
    target: Wire = {"id": conversation.conversation_id}
    if conversation.channel == TEAMS:  # Teams streams only messages that are marked as personal.
        target["conversationType"] = _KINDS[conversation.kind]
        target["isGroup"] = conversation.kind != "personal"
    if conversation.tenant_id:
        target["tenantId"] = conversation.tenant_id
    addressed = {
        **activity,
        "channelId": conversation.channel,
        "serviceUrl": conversation.service_url,
        "conversation": target,
    }
    # `bot_id` is empty if the channel never sent it. The channel then identifies the bot by its token.
    if conversation.bot_id:
        name = {"name": conversation.bot_name} if conversation.bot_name else {}
        addressed["from"] = {"id": conversation.bot_id, **name}
    return addressed


def _size(activity: Wire) -> int:
    return 2 * len(json.dumps(activity, ensure_ascii=False))


def card_of(reply: BotReply, language: Language, rest: str = "") -> Wire | None:
    """Return the Adaptive Card of a reply as an attachment, or None if the reply needs no card.

    `rest`: text beyond the message's limit, expanded by a button together with its sources.
    """
    body = [
        *(_collapsible(rest, _cited_in(rest, reply.citations), language) if rest else ()),
        *(_card_figure(figure, language) for figure in reply.figures),
        *(
            _table(table)
            for table in reply.tables
            if len(table.rows) <= MAX_TABLE_ROWS and len(table.header) <= MAX_TABLE_COLUMNS
        ),
        *(_button(button) for button in reply.buttons),
    ]
    if not body:
        return None
    content: Wire = {
        "type": "AdaptiveCard",
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "version": "1.5",
        "body": body,
    }
    if reply.tables or reply.figures:
        content["msteams"] = {"width": "Full"}
    return {"contentType": "application/vnd.microsoft.card.adaptive", "content": content}


def _collapsible(rest: str, citations: list[ShownCitation], language: Language) -> list[Wire]:
    toggle = {
        "type": "Action.ToggleVisibility",
        "title": messages.SHOW_ALL[language],
        "targetElements": [_REST],
    }
    blocks = [_block(paragraph) for paragraph in rest.split("\n\n") if paragraph.strip()]
    sources = [_source(cited) for cited in citations]
    return [
        {"type": "ActionSet", "actions": [toggle]},
        {"type": "Container", "id": _REST, "isVisible": False, "items": [*blocks, *sources]},
    ]


def _source(cited: ShownCitation) -> Wire:
    name = _text(cited.name)["text"]
    number = f"[{cited.n}]({quote(cited.url, safe=_OF_ADDRESSES)})" if cited.url else f"{cited.n}."
    return _block("") | {"text": f"{number} {name}", "isSubtle": True, "size": "Small"}


def _card_figure(figure: ShownFigure, language: Language) -> Wire:
    picture: Wire = {
        "type": "Image",
        "url": figure.image_url,
        "altText": cut(figure.alt or figure.caption, _MAX_CELL_CHARS),
        "size": "Stretch",
        "msteams": {"allowExpand": True},
    }
    items = [picture, _text(figure.caption) | {"isSubtle": True, "size": "Small"}]
    if figure.page_url:
        action = {"type": "Action.OpenUrl", "title": OPEN_PAGE[language], "url": figure.page_url}
        items.append({"type": "ActionSet", "actions": [action]})
    return {"type": "Container", "separator": True, "items": items}


def _table(table: ShownTable) -> Wire:
    return {
        "type": "Table",
        "columns": [{"width": 1} for _ in table.header],
        "firstRowAsHeaders": True,
        "showGridLines": True,
        "gridStyle": "default",
        "rows": [_row(table.header, is_header=True), *(_row(row) for row in table.rows)],
    }


def _row(cells: tuple[str, ...], *, is_header: bool = False) -> Wire:
    weight: Wire = {"weight": "Bolder"} if is_header else {}
    return {
        "type": "TableRow",
        "cells": [{"type": "TableCell", "items": [_text(cell) | weight]} for cell in cells],
    }


def _button(button: ShownButton) -> Wire:
    """Return a card button in its own row, because Teams truncates titles side by side and hides buttons
    after the sixth.

    The title begins with the option's number, which can be typed instead.
    """
    number = f"{button.value.number}. " if isinstance(button.value, ChosenOption) else ""
    title = cut(number + one_line(button.title), _MAX_TITLE_CHARS)
    value = {OWN_KEY: button.value.model_dump(mode="json")}
    return {"type": "ActionSet", "actions": [{"type": "Action.Submit", "title": title, "data": value}]}


def _text(text: str) -> Wire:
    return _block(cut(one_line(text), _MAX_CELL_CHARS))


def _block(text: str) -> Wire:
    visible = text
    for sign, separated in _SEPARATED:
        visible = visible.replace(sign, separated)
    return {"type": "TextBlock", "text": visible or " ", "wrap": True}
