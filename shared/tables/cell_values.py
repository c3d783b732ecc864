"""Type inference for the cells of a column: numbers, money, percentages, dates or text. Pure.

A column has a type only if its cells fit it in the same way. German and English decimals, two currencies, or
day-first and month-first dates in one column make it text. A number such as `1.234` is ambiguous; its
notation then comes from the table's other columns, or else from its field separator.

A minority of the cells may be remarks, such as "on request", "< 0,5" or "ca. 950". They have no value.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache
from typing import Literal, NamedTuple

from shared.tables.models import ColumnKind

Decimals = Literal["en", "de"]
Value = str | int | float | None

EMPTY = frozenset(
    {"", "-", "–", "—", "n/a", "na", "null", "none", "k. a.", "k.a.", "#n/a", "#div/0!", "#wert!"}
)
"""Cells without a value, in lower case. They don't affect the type of a column."""

_CURRENCIES = {"€": "EUR", "$": "USD", "£": "GBP", "eur": "EUR", "usd": "USD", "gbp": "GBP", "chf": "CHF"}
_UNIT = r"€|\$|£|EUR|USD|GBP|CHF"
_AMOUNT = re.compile(
    rf"(?P<open>\()?(?P<sign>[-+−])?\s?(?P<before>{_UNIT})?\s?(?P<sign2>[-−])?"
    rf"(?P<body>\d[\d.,'’ \u00a0\u202f]*|[.,]\d+)(?P<exponent>[eE][-+]?\d{{1,3}})?"
    rf"\s?(?P<after>{_UNIT}|%)?(?P<close>\))?",
    re.IGNORECASE,
)
_GROUPED = re.compile(r"\d{1,3}(?:[ '’\u00a0\u202f]\d{3})+(?:[.,]\d+)?")
_GROUP_SIGNS = re.compile(r"[ '’\u00a0\u202f]")
_PLAIN = re.compile(r"(-?)((?:0|[1-9][0-9]{0,8})(?:\.(?:[0-9]{1,2}|[0-9]{4,6}))?)")
_WHOLE = re.compile(r"0|[1-9]\d*")
_EITHER = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")
_ENGLISH = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d*)(?:\.\d+)?")
_GERMAN = re.compile(r"(?:\d{1,3}(?:\.\d{3})+|\d*)(?:,\d+)?")
_MAX_DIGITS = 15  # more would lose precision as a float, and are probably an id
_WORDS = re.compile(r"\D{1,60}")
_INEXACT = re.compile(
    r"(?:[<>≤≥~≈±]\s?=?|(?:ca|circa|approx|appr|env|min|max)\b\.?|about|around|almost|nearly|over|under|below|above"
    r"|up to|at least|at most|less than|more than|etwa|rund|fast|knapp|über|unter|bis|ab|mindestens|höchstens"
    r"|environ|plus de|moins de|circa|około|ok\.|meno di|più di|meer dan|minder dan)\s*(?P<after>.+)"
    r"|(?P<before>.+?)\s?(?:\*+|[†‡]|\([^\W\d][^\d]{0,40}\))",
    re.IGNORECASE,
)
# Single words that replace a missing value. Other words in a column of whole numbers indicate names, such as
# the floors EG, 1, 2 and DG.
_MISSING = frozenset({
    "free", "frei", "inconnu", "keine", "kostenlos", "missing", "nil", "no", "nein", "nicht", "offen", "open",
    "pending", "tba", "tbc", "tbd", "unbegrenzt", "unbekannt", "unknown", "unlimited", "entfällt",
})  # fmt: skip
_MAX_INEXACT_CHARS = 100  # longer cells are texts, for which the pattern would take quadratic time
# A column is given up as text after so many more remarks than values, to save time.
_MAX_SURPLUS_REMARKS = 100

_DATES = {
    "iso": (re.compile(r"\d{4}-\d{2}-\d{2}"), "%Y-%m-%d"),
    "time": (re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2})?"), ""),
    "dots": (re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}"), "%d.%m.%Y"),
    "days": (re.compile(r"\d{1,2}/\d{1,2}/\d{4}"), "%d/%m/%Y"),
    "months": (re.compile(r"\d{1,2}/\d{1,2}/\d{4}"), "%m/%d/%Y"),
}


class _Amount(NamedTuple):
    """A number as written in a cell. `decimals` is None if both notations are valid but yield different
    values.
    """

    body: str
    unit: str
    is_negative: bool
    decimals: Decimals | Literal["any"] | None


@dataclass
class ColumnReader:
    """Type inference over the cells of a column. The properties are final after the last cell was passed to
    `look`.

    Attributes:
        decimals: notation of the numbers; None until a cell is unambiguous.
        remark_count: number of non-empty cells without a value, such as "< 0,5".
    """

    decimals: Decimals | None = None
    remark_count: int = 0
    unit: str = ""
    _is_number: bool = True
    _is_whole: bool = True
    _is_plain: bool = True
    _has_either: bool = False
    _has_names: bool = False
    _units: set[str] = field(default_factory=set)
    _dates: set[str] = field(default_factory=lambda: set(_DATES))
    _filled: int = 0

    @property
    def is_text(self) -> bool:
        """Whether the column can only be text."""
        is_typed = self._is_number or self._dates
        return not is_typed or self.remark_count > self._filled + _MAX_SURPLUS_REMARKS

    @property
    def is_ambiguous(self) -> bool:
        """Whether the numbers are valid in both English and German notation, with different values."""
        return self._is_number and self._has_either and self.decimals is None

    def add(self, text: str) -> None:
        """Narrow down the possible types by one more cell."""
        if self.is_text:
            return
        cell = text.strip()
        if cell.casefold() in EMPTY:
            self._is_plain = self._is_plain and not cell
            return
        if (is_inexact := _is_inexact(cell)) or _WORDS.fullmatch(cell):
            self.remark_count += 1
            self._is_plain = False
            if is_inexact:
                self._dates = set()
            elif cell.isalpha() and cell.casefold() not in _MISSING:
                self._has_names = True
            return
        self._filled += 1
        if self._dates:
            self._dates = {style for style in self._dates if _is_date(cell, style)}
        if self._is_number:
            self._add_number(cell)

    def _add_number(self, cell: str) -> None:
        amount = _amount(cell)
        units = {*self._units, amount.unit} if amount is not None else set()
        # A sheet may show the currency only in its first and last row, so cells without a unit are accepted.
        is_one_currency = len(units - {""}) <= 1 and not {"", "%"} <= units
        if amount is None or not is_one_currency:
            self._is_number = False
            return
        self._units = units
        if amount.decimals is None:
            self._has_either = True
        elif amount.decimals != "any":
            if self.decimals not in (None, amount.decimals):
                self._is_number = False
            self.decimals = amount.decimals
        is_whole = _WHOLE.fullmatch(amount.body) is not None
        self._is_whole = self._is_whole and is_whole
        self._is_plain = self._is_plain and is_whole and cell == f"{'-' * amount.is_negative}{amount.body}"

    @property
    def kind(self) -> ColumnKind:
        """The type that fits every non-empty cell except for remarks; text if most cells are remarks or
        empty, or if single words among whole numbers are probably names.
        """
        if self._filled <= self.remark_count:
            return "text"
        if len(self._dates) == 1 or self._dates == {"iso"}:
            return "date"
        is_plain_whole = self._is_whole and self._units == {""}
        if not self._is_number or self._dates or (is_plain_whole and self._has_names):
            return "text"
        if self._units != {""}:
            return "percent" if self._units == {"%"} else "money"
        return "integer" if self._is_whole else "number"

    @property
    def currency(self) -> str:
        """The currency code of a money column, or "" for other types."""
        return next(iter(self._units - {""})) if self.kind == "money" else ""

    @property
    def has_raw(self) -> bool:
        """Whether the original text of the cells contains more than the converted values, such as a currency
        sign.
        """
        kind = self.kind
        if kind in ("text", "date"):
            return kind == "date" and (self.remark_count > 0 or "iso" not in self._dates)
        return not self._is_plain

    def converter(self, default: Decimals) -> Callable[[str], Value]:
        """Return a function that converts a cell of this column. `default` is the notation of ambiguous
        numbers.
        """
        kind = self.kind
        if kind == "text":
            return lambda text: text or None
        if kind == "date":
            (style,) = self._dates
            return lambda text: _date(text.strip(), style) if _is_date(text.strip(), style) else None
        decimals = self.decimals or default

        def convert(text: str) -> Value:
            amount = _amount(text.strip())
            if amount is None:
                return None
            number = _number(amount, "en" if amount.decimals == "any" else decimals)
            return round(number / 100, 15) if kind == "percent" else number

        return convert


def is_number(text: str) -> bool:
    """Return whether a cell is a number in English or German notation."""
    return _amount(text.strip()) is not None


def _is_inexact(cell: str) -> bool:
    """Return whether a cell consists of a number and a sign or word that restricts it: "< 0,5", "ca. 950",
    "12*".
    """
    matched = _INEXACT.fullmatch(cell) if len(cell) <= _MAX_INEXACT_CHARS else None
    return matched is not None and is_number(matched["after"] or matched["before"])


@lru_cache(maxsize=1 << 14)  # cells of a column often repeat
def _amount(cell: str) -> _Amount | None:
    plain = _PLAIN.fullmatch(cell)
    if plain is not None:  # fast path for most numbers, at a third of the time
        sign, body = plain.groups()
        return _Amount(body, "", bool(sign), "any" if body.isdigit() else "en")
    matched = _AMOUNT.fullmatch(cell)
    if matched is None or bool(matched["open"]) != bool(matched["close"]):
        return None
    units = [unit for unit in (matched["before"], matched["after"]) if unit]
    signs = [sign for sign in (matched["sign"], matched["sign2"], matched["open"]) if sign]
    body = matched["body"].strip()
    if _GROUPED.fullmatch(body):
        body = _GROUP_SIGNS.sub("", body)
    decimals = _decimals(body, matched["exponent"])
    is_fit = len(units) <= 1 and len(signs) <= 1 and sum(map(str.isdigit, body)) <= _MAX_DIGITS
    if not is_fit or decimals == "none":
        return None
    unit = units[0].casefold() if units else ""
    is_negative = bool(signs) and signs[0] != "+"
    return _Amount(
        body + (matched["exponent"] or ""), _CURRENCIES.get(unit, unit), is_negative, decimals or None
    )


def _decimals(body: str, exponent: str | None) -> Decimals | Literal["any", "none", ""]:
    """Return the notation of a number by its separators: "en" as in 1,234.5, "de" as in 1.234,5, "any" for
    digits alone, "" if both fit, as in 1,234, and "none" if the text is not a number.

    Args:
        exponent: the exponent that follows `body`, if any. Such numbers are never in German notation.
    """
    if _WHOLE.fullmatch(body):
        return "en" if exponent else "any"
    if exponent:
        return "en" if _ENGLISH.fullmatch(body) else "none"
    if _EITHER.fullmatch(body):
        return ""
    if body.isdigit():  # a leading zero indicates an id
        return "none"
    if _ENGLISH.fullmatch(body):
        return "en"
    return "de" if _GERMAN.fullmatch(body) else "none"


def _number(amount: _Amount, decimals: Decimals) -> int | float:
    group, point = (",", ".") if decimals == "en" else (".", ",")
    body = amount.body.replace(group, "").replace(point, ".")
    number = int(body) if body.isdigit() else float(body)
    return -number if amount.is_negative else number


def _is_date(cell: str, style: str) -> bool:
    pattern, _ = _DATES[style]
    if not pattern.fullmatch(cell):
        return False
    try:
        _date(cell, style)
    except ValueError:
        return False
    return True


def _date(cell: str, style: str) -> str:
    if style == "time":
        return datetime.fromisoformat(cell).isoformat(" ")  # without a zone, because cells contain none
    if style == "iso":
        return date.fromisoformat(cell).isoformat()
    return datetime.strptime(cell, _DATES[style][1]).date().isoformat()  # noqa: DTZ007 - as above
