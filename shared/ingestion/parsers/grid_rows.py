"""The texts of a ruled grid as rows of a table, or the finding that it is none. Pure.

Boxes round a sentence, diagrams, charts and page layouts are drawn with lines, too. In doubt it is no table:
its lines of text say the same, only less clearly.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby

from shared.ingestion.parsers.ruled_grid import Box, Grid

_MIN_FILLED = 0.6  # of the places: a chart's grid is mostly empty
_MIN_HEADED = 0.5  # of the columns: otherwise the header stands above the lines, and is lost to the table
_MIN_TEXTS = 4
_MIN_BOXES = 0.4  # per place: fewer are boxes of a diagram, not cells
_MAX_CELL_CHARS = 600  # in a cell that holds most of the text: a page's layout
_MAX_BOXES = 5000
_MAX_HEADER_CHARS = 120  # of a cell: longer is a paragraph in a frame
_MIN_FULL_ROWS = 0.5  # of the rows below the header fill two cells or more
_MIN_UNRULED_ROWS = 3
_SIGNS_BEFORE, _SIGNS_AFTER = frozenset("$€£"), frozenset(("%", ")", ")%"))
_FIGURE = re.compile(r"[-+−–—(]?\s*[$€£]?\s*\d[\d.,]*\s*[)%]*\Z")
_LEADING_FIGURE = re.compile(r"[-+−–—(]?\s*[$€£]?\s*\d|(?:nil|n/?a|[-–—])\b|[-–—]\Z", re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)\d\d\Z")
_CUT_SENTENCE = re.compile(r"[,.;](?:\s|\Z)")


def could_be_table(grid: Grid, header: Sequence[str]) -> bool:
    """By its shape and the texts of its first row: whether the others are worth reading."""
    places = len(grid.cells) * len(grid.cells[0])
    boxes = {box for row in grid.cells for box in row}
    return (
        len(boxes) <= _MAX_BOXES
        and len(boxes) >= _MIN_BOXES * places
        and sum(map(bool, header)) >= _MIN_HEADED * len(header)
        and all(len(text) <= _MAX_HEADER_CHARS and not is_figure(text) for text in header)
    )


def table_rows(grid: Grid, lines: Mapping[Box, Sequence[str]]) -> tuple[tuple[str, ...], ...] | None:
    """The rows from the top, the first one the header; None when the grid is no table of words.

    `lines` are those of each cell. Where all cells of a row hold the same number of them, and one holds
    figures, each is a row: nobody drew the lines between.

    A cell that spans rows stands in each of them; one that spans columns in each of the header's, but once
    in other rows. Columns of currency and per cent signs are joined to their figures.
    """
    texts = {box: " ".join(found) for box, found in lines.items()}
    if not _is_table(grid, texts):
        return None
    header = [texts[box] for box in grid.cells[0]]
    body = [row for boxes in grid.cells[1:] for row in _body_rows(boxes, lines)]
    rows = [header, *(row for row in body if any(row))]
    _join_signs(rows)
    used = [column for column in range(len(header)) if _is_used(rows, column)]
    found = tuple(tuple(row[column] for column in used) for row in rows)
    full = sum(sum(map(bool, row)) > 1 for row in found[1:])
    return found if len(used) > 1 and full > _MIN_FULL_ROWS * (len(found) - 1) else None


def is_figure(text: str) -> bool:
    """Whether a cell is a number, with its sign, currency or per cent; a year is a name."""
    return _FIGURE.match(text) is not None and _YEAR.match(text) is None


def _is_table(grid: Grid, texts: Mapping[Box, str]) -> bool:
    places = [box for row in grid.cells for box in row]
    filled = [text for text in texts.values() if text]
    longest = max(filled, key=len, default="")
    return (
        len(filled) >= _MIN_TEXTS
        and sum(bool(texts[box]) for box in places) >= _MIN_FILLED * len(places)
        and not (len(longest) > _MAX_CELL_CHARS and 2 * len(longest) > sum(map(len, filled)))
        and not any(_CUT_SENTENCE.match(text) for text in filled)
    )


def _body_rows(boxes: Sequence[Box], lines: Mapping[Box, Sequence[str]]) -> list[list[str]]:
    cells = [lines[box] for box in dict.fromkeys(boxes) if lines[box]]
    counts = {len(cell) for cell in cells}
    height = counts.pop() if len(counts) == 1 else 1
    has_figures = any(all(_LEADING_FIGURE.match(line) for line in cell) for cell in cells)
    if height >= _MIN_UNRULED_ROWS and has_figures:
        texts = [{box: lines[box][row] if lines[box] else "" for box in boxes} for row in range(height)]
    else:
        texts = [{box: " ".join(lines[box]) for box in boxes}]
    return [_spread(boxes, row) for row in texts]


def _spread(boxes: Sequence[Box], texts: Mapping[Box, str]) -> list[str]:
    """A row's texts, each once: figures at the right end of the places that they cover, words at the left."""
    row: list[str] = []
    for box, places in groupby(boxes):
        width = len(list(places))
        blanks = [""] * (width - 1)
        row += [*blanks, texts[box]] if is_figure(texts[box]) else [texts[box], *blanks]
    return row


def _join_signs(rows: Sequence[list[str]]) -> None:
    """Move each column of signs to its figures, in place."""
    for column in range(len(rows[0])):
        signs = {row[column] for row in rows[1:]} - {""}
        if signs and signs <= _SIGNS_BEFORE and column + 1 < len(rows[0]):
            for row in rows[1:]:
                row[column + 1] = f"{row[column]} {row[column + 1]}".strip()
                row[column] = ""
        elif signs and signs <= _SIGNS_AFTER and column:
            for row in rows[1:]:
                row[column - 1] += row[column]
                row[column] = ""


def _is_used(rows: Sequence[Sequence[str]], column: int) -> bool:
    """Whether it has a text of its own: a column of a spanning header only may be room beside a figure."""
    if any(row[column] for row in rows[1:]):
        return True
    header = rows[0]
    neighbours = (header[max(column - 1, 0)], header[min(column + 1, len(header) - 1)])
    return bool(header[column]) and header[column] not in neighbours
