"""Detection of total rows in sheets, by their words and by arithmetic. Pure.

Rows that no total has added up yet are on a stack. A total replaces the rows that it adds up, so that totals
of totals are recognised as well.
"""

import math
import re
from collections.abc import Sequence
from itertools import islice

from shared.tables.cell_values import Value

_PLAIN = re.compile(
    r"(?:grand |sub[- ]?)?totals?|sum|(?:zwischen|gesamt|end)?summe|gesamt|insgesamt", re.IGNORECASE
)
_LEADING = re.compile(
    r"(?:(?:grand |sub[- ]?)?totals?|(?:zwischen|gesamt|end)?summe|insgesamt) .+", re.IGNORECASE
)
_WITHIN = re.compile(r"\b(?:sub)?totals?\b|summe\b|\b(?:ins)?gesamt\b", re.IGNORECASE)
# Excludes companies, such as "Total SE".
_COMPANY = re.compile(r"\b(?:SE|AG|KG|GmbH|S\.?A\.?|Inc|Ltd|LLC|plc|Corp|Energies)\b\.?")
# Rows whose total can be recognised by arithmetic. Totals of more rows are recognised by their words only.
_MAX_OPEN = 2000
_MIN_UNNAMED_PARTS, _MIN_UNNAMED_COLUMNS = 3, 2  # fewer could add up by chance
_ROUNDING = 0.5  # tolerance per row in units of the last digit, because reports show rounded numbers


_Row = tuple[float | None, ...]


class TotalRows:
    """Detector of total rows. Rows of one table must be passed in order.

    Args:
        amounts: indexes of columns whose numbers can be added.
        texts: indexes of text columns.
    """

    def __init__(self, amounts: Sequence[int], texts: Sequence[int]) -> None:
        self._amounts = amounts
        self._texts = texts
        self._open: list[_Row] = []

    def is_total(self, cells: Sequence[str], values: Sequence[Value], *, is_last: bool) -> bool:
        """Return whether a row is the total of rows above it."""
        row = tuple(_number(values[position]) for position in self._amounts)
        label = next((" ".join(cell.split()).rstrip(":") for cell in cells if cell.strip()), "")
        parts, is_named = 0, False
        if any(number is not None for number in row):
            if _WITHIN.search(label) or any(map(_is_plain, cells)):
                parts, is_named = self._named_total(row, label, is_last=is_last)
            elif self._texts and (is_last or not cells[self._texts[0]].strip()):
                parts = self._unnamed_total(row, has_name=bool(cells[self._texts[0]].strip()))
        if parts:
            del self._open[-parts:]
        self._open.append(row)
        if len(self._open) > _MAX_OPEN:
            del self._open[: _MAX_OPEN // 2]
        return bool(parts) or is_named

    def _named_total(self, row: "_Row", label: str, *, is_last: bool) -> tuple[int, bool]:
        """Return the number of preceding rows that a row with a word for totals adds up, and whether its
        words alone make it a total.
        """
        if not self._open:  # a table may start with its total
            return 0, bool(_PLAIN.fullmatch(label)) and not is_last
        slack = _ROUNDING * 10.0 ** -max(map(_decimals, row))
        parts = self._sum_of(row, least=2, slack=slack, every=False)
        is_leading = bool(_LEADING.fullmatch(label)) and not _COMPANY.search(label)
        return parts, is_leading or bool(_PLAIN.fullmatch(label))

    def _unnamed_total(self, row: "_Row", *, has_name: bool) -> int:
        """Return the number of preceding rows that a row adds up, or 0. It must add up all open rows, and in
        two columns if it has a name.
        """
        if has_name and sum(bool(number) for number in row) < _MIN_UNNAMED_COLUMNS:
            return 0
        parts = self._sum_of(row, least=max(_MIN_UNNAMED_PARTS, len(self._open)), slack=0.0, every=True)
        return parts if parts == len(self._open) else 0

    def _sum_of(self, row: "_Row", *, least: int, slack: float, every: bool) -> int:
        """Return the smallest number of preceding open rows that add up to the row, or 0 if there is none.

        Args:
            least: number of open rows that must be added up at least.
            slack: tolerance per added row.
            every: whether all numbers of the row must be sums; otherwise one suffices.
        """
        sums = [0.0] * len(row)
        for count, part in enumerate(islice(reversed(self._open), _MAX_OPEN), start=1):
            sums = [total + (number or 0.0) for total, number in zip(sums, part, strict=True)]
            if count < least:
                continue
            matches = [
                math.isclose(total, number, rel_tol=1e-9, abs_tol=1e-6 + slack * count)
                for total, number in zip(sums, row, strict=True)
                if number
            ]
            if matches and (all(matches) if every else any(matches)):
                return count
        return 0


def _number(value: Value) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _is_plain(cell: str) -> bool:
    return bool(_PLAIN.fullmatch(cell.strip().rstrip(":")))


def _decimals(number: float | None) -> int:
    return len(f"{number:.6f}".rstrip("0").partition(".")[2]) if number is not None else 0
