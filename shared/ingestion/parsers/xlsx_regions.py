"""Tables that stand side by side in a sheet, with empty columns between them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import dropwhile, groupby, pairwise
from typing import NamedTuple

from shared.tables.cell_values import EMPTY, is_number

_MAX_ROWS = 2000  # longer blocks of rows are one table, so that sheets can be streamed
_MIN_COLUMNS, _MIN_ROWS = 2, 2
_WIDE_GAP = 2
_MAX_PARTS = 10  # more would be groups of columns, and take long to check

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


class _Block(NamedTuple):
    """Rows up to a blank one, or a piece of them if there are too many (`is_long`)."""

    rows: list[Row]
    is_long: bool


def regions(rows: Iterable[Row]) -> Iterator[Region]:
    """Divide the rows of a sheet so that tables side by side are in different regions. All other rows stay
    together, including blank ones.
    """
    for (_, first_line), group in groupby(_placed(rows), key=lambda placed: placed[:2]):
        yield Region(first_line, (placed.row for placed in group))


def _placed(rows: Iterable[Row]) -> Iterator[_Placed]:
    """Yield each row, or each part of it, with the number and first line of its region."""
    region, first_line, line = 0, 1, 1
    blocks = _blocks(rows)
    block = next(blocks, None)
    while block is not None:
        together = block.rows
        parts = [] if block.is_long else _parts([row for row in together if _is_filled(row)])
        block = next(blocks, None)
        while parts and block is not None and len(together) < _MAX_ROWS and _continues(block, parts):
            together += block.rows
            block = next(blocks, None)
        for part in parts:
            region += 1
            yield from (_Placed(region, line, row[part]) for row in together)
        line += len(together)
        if parts:
            region, first_line = region + 1, line
        else:
            yield from (_Placed(region, first_line, row) for row in together)


def _blocks(rows: Iterable[Row]) -> Iterator[_Block]:
    block: list[Row] = []
    is_long = False
    for row in rows:
        block.append(row)
        is_open, is_full = _is_filled(row), len(block) == _MAX_ROWS
        is_long = is_long or (is_open and is_full)
        if is_full or not is_open:
            yield _Block(block, is_long)
            block, is_long = [], is_long and is_open
    if block:
        yield _Block(block, is_long)


def _continues(block: _Block, parts: Sequence[slice]) -> bool:
    """Return whether a block continues the tables above it: it has cells only in their columns,
    and its first row contains numbers in each table that continues.
    """
    cells = [[cell for cell in block.rows[0][part] if cell.strip()] for part in parts]
    fits = all(not row or (len(row) > 1 and any(map(is_number, row))) for row in cells)
    columns = {column for part in parts for column in range(part.start, part.stop)}
    return not block.is_long and fits and _used(block.rows) <= columns


def _is_filled(row: Row) -> bool:
    return any(map(str.strip, row))


def _used(block: Iterable[Row]) -> set[int]:
    return {column for row in block for column, cell in enumerate(row) if cell.strip()}


def _parts(block: Sequence[Row]) -> list[slice]:
    """Return the columns of each table in a block of rows without blank ones, or nothing if it is a single
    table.

    Empty columns may also divide one table into groups, whose relation would be lost. So each part must have
    a first column of names, and either numbers only in the other columns or a header that occurs in another
    part. After a single empty column, the names must differ from each other and have no gaps.
    """
    used = _used(block)
    starts = sorted(column for column in used if column - 1 not in used)
    stops = sorted(column + 1 for column in used if column + 1 not in used)
    parts = [slice(start, stop) for start, stop in zip(starts, stops, strict=True)]
    is_count = 2 <= len(parts) <= _MAX_PARTS
    if not is_count or not all(_is_table(block, part) for part in parts):
        return []
    if not _shares_header(block, parts) and not all(_has_numbers_only(block, part) for part in parts):
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


def _shares_header(block: Sequence[Row], parts: Sequence[slice]) -> bool:
    labels = [{cell.strip().casefold() for cell in block[0][part] if cell.strip()} for part in parts]
    return len(set().union(*labels)) < sum(map(len, labels))


def _has_numbers_only(block: Sequence[Row], part: slice) -> bool:
    """Return whether a part consists of names and numbers from its first row with a number."""
    rows = ([cell.strip() for cell in row[part][1:]] for row in block)
    rest = [*dropwhile(lambda cells: not any(map(is_number, cells)), rows)]
    return bool(rest) and all(is_number(cell) or cell.casefold() in EMPTY for cells in rest for cell in cells)
