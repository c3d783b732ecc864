"""Rows of cells as a Markdown table. Pure; the one place that knows how a table is written."""

import re
from collections.abc import Iterable, Iterator, Sequence

from shared.documents.models import Element

MAX_ROWS = 1000  # of one element: longer tables come in parts, so that no string grows with the file
_UNESCAPED_PIPE = re.compile(r"(?<!\\)\|")


def markdown_table(rows: Iterable[Sequence[str]]) -> str:
    """A line a row, the first row as header. Blank rows and columns are dropped; "" when nothing is left.

    White space in cells is folded, pipes are escaped, short rows are filled up.
    """
    filled = [cells for row in rows if any(cells := [_cell(cell) for cell in row])]
    width = max((len(row) for row in filled), default=0)
    used = [column for column in range(width) if any(column < len(row) and row[column] for row in filled)]
    if not used:
        return ""
    header, *body = ([row[column] if column < len(row) else "" for column in used] for row in filled)
    lines = [header, ["---"] * len(used), *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def table_elements(rows: Iterable[Sequence[str]], page_number: int | None = None) -> Iterator[Element]:
    """A table of any length as elements of at most MAX_ROWS rows, each under the header."""
    part: list[Sequence[str]] = []
    is_first = True
    for row in rows:
        if not any(cell.strip() for cell in row):
            continue
        part.append(row)
        if len(part) > MAX_ROWS:
            yield Element(kind="table", text=markdown_table(part), page_number=page_number)
            part, is_first = [part[0]], False
    if len(part) > 1 or (part and is_first):
        yield Element(kind="table", text=markdown_table(part), page_number=page_number)


def _cell(text: str) -> str:
    return _UNESCAPED_PIPE.sub(r"\\|", " ".join(text.split()))
