"""Tables that stand side by side in a sheet, with empty columns between them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from shared.tables.cell_values import is_number

_MAX_ROWS = 2000  # longer blocks of rows are one table, so that sheets can be streamed
_MIN_COLUMNS, _MIN_ROWS = 2, 2
_WIDE_GAP = 2

Row = Sequence[str]


class Region(NamedTuple):
    """Consecutive rows of a sheet, or their cells in some columns.

    Attributes:
        first_line: line of the first row in the sheet, from 1.
        rows: must be consumed before the next region is requested.
    """

    first_line: int
    rows: Iterator[Row]


class _Placed(NamedTuple):
    region: int
    first_line: int
    row: Row


def regions(rows: Iterable[Row]) -> Iterator[Region]:
    """Divide the rows of a sheet so that tables side by side are in different regions. All other rows stay
    together, including blank ones.
    """
    for (_, first_line), group in groupby(_placed(rows), key=lambda placed: placed[:2]):
        yield Region(first_line, (placed.row for placed in group))


def _placed(rows: Iterable[Row]) -> Iterator[_Placed]:
    """Yield each row, or each part of it, with the number and first line of its region."""
    region, first_line = 0, 1
    numbered = enumerate(rows, start=1)
    for line, row in numbered:
        block = [row]
        is_open = _is_filled(row)
        while is_open and len(block) < _MAX_ROWS and (following := next(numbered, None)):
            block.append(following[1])
            is_open = _is_filled(following[1])
        is_long = is_open and len(block) == _MAX_ROWS
        parts = [] if is_long else _parts([row for row in block if _is_filled(row)])
        for part in parts:
            region += 1
            yield from (_Placed(region, line, row[part]) for row in block)
        if parts:
            region, first_line = region + 1, line + len(block)
            continue
        yield from (_Placed(region, first_line, row) for row in block)
        while is_open and (following := next(numbered, None)):
            yield _Placed(region, first_line, following[1])
            is_open = _is_filled(following[1])


def _is_filled(row: Row) -> bool:
    return any(map(str.strip, row))


def _parts(block: Sequence[Row]) -> list[slice]:
    """Return the columns of each table in a block of rows without blank ones, or nothing if it is a single
    table.

    Empty columns may also divide one table into groups. So each part must have a first column of names, and
    after a single empty column these names must differ from each other and have no gaps.
    """
    width = max(map(len, block), default=0)
    used = [any(column < len(row) and row[column].strip() for row in block) for column in range(width)]
    parts = [
        slice(columns[0], columns[-1] + 1)
        for is_used, group in groupby(range(width), key=used.__getitem__)
        if is_used and (columns := list(group))
    ]
    if len(parts) < 2 or not all(_is_table(block, part) for part in parts):
        return []
    is_wide = all(right.start - left.stop >= _WIDE_GAP for left, right in pairwise(parts))
    return parts if is_wide or all(_has_keys(block, part) for part in parts) else []


def _is_table(block: Sequence[Row], part: slice) -> bool:
    if part.stop - part.start < _MIN_COLUMNS:
        return False
    filled = [row for row in block if _is_filled(row[part])]
    names = [
        row[part.start] for row in filled[1:] if row[part.start : part.start + 1] and row[part.start].strip()
    ]
    return len(filled) >= _MIN_ROWS and bool(names) and not any(map(is_number, names))


def _has_keys(block: Sequence[Row], part: slice) -> bool:
    names = [row[part][0].strip() for row in block if _is_filled(row[part])]
    return all(names) and len({*names}) == len(names)
