"""The cells of a sheet as titles and tables. Pure; reads rows as they come and holds few of them.

A blank row ends a table. Rows above a table with one filled cell are its title. A table that goes on after
a blank row with figures, not with names of columns, goes on under its header.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby

from shared.ingestion.parsers.markdown_table import table_elements
from shared.models.blocks import Element

_FIGURE = re.compile(r"[-+−(]?[$€£]?\d[\d.,:%\s/-]*\)?\Z")
_LINES_PER_PARAGRAPH = 50


def sheet_elements(rows: Iterable[Sequence[str]], page_number: int | None) -> Iterator[Element]:
    """The elements of one sheet. A row is its cells from the first column on, "" for blank ones."""
    header: Sequence[str] = ()
    for is_filled, filled_rows in groupby(rows, key=_is_filled):
        if not is_filled:
            continue
        group = iter(filled_rows)
        titles: list[str] = []
        first: Sequence[str] | None = None
        for row in group:
            if _filled_cells(row) > 1:
                first = row
                break
            titles.append(next(cell for cell in row if cell.strip()))
        yield from _paragraphs(titles, page_number)
        if first is None:
            continue
        goes_on = not titles and _goes_on(header, first)
        header = header if goes_on else first
        yield from table_elements(chain([header, first] if goes_on else [first], group), page_number)


def _goes_on(header: Sequence[str], row: Sequence[str]) -> bool:
    fits = len(row) <= len(header) and all(
        head.strip() for head, cell in zip(header, row, strict=False) if cell.strip()
    )
    return fits and any(_FIGURE.match(cell.strip()) for cell in row)


def _paragraphs(lines: Sequence[str], page_number: int | None) -> Iterator[Element]:
    for start in range(0, len(lines), _LINES_PER_PARAGRAPH):
        folded = (" ".join(line.split()) for line in lines[start : start + _LINES_PER_PARAGRAPH])
        yield Element(kind="paragraph", text="\n".join(folded), page_number=page_number)


def _filled_cells(row: Sequence[str]) -> int:
    return sum(bool(cell.strip()) for cell in row)


def _is_filled(row: Sequence[str]) -> bool:
    return any(cell.strip() for cell in row)
