"""An answer's Markdown as chat clients show it. Pure, incremental; the same whatever the cuts.

Chat clients show no tables, and no picture or link of an address without a host. So outside fenced code:

- a picture becomes its caption in italics; the picture itself is shown under the message;
- a link to our own API becomes its text; the numbered source behind it leads there;
- a table, whose rows begin with "|", becomes a line for each row: `- **first cell** · Heading: cell`;
- items of lists are parted by blank lines: without them, the Agents Playground shows no chips for the sources
  in a list. An item alone has none to be parted from: in the whole text it is a paragraph with its sign.

Everything else stays as it is: `ReaderText` has made a model's words safe before they came here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile

from shared.teams.models import ShownTable

_MAX_HELD = 700  # characters: a picture has 200 for its caption and some 250 for its address
_OPENS_FENCE = re.compile(r" {0,3}(?:(`{3,})[^`]*|(~{3,}).*)")
_CLOSES_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*")
_UNDECIDED = re.compile(r" {0,3}(?:\|.*|`{0,2}|~{0,2}|(?:`{3,}|~{3,}).*)|[ ]*(?:[-*+]|\d{1,3}[.)]?)?")
_ITEM = re.compile(r" *(?:[-*+]|\d{1,3}[.)]) ")
_PICTURE = re.compile(r"!\[([^\[\]\n]*)\]\(/api/documents/[^()\s]*\)")
_OWN_LINK = re.compile(r"\[([^\[\]\n]+)\]\(/api/documents/[^()\s]*\)")
_MAY_BECOME_ONE = re.compile(r"!?(?:\[[^\[\]\n]*(?:\](?:\([^()\s]*)?)?)?")
_SIGN = re.compile(r"!?\[|!\Z")
_ROW = re.compile(r" {0,3}\|")
_DELIMITER = re.compile(r" {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
_BORDER = re.compile(r"(?<!\\)\|")
_BREAK = re.compile(r"(?:(?<!\s)\s+)?<br ?/?>\s*", re.IGNORECASE)
_SOURCE = re.compile(r" ?\(Source: (?:[^()\n]|\([^()\n]*\))*\)(?=\[\d+\])")
_CITED = re.compile(r"\[\d{1,3}\]")


@dataclass
class ChannelText:
    """Feed it the tokens of a run.

    Attributes:
        tables: those that were passed, for channels that can draw them. Their cells keep only the number of a
            source.
    """

    tables: list[ShownTable] = field(default_factory=list)
    _held: str = ""
    _in_line: bool = False
    _in_list: bool = False  # the line before belongs to an item of a list
    _fence: str = ""
    _header: str | None = None  # a line that heads a table if the next one is a table's second
    _table: list[tuple[str, ...]] = field(default_factory=list)

    def feed(self, text: str) -> str:
        """What can be shown for certain."""
        self._held += text
        return self._read(at_end=False)

    def finish(self) -> str:
        """What is left when the text has ended."""
        return self._read(at_end=True) + self._close_table()

    def _read(self, *, at_end: bool) -> str:
        parts: list[str] = []
        while self._held:
            shown = self._rest_of_line(at_end=at_end) if self._in_line else self._line(at_end=at_end)
            if shown is None:
                break
            parts.append(shown)
        return "".join(parts)

    def _line(self, *, at_end: bool) -> str | None:
        """What is shown for a line from its start; None when it must be seen whole before."""
        line, line_break, rest = self._held.partition("\n")
        is_whole = bool(line_break) or at_end
        if not is_whole and (self._fence or _UNDECIDED.fullmatch(line)):
            return None
        opening = None if self._fence else _OPENS_FENCE.fullmatch(line)
        if self._fence or opening:
            self._held = rest
            self._fence = opening[1] or opening[2] if opening else self._fence_after(line)
            return self._close_table() + line + line_break
        if is_whole and _ROW.match(line):
            self._held = rest
            return self._row(line)
        self._in_line = True
        return self._close_table() + self._parted(line)

    def _parted(self, line: str) -> str:
        """The blank line before an item that follows another one."""
        is_item = _ITEM.match(line) is not None
        before, self._in_list = self._in_list, bool(line.strip()) and (is_item or self._in_list)
        return "\n" if is_item and before else ""

    def _fence_after(self, line: str) -> str:
        """The fence that the text is in after a line of code."""
        closing = _CLOSES_FENCE.fullmatch(line)
        return "" if closing and closing[1].startswith(self._fence) else self._fence

    def _rest_of_line(self, *, at_end: bool) -> str | None:
        """What is shown up to the next sign of a link, or to the end of the line; None = more must come."""
        line, line_break, rest = self._held.partition("\n")
        sign = _SIGN.search(line)
        if sign is None:
            self._held, self._in_line = rest, not line_break
            return line + line_break
        start = sign.start()
        shown, window = line[:start], line[start : start + _MAX_HELD]
        found = _PICTURE.match(window) or _OWN_LINK.match(window)
        if found:
            label = f"*{found[1].strip()}*" if window.startswith("!") and found[1].strip() else found[1]
            self._held = self._held[start + found.end() :]
            return shown + label
        may_grow = not at_end and not line_break and len(window) < _MAX_HELD
        if may_grow and _MAY_BECOME_ONE.fullmatch(window):
            self._held = self._held[start:]
            return shown or None
        self._held = self._held[start + 1 :]
        return shown + window[0]

    def _row(self, line: str) -> str:
        """What is shown for a line that begins with a border."""
        if self._table:
            row = _as_wide(_cells(line), len(self._table[0]))
            self._table.append(row)
            return _as_line(self._table[0], row)
        header, self._header = self._header, None
        if header is not None and _DELIMITER.fullmatch(line) and len(_cells(header)) == len(_cells(line)):
            self._table.append(_cells(header))
            return ""
        self._header = line
        return _plain_row(header)

    def _close_table(self) -> str:
        """Remember the table that has ended; what is shown for a line that turned out to head none."""
        header, self._header = self._header, None
        rows, self._table = self._table, []
        if len(rows) > 1:
            short = [tuple(_SOURCE.sub("", _BREAK.sub(" ", cell)) for cell in row) for row in rows]
            self.tables.append(ShownTable(header=short[0], rows=tuple(short[1:])))
        return _plain_row(header)


def for_channel(text: str) -> tuple[str, tuple[ShownTable, ...]]:
    """A whole text, and its tables."""
    reader = ChannelText()
    shown = reader.feed(text) + reader.finish()
    return _with_lone_items_freed(shown.strip("\n")), tuple(reader.tables)


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
    for index, (line, is_code) in enumerate((*_with_code(lines), ("", False))):
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


def _with_code(lines: list[str]) -> Iterator[tuple[str, bool]]:
    """The lines, and whether each belongs to fenced code."""
    reader = ChannelText()
    for line in lines:
        was_code = bool(reader._fence)
        reader.feed(f"{line}\n")
        yield line, was_code or bool(reader._fence)


def _paragraph(lines: list[str], first: int) -> str:
    return "\n".join(takewhile(str.strip, lines[first:]))


def _plain_row(line: str | None) -> str:
    return "" if line is None else _inline(line) + "\n"


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
    return f"- {_BREAK.sub(', ', ' · '.join(parts))}\n\n" if parts else ""


def _bold(cell: str) -> str:
    """The first cell stands out, unless signs in it would not fit together with that."""
    words, mark, source = cell.partition(" (Source: ")
    return f"**{words}**{mark}{source}" if words and "*" not in words and "`" not in words else cell


def _inline(text: str) -> str:
    text = _PICTURE.sub(lambda found: f"*{found[1].strip()}*" if found[1].strip() else "", text)
    return _OWN_LINK.sub(r"\1", text)
