"""Formats calculated table cells in the number notation of a language. Pure."""

import re
from collections.abc import Sequence

from shared.evidence.models import Cell

COMMA_DECIMALS = frozenset(
    ("de", "fr", "es", "it", "nl", "pt", "pl", "cs", "da", "sv", "nb", "no", "fi", "ru")
)
"""ISO 639-1 codes of languages that write 0,5."""

_SPACE_GROUPS = frozenset(("fr", "pl", "cs", "sv", "nb", "no", "fi", "ru"))
_NARROW_SPACE = "\u202f"
_MIN_GROUPED = 10_000  # four-digit numbers such as years have no thousands separator
_MAX_PADDED = 3  # longer fractions are results of divisions
_DIGITS = 15  # significant digits of a float: 0.1 + 0.2 is 0.3
_NAMES = re.compile(r"(?:\b|_)(?:id|no|nr|number|nummer|code|plz|zip|phone|telefon|iban)\b", re.IGNORECASE)


def column_texts(cells: Sequence[Cell], language: str, column: str = "") -> list[str]:
    """Format the cells of a column in the number notation of `language`: 12345.5 is "12.345,5" in German.

    All numbers of the column have the same form: if one has a thousands separator, others from 1,000 have it
    too, and short fractions have the same number of digits.

    Args:
        language: ISO 639-1.
        column: name of the column; whole numbers in a column such as "customer_id" get no separators.
    """
    parts = [_parts(cell) for cell in cells if isinstance(cell, int | float)]
    is_name = _NAMES.search(column) is not None and not any(fraction for _, _, fraction in parts)
    numbers = [part for part in parts if part[1].isdecimal()]
    longest = max([0, *(len(fraction) for _, _, fraction in numbers)])
    places = longest if longest <= _MAX_PADDED else 0
    is_grouped = not is_name and any(int(digits) >= _MIN_GROUPED for _, digits, _ in numbers)
    return [_cell_text(cell, language[:2].casefold(), places, is_grouped=is_grouped) for cell in cells]


def _parts(number: float) -> tuple[str, str, str]:
    """Return the sign of a number, its whole digits and its fraction."""
    plain = f"{number:.{_DIGITS}g}" if isinstance(number, float) else str(number)
    digits, _, fraction = plain.lstrip("-").partition(".")
    return plain[: plain.startswith("-")], digits, fraction


def _cell_text(cell: Cell, code: str, places: int, *, is_grouped: bool) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell
    sign, digits, fraction = _parts(cell)
    if not digits.isdecimal():  # The number has no plain decimal form, such as 1e+20 or inf.
        return ".".join(filter(None, (sign + digits, fraction)))
    has_comma = code in COMMA_DECIMALS
    if is_grouped:
        separator = _NARROW_SPACE if code in _SPACE_GROUPS else "." if has_comma else ","
        digits = f"{int(digits):,}".replace(",", separator)
    fraction = fraction.ljust(places, "0")
    return f"{sign}{digits}{(',' if has_comma else '.') + fraction if fraction else ''}"
