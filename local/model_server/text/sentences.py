"""Cuts text into sentences and table rows without changing a letter of them. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BULLET = re.compile(r"^\s*(?:[-*•‣▪◦·–]|\(?[0-9]{1,2}[.)]|\(?[a-z]\))\s+")
_BREAK = re.compile(r"[.!?…][\"'”’»)\]]*\s+(?=[\"'“„«(\[]?[A-ZÄÖÜÀ-Þ0-9•])|\s+(?=[•‣▪])")
# No sentence ends after these, nor after a single letter ("J. Smith", "z. B.") or a number ("3. Mai").
_ABBREVIATIONS = frozenset(
    """approx art bzgl bzw ca cf co corp dr e.g eg eq etc fig figs ggf hr i.e ie inc incl inkl jr kap
    lt ltd max min mio mr mrs ms no nos nr pp prof ref rev s.o sec sr st str tab u.a u.s usw
    vgl vol vs z.b""".split()
)
_LAST_TOKEN = re.compile(r"([^\s(\"“„]+)[.!?…][\"'”’»)\]]*\s*$")
_SEPARATOR_ROW = re.compile(r"^\s*\|?[\s:|-]*-[\s:|-]*$")


@dataclass(frozen=True)
class TableRow:
    """One row of a Markdown table. `line` is verbatim, `reading` is the row as a sentence would say it."""

    line: str
    reading: str
    cells: tuple[str, ...]
    header: tuple[str, ...]


def split_sentences(text: str) -> list[str]:
    """Sentences in order, each a verbatim piece of the text without white space at its ends.

    A line break ends a sentence only where a paragraph, a list item or a heading does: PDF lines run on.
    """
    return [sentence for part in _paragraphs(text) for sentence in _split_paragraph(part)]


def _paragraphs(text: str) -> Iterator[str]:
    start = 0
    for match in re.finditer(r"\n+", text):
        before = text[start : match.start()]
        following = text[match.end() : match.end() + 40]
        if len(match.group()) > 1 or _line_ends_here(before.rsplit("\n", 1)[-1], following):
            yield before
            start = match.end()
    yield text[start:]


def _line_ends_here(line: str, following: str) -> bool:
    if line.startswith("#") or following.startswith(("#", "|")) or _BULLET.match(following):
        return True
    return line.rstrip().endswith((".", "!", "?", ":"))


def _split_paragraph(paragraph: str) -> Iterator[str]:
    start = 0
    for match in _BREAK.finditer(paragraph):
        if _is_abbreviation(paragraph[start : match.end()]):
            continue
        if sentence := paragraph[start : match.end()].strip():
            yield sentence
        start = match.end()
    if rest := paragraph[start:].strip():
        yield rest


def _is_abbreviation(piece: str) -> bool:
    found = _LAST_TOKEN.search(piece)
    if not found or not piece.rstrip().endswith("."):
        return False
    token = found.group(1).lower()
    is_ordinal = token.isdigit() and len(token) <= 2
    return token in _ABBREVIATIONS or len(token) == 1 or is_ordinal


def table_rows(text: str) -> list[TableRow]:
    """Rows of the Markdown tables in a text, header rows left out; a header is a line above |---|."""
    rows: list[TableRow] = []
    header: tuple[str, ...] = ()
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not is_table_line(line):
            header = ()
        elif number + 1 < len(lines) and _SEPARATOR_ROW.match(lines[number + 1]):
            header = _cells(line)
        elif not _SEPARATOR_ROW.match(line):
            cells = _cells(line)
            rows.append(TableRow(line.strip(), _read_row(header, cells), cells, header))
    return rows


def is_table_line(line: str) -> bool:
    """Whether a line belongs to a Markdown table."""
    return line.lstrip().startswith("|") and line.count("|") > 1


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip().strip("|").split("|"))


def _read_row(header: tuple[str, ...], cells: tuple[str, ...]) -> str:
    """("Model", "Price"), ("X200", "1,200 EUR") -> "Model X200: Price 1,200 EUR"."""
    titles = header + ("",) * (len(cells) - len(header))
    parts = [f"{title} {cell}".strip() for title, cell in zip(titles, cells, strict=False) if cell]
    if len(parts) < 2:
        return "".join(parts)
    return f"{parts[0]}: {', '.join(parts[1:])}"
