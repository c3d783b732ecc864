"""Cells of a workbook that are merged over several rows, such as an area with several projects.

Excel stores their text in the first row only. Each further row gets it as well, since a row of a table must
be complete in itself. Headers are not changed, because `shared.tables.headers` reads their merged cells.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO

from openpyxl.utils import column_index_from_string

from shared.ingestion.parsers.tables import Repeats
from shared.platform.errors import BadDocumentError
from shared.tables.cell_values import is_number
from shared.tables.headers import has_amounts

_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^<>]*?\bref="([A-Z]{1,3})(\d{1,7}):[A-Z]{1,3}(\d{1,7})"')
_SCAN_BYTES = 1 << 20
_LONGEST_TAG = 200
_MAX_MERGES = 100_000
_MAX_LABEL_CHARS = 500  # longer texts are comments rather than labels of rows


@dataclass(frozen=True)
class Merge:
    """A cell merged over several rows. `column` counts from 0, `first` and `last` are rows from 1."""

    column: int
    first: int
    last: int


def vertical_merges(sheet: IO[bytes]) -> list[Merge]:
    """Return the cells that are merged over several rows, from the XML of a sheet.

    Raises:
        BadDocumentError: there are too many.
    """
    merges: list[Merge] = []
    for column, first, last in _merges(sheet):
        if int(first) < int(last):
            merges.append(Merge(column_index_from_string(column.decode()) - 1, int(first), int(last)))
            if len(merges) > _MAX_MERGES:
                raise BadDocumentError(
                    f"A sheet has more than {_MAX_MERGES:,} merged cells.",
                    "Undo merged cells, or split the file.",
                    failure="too_large",
                )
    return merges


def _merges(sheet: IO[bytes]) -> Iterator[tuple[bytes, bytes, bytes]]:
    rest = b""
    while window := sheet.read(_SCAN_BYTES):
        text, end = rest + window, 0
        for match in _MERGED.finditer(text):
            yield match[1], match[2], match[3]
            end = match.end()
        rest = text[max(end, len(text) - _LONGEST_TAG) :]


@dataclass
class MergedRows:
    """Repeats merged cells in the rows of one sheet, which must be passed in order."""

    merges: Sequence[Merge]
    repeats: Repeats
    _by_row: dict[int, list[Merge]] = field(init=False)
    _open: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Last row and text of the merged cells that continue, by column."""
    _has_table: bool = False
    _is_in_table: bool = False

    def __post_init__(self) -> None:
        self._by_row = {}
        for merge in self.merges:
            self._by_row.setdefault(merge.first, []).append(merge)

    @property
    def open_count(self) -> int:
        """Number of merged cells that continue in the last row."""
        return len(self._open)

    def complete(self, number: int, row: list[str]) -> list[str]:
        """Return row `number`, counted from 1, with the text of the merged cells that began above it.

        Numbers are repeated in the first column only: elsewhere they belong to all rows together, and would
        be added up several times.

        Raises:
            BadDocumentError: the repeated text of the document exceeds its limit.
        """
        filled = [column for column, cell in enumerate(row) if cell.strip()]
        self._open = {column: cell for column, cell in self._open.items() if cell[0] >= number}
        if self._is_in_table or (self._has_table and has_amounts(row)):
            self._begin(number, row, filled)
        completed = list(row)
        for column, (_, text) in self._open.items() if filled else ():
            completed += [""] * (column + 1 - len(completed))
            if not completed[column].strip():
                self.repeats.count(text, 2)
                completed[column] = text
        self._is_in_table = bool(filled) and (self._is_in_table or len(filled) > 1)
        self._has_table = self._has_table or self._is_in_table
        return completed

    def _begin(self, number: int, row: Sequence[str], filled: Sequence[int]) -> None:
        """Note the merged cells that begin in a row of values."""
        if len(filled) < 2:
            return
        first = min((*filled, *self._open))
        for merge in self._by_row.get(number, ()):
            text = row[merge.column] if merge.column < len(row) else ""
            is_label = merge.column == first or not is_number(text)
            if text.strip() and len(text) <= _MAX_LABEL_CHARS and is_label:
                self._open[merge.column] = merge.last, text
