"""Parser for Markdown files (CommonMark with tables)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from shared.documents.models import Element, ParsedDocument
from shared.ingestion.parsers.context import ParseContext
from shared.ingestion.parsers.tables import escape_cell, table_lines
from shared.ingestion.parsers.text import read_text

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FRONT_MATTER_FIELD = re.compile(r"^(title|author):[ \t]*(\S(?:.*\S)?)[ \t]*$", re.MULTILINE)
# An unclosed comment extends to the end of the file, as in browsers. The pattern takes linear time.
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
# A longer paragraph is parsed in parts of this length, because the parser needs a kilobyte of memory per line
# or mark.
_PART_CHARS = 20_000
_PART = re.compile(rf"[\s\S]{{1,{_PART_CHARS}}}(?:\s|\Z)|[\s\S]{{1,{_PART_CHARS}}}")


def parse_markdown(path: Path, _context: ParseContext | None = None) -> ParsedDocument:
    """Parse headings, paragraphs, list items, tables and code. Title and author are read from the front
    matter.

    Raises:
        BadDocumentError: the file is not a text file.
    """
    text = read_text(path)
    properties: dict[str, str] = {}
    front_matter = _FRONT_MATTER.match(text)
    if front_matter:
        fields = _FRONT_MATTER_FIELD.findall(front_matter[1])
        properties = {key: value.strip("\"'") for key, value in fields}
        text = text[front_matter.end() :]
    reader = _Reader()
    return ParsedDocument(
        elements=tuple(reader.elements(text)), title=properties.get("title"), author=properties.get("author")
    )


@dataclass
class _List:
    """List that is being parsed, with its kind and the number of its next item.

    Attributes:
        number: number of the next item; None for bullets.
        mark: prefix of the next paragraph; only the first paragraph of an item has a number or bullet.
    """

    number: int | None
    mark: str = ""


class _Reader:
    """Reader of one Markdown text. It parses the text within a block when it reaches the block, because the
    tokens of all words would take up to a hundred times the memory of the text.
    """

    def __init__(self) -> None:
        self._parser = MarkdownIt("commonmark", {"html": True}).enable("table").disable("inline")
        # Link targets that the text defines, filled by the parser.
        self._definitions: dict[str, Any] = {}

    def elements(self, text: str) -> Iterator[Element]:
        """Yield the elements of the text."""
        tokens = self._parser.parse(text, self._definitions)
        lists: list[_List] = []
        # Rows of the table that is being read.
        rows: list[list[str]] = []
        for opening, token in zip([None, *tokens], tokens, strict=False):
            _follow_lists(token, lists)
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "table_close":
                yield Element(kind="table", text=table_lines(rows))
                rows = []
            elif token.type in ("inline", "html_block"):
                visible = self._visible_text(token)
                if rows:
                    rows[-1].append(escape_cell(visible))
                elif visible:
                    yield _leaf(opening, visible, lists)
            elif token.type in ("fence", "code_block") and token.content.strip():
                yield Element(kind="code", text=token.content.rstrip("\n"))

    def _visible_text(self, token: Token) -> str:
        """Return the visible text of a token, without emphasis marks and link targets. Images are replaced
        with their descriptions.
        """
        if token.type == "html_block":
            return " ".join(_TAG.sub(" ", _HIDDEN.sub(" ", token.content)).split())
        return "".join(map(self._visible_part, _PART.findall(token.content))).strip()

    def _visible_part(self, content: str) -> str:
        children: list[Token] = []
        self._parser.inline.parse(content, self._parser, self._definitions, children)
        parts = []
        for child in children:
            if child.type in ("softbreak", "hardbreak"):
                parts.append(" " if child.type == "softbreak" else "\n")
            elif child.type != "html_inline":
                parts.append(child.content)
        return "".join(parts)


def _follow_lists(token: Token, lists: list[_List]) -> None:
    """Update the stack of open lists at the start or end of a list or item."""
    if token.type == "bullet_list_open":
        lists.append(_List(None))
    elif token.type == "ordered_list_open":
        lists.append(_List(int(token.attrGet("start") or 1)))
    elif token.type in ("bullet_list_close", "ordered_list_close"):
        lists.pop()
    elif token.type == "list_item_open":
        current, indent = lists[-1], "  " * (len(lists) - 1)
        current.mark = f"{indent}- " if current.number is None else f"{indent}{current.number}. "
        if current.number is not None:
            current.number += 1


def _leaf(opening: Token | None, text: str, lists: Sequence[_List]) -> Element:
    if opening is not None and opening.type == "heading_open":
        return Element(kind="heading", text=text, level=int(opening.tag[1]))
    if not lists:
        return Element(kind="paragraph", text=text)
    text, lists[-1].mark = lists[-1].mark + text, "  "
    return Element(kind="list_item", text=text)
