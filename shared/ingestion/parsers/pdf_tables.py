"""Tables with ruling lines on a PDF page. Others stay lines of text: nothing local reads them well.

A table replaces the lines of text within it, and only if it holds their words: none is lost or doubled.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from shared.ingestion.parsers.grid_rows import could_be_table, table_rows
from shared.ingestion.parsers.pdf_lines import HYPHEN_MARK, Line, clean_text
from shared.ingestion.parsers.pdf_paragraphs import is_row
from shared.ingestion.parsers.pdf_rules import page_rules
from shared.ingestion.parsers.ruled_grid import Box, Grid, find_grids

_MIN_WORDS_KEPT = 0.97  # of the lines that the table replaces; a word cut by a line counts as lost
_INSET = 1.0  # points: a letter that touches the line belongs to one side of it only
_MAX_WORDS_ADDED = 1.03
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Table:
    """A table where it stands.

    Attributes:
        rows: texts from the top, the header first.
        word_count: of its cells, each counted once.
    """

    box: Box
    rows: tuple[tuple[str, ...], ...]
    word_count: int


def ruled_tables(page: Any) -> list[Table]:
    """The tables of a pypdfium2 page that are drawn with lines.

    Raises:
        pypdfium2.PdfiumError: the page's text cannot be read.
    """
    grids = find_grids(*page_rules(page))
    if not grids:
        return []
    text_page = page.get_textpage()
    try:
        tables = [_table(grid, text_page) for grid in grids]
    finally:
        text_page.close()
    return [table for table in tables if table is not None]


def place_tables(lines: Sequence[Line], tables: Sequence[Table]) -> Iterator[list[Line] | Table]:
    """Runs of a page's lines, and each table in place of the first of the lines that it holds."""
    owners = _owners(lines, tables)
    seen: list[Table] = []
    run: list[Line] = []
    for line, owner in zip(lines, owners, strict=True):
        if owner is None:
            run.append(line)
        elif owner not in seen:
            if run:
                yield run
            run = []
            seen.append(owner)
            yield owner
    if run:
        yield run


def _owners(lines: Sequence[Line], tables: Sequence[Table]) -> list[Table | None]:
    """The table that holds each line, if one does."""
    owners: list[Table | None] = [None] * len(lines)
    for table in tables:
        inside = [
            position
            for position, line in enumerate(lines)
            if owners[position] is None and table.box.holds(*_middle(line))
        ]
        if _holds_words(table, [lines[position] for position in inside]):
            for position in inside:
                owners[position] = table
    return owners


def _table(grid: Grid, text_page: Any) -> Table | None:
    """The grid with its texts; None when it is no table of words."""
    lines = {box: _cell_lines(text_page, box) for box in grid.cells[0]}
    if not could_be_table(grid, [" ".join(lines[box]) for box in grid.cells[0]]):
        return None
    lines |= {box: _cell_lines(text_page, box) for row in grid.cells[1:] for box in row if box not in lines}
    rows = table_rows(grid, lines)
    if rows is None or any(sum(map(is_row, found)) > 1 for found in lines.values()):
        return None  # or rows without lines between them in one cell: as lines of text they stay apart
    return Table(grid.box, rows, sum(_words(found).total() for found in lines.values()))


def _cell_lines(text_page: Any, box: Box) -> list[str]:
    raw: str = text_page.get_text_bounded(
        box.left + _INSET, box.bottom + _INSET, box.right - _INSET, box.top - _INSET
    )
    return [text for line in raw.splitlines() if (text := clean_text(line))]


def _middle(line: Line) -> tuple[float, float]:
    return (line.left + line.right) / 2, (line.top + line.bottom) / 2


def _holds_words(table: Table, lines: Sequence[Line]) -> bool:
    """Whether the table says what the lines say, and no more: a word cut by a border is in two cells."""
    wanted = _words(line.text for line in lines)
    held = _words(cell for row in table.rows for cell in row)
    is_whole = (wanted & held).total() >= _MIN_WORDS_KEPT * wanted.total()
    return bool(wanted) and is_whole and table.word_count <= _MAX_WORDS_ADDED * wanted.total() + 1


def _words(texts: Iterable[str]) -> Counter[str]:
    return Counter(word for text in texts for word in _WORD.findall(text.replace(HYPHEN_MARK, "")))
