"""Column headers of one or several rows. Pure.

A header cell may be merged across the columns that it groups: "2024" over "Q1" and "Q2". In the rows of a
spreadsheet, the text of a merged cell is followed by empty cells. In the rows of other formats, it is
repeated in every position that the cell covers. A row of units below the names also belongs to the header.
"""

import re
from collections.abc import Sequence
from itertools import groupby, pairwise, zip_longest

from shared.tables.cell_values import is_number
from shared.tables.units import is_unit, split_unit

MAX_HEADER_ROWS = 4
_MIN_TITLED_COLUMNS = 3
_MAX_NAME_CHARS = 100
_DIGITS, _LETTERS = re.compile(r"\d+"), re.compile(r"[^\W\d_]+")


def continues_header(header: Sequence[str], row: Sequence[str], row_count: int) -> bool:
    """Return whether a row of a spreadsheet is a further line of the header above it: with names below the
    empty cells of the header, or with units.

    Args:
        header: labels of the rows above, joined.
        row_count: number of these rows.
    """
    if row_count == MAX_HEADER_ROWS:
        return False
    if _is_unit_row(row):
        return True
    # In a header of three lines, the columns that aren't grouped have one name.
    is_open = row_count == 1 or not (header[0].strip() and row[0].strip())
    pairs = list(zip_longest(header, row, fillvalue=""))
    gaps = [below for above, below in pairs if not above.strip()]
    inner = any(above.strip() for above, _ in pairs[1:]) and any(below.strip() for below in gaps)
    return is_open and inner and not has_amounts(row)


def has_amounts(row: Sequence[str]) -> bool:
    """Return whether a row contains numbers other than years."""
    return any(map(_is_amount, row))


def join_header(header: Sequence[str], below: Sequence[str]) -> list[str]:
    """Return one label per column for a spreadsheet's header of two lines. A merged cell's text is repeated
    for each column below it, but not in the label of a column that is merged over both lines.
    """
    labels, above = [], ""
    for upper, lower in zip_longest(header, below, fillvalue=""):
        above = upper.strip() or (above if lower.strip() else "")
        is_same = f" {above}".endswith(f" {lower.strip()}")
        labels.append(above if is_same else " ".join(filter(None, (above, lower.strip()))))
    return labels


def merged_header(rows: Sequence[Sequence[str]]) -> tuple[list[str], int]:
    """Return one label per column, and the number of rows of the header.

    Args:
        rows: first rows of a table, in which merged cells repeat their text. More than `MAX_HEADER_ROWS`
            make no difference.
    """
    count = 1
    for above, below, after in zip(rows, rows[1:MAX_HEADER_ROWS], rows[2:], strict=False):
        if not _divides(above, below, after):
            break
        count += 1
    columns = zip_longest(*rows[:count], fillvalue="")
    return [" ".join(text for text, _ in groupby(filter(str.strip, column))) for column in columns], count


def header_unit(labels: Sequence[str]) -> str:
    """Return the unit in the first cell of a header, which has no other units. Return "" if there is none."""
    first, *others = labels
    return split_unit(first)[1] if is_unit(first) and not any(map(is_unit, others)) else ""


def is_table_title(row: Sequence[str], below: Sequence[str]) -> bool:
    """Return whether a row, with `below` the next one, consists of one cell merged across all columns that
    contains the title or unit of the table.

    Such a cell above two columns may be their header.
    """
    return _is_merged(row) and not _is_merged(below) and (len(row) >= _MIN_TITLED_COLUMNS or is_unit(row[0]))


def _is_merged(row: Sequence[str]) -> bool:
    return len(row) > 1 and bool(row[0].strip()) and all(one == other for one, other in pairwise(row))


def _divides(above: Sequence[str], below: Sequence[str], after: Sequence[str]) -> bool:
    """Return whether a row is a further line of the header above it, because it names the columns below
    merged cells.

    A column that isn't grouped has no other name below. It may have one if another cell is merged across
    both rows, or empty in the row above, because then the rows can't be a name and a value.

    Args:
        after: row below `below`.
    """
    pairs = list(zip_longest(above, below, fillvalue=""))
    if _is_unit_row(["" if upper == lower else lower for upper, lower in pairs]):
        return True
    groups = [[upper, *(lower for _, lower in group)] for upper, group in _grouped(pairs)]
    is_divided = any(upper.strip() and len({*filter(str.strip, names)}) > 1 for upper, *names in groups)
    are_names = all(_may_be_name(*cells) for cells in zip_longest(below, after, fillvalue=""))
    if not is_divided or len(groups) == 1 or not are_names:
        return False
    alone = [(upper, names[0]) for upper, *names in groups if len(names) == 1 and names[0].strip()]
    return not alone or any(upper == lower or not upper.strip() for upper, lower in alone)


def _grouped(pairs: Sequence[tuple[str, str]]) -> Sequence[tuple[str, Sequence[tuple[str, str]]]]:
    return [(upper, list(group)) for upper, group in groupby(pairs, key=lambda pair: pair[0])]


def _is_unit_row(row: Sequence[str]) -> bool:
    filled = [cell for cell in row if cell.strip()]
    return bool(filled) and not row[0].strip() and all(map(is_unit, filled))


def _may_be_name(cell: str, below: str) -> bool:
    """Return whether a cell may be the name of a column: neither a paragraph nor a value, such as a number,
    or "12 kg" above another text of the same form.
    """
    if len(cell) > _MAX_NAME_CHARS or _is_amount(cell):
        return False
    return not cell[:1].isdigit() or _is_year(cell) or _form(cell) != _form(below)


def _is_amount(cell: str) -> bool:
    return is_number(cell) and not _is_year(cell)


def _is_year(cell: str) -> bool:
    return len(cell.strip()) == 4


def _form(text: str) -> str:
    return _LETTERS.sub("a", _DIGITS.sub("0", " ".join(text.split())))
