"""Conversion of an answer's Markdown to the Markdown that chat clients render. Pure.

Chat clients display neither tables nor pictures or links with relative URLs. Outside fenced code therefore:

- a picture becomes its caption in italics, and is attached below the message;
- a link to our API becomes its text, and the numbered source after it has the link;
- a table, whose rows start with "|", becomes one line per row: `- **first cell** · Heading: cell`;
- list items are separated by blank lines, because otherwise the Agents Playground shows no source chips in a
  list. A single item has no neighbour to separate it from, so it becomes a paragraph that starts with its
  marker.

Everything else is unchanged: `ReaderText` has already sanitised the model's text.
"""

import re
from collections.abc import Sequence
from itertools import takewhile

from shared.teams.models import ShownTable

_OPENS_FENCE = re.compile(r" {0,3}(?:(`{3,})[^`]*|(~{3,}).*)")
_CLOSES_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*")
_ITEM = re.compile(r" *(?:[-*+]|\d{1,3}[.)]) ")
_OWN_ADDRESS = re.compile(
    r"(?:!\[(?P<caption>[^\[\]\n]*)\]|\[(?P<text>[^\[\]\n]+)\])\(/api/documents/[^()\s]*\)"
)
_ROW = re.compile(r" {0,3}\|")
_DELIMITER = re.compile(r" {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
_BORDER = re.compile(r"(?<!\\)\|")
_BREAK = re.compile(r"(?:(?<!\s)\s+)?<br ?/?>\s*", re.IGNORECASE)
_SOURCE = re.compile(r" ?\(Source: (?:[^()\n]|\([^()\n]*\))*\)(?=\[\d+\])")
_SOURCE_PLACES = re.compile(r"\(Source: (?:[^()\n]|\([^()\n]{0,300}\)){1,900}\)")
_PAGE = re.compile(r", S\. (\d{1,6})(?=[,;)])")
_CITED = re.compile(r"\[\d{1,3}\]")


def for_channel(text: str, page_label: str) -> tuple[str, tuple[ShownTable, ...]]:
    """Convert a complete answer for a chat client. Return the text and the tables it contains.

    The returned tables are for channels that can draw them; their cells keep only the number of a source.
    """
    lines, all_tables = _render(text.split("\n"), page_label)
    tables = tuple(_with_short_sources(table) for table in all_tables if len(table) > 1)
    return _unwrap_lone_items("\n".join(lines).strip("\n")), tables


def finished_lines(text: str, page_label: str) -> str:
    """Convert the complete lines of a partially streamed answer. As more text arrives, the result only grows
    at its end.
    """
    lines = text.split("\n")[:-1]
    output, _ = _render(lines, page_label, may_grow=True)
    return "".join(f"{line}\n" for line in output)


_Row = tuple[str, ...]


def _render(
    lines: Sequence[str], page_label: str, *, may_grow: bool = False
) -> tuple[list[str], list[list[_Row]]]:
    """Convert lines of Markdown. Return the converted lines and the rows of each table, header row first.

    Args:
        may_grow: more lines follow, so a last row that may be a table's header is left out.
    """
    output: list[str] = []
    tables: list[list[_Row]] = []
    is_code = _code_lines(lines)
    pages = ", " + page_label.format(r"\1")
    lines = [
        line if code else _SOURCE_PLACES.sub(lambda source: _PAGE.sub(pages, source[0]), line)
        for line, code in zip(lines, is_code, strict=True)
    ]
    at, in_list = 0, False
    while at < len(lines):
        line = lines[at]
        if is_code[at]:
            output.append(line)
        elif table := _table_at(lines, at):
            tables.append(table)
            output += [shown_row for row in table[1:] if (shown_row := _as_line(table[0], row))]
            at += len(table)  # Also skip the delimiter row, which `table` omits.
        elif not _ROW.match(line):
            is_item = _ITEM.match(line) is not None
            output += ["", _inline(line)] if is_item and in_list else [_inline(line)]
            in_list = bool(line.strip()) and (is_item or in_list)
        elif not may_grow or at + 1 < len(lines):
            output.append(_inline(line))
        at += 1
    return output, tables


def _code_lines(lines: Sequence[str]) -> list[bool]:
    """Return for each line whether it is part of a fenced code block, including the fences."""
    is_code: list[bool] = []
    fence = ""
    for line in lines:
        opening = None if fence else _OPENS_FENCE.fullmatch(line)
        closing = _CLOSES_FENCE.fullmatch(line) if fence else None
        is_code.append(bool(fence or opening))
        if opening:
            fence = opening[1] or opening[2]
        elif closing and closing[1].startswith(fence):
            fence = ""
    return is_code


def _table_at(lines: Sequence[str], start: int) -> list[_Row]:
    """Return the rows of the table that starts at line `start`, padded or cut to the header's width; empty if
    there is no table.
    """
    rows = list(takewhile(_ROW.match, lines[start:]))
    if len(rows) < 2 or not _DELIMITER.fullmatch(rows[1]):
        return []
    header = _cells(rows[0])
    if len(_cells(rows[1])) != len(header):
        return []
    return [header, *(_as_wide(_cells(row), len(header)) for row in rows[2:])]


def _with_short_sources(table: Sequence[_Row]) -> ShownTable:
    short = [tuple(_SOURCE.sub("", _BREAK.sub(" ", cell)) for cell in row) for row in table]
    return ShownTable(header=short[0], rows=tuple(short[1:]))


def cut(text: str, most_chars: int) -> str:
    """Truncate the text to at most `most_chars` characters, ending with an ellipsis if it was cut."""
    return text if len(text) <= most_chars else text[: most_chars - 1].rstrip() + "…"


def _unwrap_lone_items(text: str) -> str:
    lines = text.split("\n")
    for index in _lone_items(lines):
        item = lines[index].lstrip(" ")
        indent = lines[index][: len(lines[index]) - len(item)]
        sign, _, content = item.partition(" ")
        free = f"{sign[:-1]}\\{sign[-1]}" if sign[0].isdigit() else "•"
        lines[index] = f"{indent}{free} {content}"
    return "\n".join(lines)


def _lone_items(lines: list[str]) -> list[int]:
    """Return the line indexes of list items without siblings, if the item is a single paragraph with a source
    and without code.
    """
    indexes: list[int] = []
    items: list[int] = []
    is_plain, before = True, ""
    for index, (line, is_code) in enumerate(zip([*lines, ""], [*_code_lines(lines), False], strict=True)):
        after_blank = not before.strip()
        is_new = after_blank and line[:1] not in ("", " ") and not _ITEM.match(line) and not is_code
        if is_new or index == len(lines):
            if is_plain and len(items) == 1 and _CITED.search(_paragraph(lines, items[0])):
                indexes += items
            items, is_plain = [], True
        if _ITEM.match(line):
            items.append(index)
        elif is_code or (after_blank and line.startswith(" ")):
            is_plain = False
        before = line
    return indexes


def _paragraph(lines: list[str], first: int) -> str:
    return "\n".join(takewhile(str.strip, lines[first:]))


def _cells(line: str) -> tuple[str, ...]:
    inner = line.strip()
    inner = inner.removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return tuple(_inline(cell.strip()).replace("\\|", "|") for cell in _BORDER.split(inner))


def _as_wide(cells: tuple[str, ...], width: int) -> tuple[str, ...]:
    return (*cells[:width], *([""] * (width - len(cells))))


def _as_line(header: tuple[str, ...], row: tuple[str, ...]) -> str:
    """Format a table row as one line: `- **Hamburg** · Pressure: 10 bar (Source: manual.pdf, S. 3)[1]`. Empty
    cells are omitted.
    """
    first = _bold(row[0]) if row[0] else ""
    cells = [
        f"{name}: {cell}" if name else cell for name, cell in zip(header[1:], row[1:], strict=True) if cell
    ]
    parts = [part for part in (first, *cells) if part]
    return f"- {_BREAK.sub(', ', ' · '.join(parts))}\n" if parts else ""


def _bold(cell: str) -> str:
    """Make the first cell of a row bold, unless it contains Markdown that would conflict."""
    words, mark, source = cell.partition(" (Source: ")
    return f"**{words}**{mark}{source}" if words and "*" not in words and "`" not in words else cell


def _inline(text: str) -> str:
    """Replace pictures by their captions, and links to this app's API by their link texts."""

    def label(match: re.Match[str]) -> str:
        caption = match["caption"]
        if caption is None:
            return match["text"]
        return f"*{caption.strip()}*" if caption.strip() else caption

    return _OWN_ADDRESS.sub(label, text)
