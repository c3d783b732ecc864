"""An answer's Markdown as chat clients show it. Pure: finished lines in, what they become out.

Chat clients show no tables, and no picture or link of an address without a host. So outside fenced code:

- a picture becomes its caption in italics; the picture itself is shown under the message;
- a link to our own API becomes its text; the numbered source behind it leads there;
- a table, whose rows begin with "|", becomes a line for each row: `- **first cell** · Heading: cell`;
- the label of a page follows the reader's language: `(Source: manual.pdf, p. 3)[1]`;
- items of lists are parted by blank lines: without them, the Agents Playground shows no chips for the sources
  in a list. An item alone has none to be parted from: in the whole text it is a paragraph with its sign.

Everything else stays as it is: `ReaderText` has made a model's words safe before they came here.
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
_PAGE = re.compile(r"(\(Source: (?:[^()\n]|\([^()\n]{0,300}\)){1,600}), S\. (\d{1,6})(?=[,)])")
_CITED = re.compile(r"\[\d{1,3}\]")


def for_channel(text: str, page_label: str) -> tuple[str, tuple[ShownTable, ...]]:
    """Return a whole text as chat clients show it, and its tables.

    Cells of the tables, for channels that can draw them, keep only the number of a source.

    Args:
        page_label: format of a page number in the reader's language, such as `p. {}`.
    """
    shown, found = _rendered(text.split("\n"), page_label)
    tables = tuple(_with_short_sources(table) for table in found if len(table) > 1)
    return _with_lone_items_freed("\n".join(shown).strip("\n")), tables


def finished_lines(text: str, page_label: str) -> str:
    """Return what the finished lines of a growing text become. More text only adds to it."""
    lines = text.split("\n")[:-1]
    shown, _ = _rendered(lines, page_label, may_grow=True)
    return "".join(f"{line}\n" for line in shown)


_Row = tuple[str, ...]


def _rendered(
    lines: Sequence[str], page_label: str, *, may_grow: bool = False
) -> tuple[list[str], list[list[_Row]]]:
    """Return what lines become, and the tables among them as rows, the header first.

    Args:
        may_grow: whether lines follow: a last row that may be the header of a table is left out.
    """
    shown: list[str] = []
    tables: list[list[_Row]] = []
    is_code = _code_lines(lines)
    localised = r"\1, " + page_label.format(r"\2")
    lines = [line if code else _PAGE.sub(localised, line) for line, code in zip(lines, is_code, strict=True)]
    at, in_list = 0, False
    while at < len(lines):
        line = lines[at]
        if is_code[at]:
            shown.append(line)
        elif table := _table_at(lines, at):
            tables.append(table)
            shown += [shown_row for row in table[1:] if (shown_row := _as_line(table[0], row))]
            at += len(table)  # and the delimiter, below
        elif not _ROW.match(line):
            is_item = _ITEM.match(line) is not None
            shown += ["", _inline(line)] if is_item and in_list else [_inline(line)]
            in_list = bool(line.strip()) and (is_item or in_list)
        elif not may_grow or at + 1 < len(lines):
            shown.append(_inline(line))
        at += 1
    return shown, tables


def _code_lines(lines: Sequence[str]) -> list[bool]:
    """Return whether each line belongs to fenced code, its fences included."""
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
    """Return the rows of the table that begins at a line, each as wide as the header; empty without one."""
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
    """The text, with an ellipsis in place of what is too much."""
    return text if len(text) <= most_chars else text[: most_chars - 1].rstrip() + "…"


def _with_lone_items_freed(text: str) -> str:
    lines = text.split("\n")
    for index in _lone_items(lines):
        item = lines[index].lstrip(" ")
        indent = lines[index][: len(lines[index]) - len(item)]
        sign, _, said = item.partition(" ")
        free = f"{sign[:-1]}\\{sign[-1]}" if sign[0].isdigit() else "•"
        lines[index] = f"{indent}{free} {said}"
    return "\n".join(lines)


def _lone_items(lines: list[str]) -> list[int]:
    """Where an item with a source, of one paragraph, is all of its list. Lists with code are left alone."""
    found: list[int] = []
    items: list[int] = []
    is_plain, before = True, ""
    for index, (line, is_code) in enumerate(zip([*lines, ""], [*_code_lines(lines), False], strict=True)):
        after_blank = not before.strip()
        is_new = after_blank and line[:1] not in ("", " ") and not _ITEM.match(line) and not is_code
        if is_new or index == len(lines):
            if is_plain and len(items) == 1 and _CITED.search(_paragraph(lines, items[0])):
                found += items
            items, is_plain = [], True
        if _ITEM.match(line):
            items.append(index)
        elif is_code or (after_blank and line.startswith(" ")):
            is_plain = False
        before = line
    return found


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
    """`- **Hamburg** · Pressure: 10 bar (Source: manual.pdf, S. 3)[1]`; empty cells are left out."""
    first = _bold(row[0]) if row[0] else ""
    named = [
        f"{name}: {cell}" if name else cell for name, cell in zip(header[1:], row[1:], strict=True) if cell
    ]
    parts = [part for part in (first, *named) if part]
    return f"- {_BREAK.sub(', ', ' · '.join(parts))}\n" if parts else ""


def _bold(cell: str) -> str:
    """The first cell stands out, unless signs in it would not fit together with that."""
    words, mark, source = cell.partition(" (Source: ")
    return f"**{words}**{mark}{source}" if words and "*" not in words and "`" not in words else cell


def _inline(text: str) -> str:
    """Replace pictures by their captions, and links to our API by their texts."""

    def label(found: re.Match[str]) -> str:
        caption = found["caption"]
        if caption is None:
            return found["text"]
        return f"*{caption.strip()}*" if caption.strip() else caption

    return _OWN_ADDRESS.sub(label, text)
