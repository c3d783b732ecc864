"""Formats calculated table cells in the number notation of a language. Pure."""

import re

from shared.evidence.models import Cell

COMMA_DECIMALS = frozenset(
    ("de", "fr", "es", "it", "nl", "pt", "pl", "cs", "da", "sv", "nb", "no", "fi", "ru")
)
"""ISO 639-1 codes of languages that write 0,5."""

_SPACE_GROUPS = frozenset(("fr", "pl", "cs", "sv", "nb", "no", "fi", "ru"))
_NARROW_SPACE = "\u202f"
_MIN_GROUPED = 10_000  # four-digit numbers such as years have no thousands separator
_DIGITS = 15  # significant digits of a float: 0.1 + 0.2 is 0.3
_NAMES = re.compile(r"(?:\b|_)(?:id|no|nr|number|nummer|code|plz|zip|phone|telefon|iban)\b", re.IGNORECASE)


def cell_text(cell: Cell, language: str, column: str = "") -> str:
    """Format a cell in the number notation of `language`: 12345.5 becomes "12.345,5" in German.

    Args:
        language: ISO 639-1.
        column: name of the column; whole numbers in a column such as "customer_id" get no separators.
    """
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell
    plain = f"{cell:.{_DIGITS}g}" if isinstance(cell, float) else str(cell)
    sign, digits, fraction = plain[: plain.startswith("-")], *plain.lstrip("-").partition(".")[::2]
    if not digits.isdecimal():  # The number has no plain decimal form, such as 1e+20 or inf.
        return plain
    code = language[:2].casefold()
    has_comma = code in COMMA_DECIMALS
    is_name = not fraction and _NAMES.search(column)
    if int(digits) >= _MIN_GROUPED and not is_name:
        separator = _NARROW_SPACE if code in _SPACE_GROUPS else "." if has_comma else ","
        digits = f"{int(digits):,}".replace(",", separator)
    return f"{sign}{digits}{(',' if has_comma else '.') + fraction if fraction else ''}"
