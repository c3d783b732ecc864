"""Markdown (CommonMark with tables): its own structure is the document's."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shared.documents.models import Element, ElementKind, ParsedDocument
from shared.ingestion.parsers.tables import escaped_cell, table_lines
from shared.ingestion.parsers.text import read_text

if TYPE_CHECKING:
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FRONT_MATTER_FIELD = re.compile(r"^(title|author):[ \t]*(.+?)[ \t]*$", re.MULTILINE)


def parse_markdown(path: Path) -> ParsedDocument:
    """Headings, paragraphs, list items, tables and code, in order. Title and author from the front matter.

    Raises:
        BadDocumentError: the file is not text.
    """
    from markdown_it import MarkdownIt

    text = read_text(path)
    properties: dict[str, str] = {}
    front_matter = _FRONT_MATTER.match(text)
    if front_matter:
        fields = _FRONT_MATTER_FIELD.findall(front_matter[1])
        properties = {key: value.strip("\"'") for key, value in fields}
        text = text[front_matter.end() :]
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    return ParsedDocument(
        elements=tuple(_elements(tokens)), title=properties.get("title"), author=properties.get("author")
    )


def _elements(tokens: Sequence["Token"]) -> Iterator[Element]:
    lists: list[_List] = []
    position = 0
    while position < len(tokens):
        token = tokens[position]
        _follow_lists(token, lists)
        if token.type == "table_open":
            position, rows = _table(tokens, position)
            yield Element(kind="table", text=rows)
        elif token.type in ("fence", "code_block") and token.content.strip():
            yield Element(kind="code", text=token.content.rstrip("\n"))
        elif token.type in ("paragraph_open", "heading_open"):
            yield from _leaf(token, _inline_text(tokens[position + 1]), lists)
        elif token.type == "html_block":
            yield from _leaf(token, _without_tags(token.content), lists)
        position += 1


def _follow_lists(token: "Token", lists: list["_List"]) -> None:
    """Keep `lists` the stack of the lists that are open at this token."""
    if token.type in ("bullet_list_open", "ordered_list_open"):
        lists.append(_List(ordered=token.type.startswith("ordered"), number=int(token.attrGet("start") or 1)))
    elif token.type in ("bullet_list_close", "ordered_list_close"):
        lists.pop()
    elif token.type == "list_item_open":
        lists[-1].mark = lists[-1].next_mark("  " * (len(lists) - 1))


class _List:
    """An open list. `mark` is what the next paragraph begins with: only the first of an item has one."""

    def __init__(self, *, ordered: bool, number: int) -> None:
        self._ordered = ordered
        self._number = number
        self.mark = ""

    def next_mark(self, indent: str) -> str:
        mark = f"{indent}{self._number}. " if self._ordered else f"{indent}- "
        self._number += 1
        return mark


def _leaf(token: "Token", text: str, lists: Sequence[_List]) -> Iterator[Element]:
    if not text:
        return
    if token.type == "heading_open":
        yield Element(kind="heading", text=text, level=int(token.tag[1]))
        return
    kind: ElementKind = "list_item" if lists else "paragraph"
    if lists:
        text, lists[-1].mark = lists[-1].mark + text, "  "
    yield Element(kind=kind, text=text)


def _inline_text(token: "Token") -> str:
    """The text as a reader sees it: no marks of emphasis, no link targets, images by their description."""
    parts = []
    for child in token.children or ():
        if child.type in ("softbreak", "hardbreak"):
            parts.append(" " if child.type == "softbreak" else "\n")
        elif child.type != "html_inline":
            parts.append(child.content)
    return "".join(parts).strip()


def _table(tokens: Sequence["Token"], start: int) -> tuple[int, str]:
    """The position of the table's end, and the table as Markdown with one line a row."""
    rows: list[list[str]] = []
    position = start
    while tokens[position].type != "table_close":
        token = tokens[position]
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(escaped_cell(_inline_text(token)))
        position += 1
    return position, table_lines(rows)


def _without_tags(html: str) -> str:
    visible = re.sub(r"<!--.*?-->|<(script|style)\b.*?</\1>", " ", html, flags=re.DOTALL | re.IGNORECASE)
    return " ".join(re.sub(r"<[^>]*>", " ", visible).split())
