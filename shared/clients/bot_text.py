"""Texts of messages: in parts that a channel takes, and with all in words where it shows no more.

Pure. Teams shows sources, pictures, tables and buttons beside the text; in other channels they are lines
below it.
"""

import re
from collections.abc import Iterator

from shared.models.bot import BotReply, ChosenOption, ShownCitation

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
