"""Checks that the numbers in a statement follow from query results, rounded to the precision of the
statement. Pure.

A number is accepted if it equals a cell, a row count, or a number in the question, the SQL or a name. "12.5
%" matches 0.125 and 12.5, and as a difference from the whole 87.5 and 112.5. "3.5 times" matches 350 %, or
250 % more. "1.2 million" matches 1,234,000, and "95,000" matches 95 in a table in thousands. Ambiguous
notation is read in the answer's language: "1.234" is above a thousand in German and just above 1 in English.
A negative cell matches its magnitude if the statement describes a decrease. Names of periods, such as "the
first three quarters", need no proof.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from shared.evidence.models import TableResult
from shared.evidence.number_format import COMMA_DECIMALS
from shared.evidence.number_words import CURRENCY, NUMBER_WORDS, is_percent_word, without_periods, words_of

_INSIDE = re.compile(r"\d+")
_RANK = re.compile(r"\A\s*(?:[-*>]\s*)?(?:\|\s*)?(?:\*\*)?#?(\d{1,3})(?:\.?(?:\*\*)?\s*(?=\|)|[.)](?=\s))")
_DATE = re.compile(r"(?<![\d.])(\d{1,2})[./]\s?(\d{1,2})[./]\s?(\d{4}|\d{2})(?!\.?\d)")
_TIMES = re.compile(r"[\s-]?(?:times\b|fold\b|x\b|×|mal\b|fach)", re.IGNORECASE)
_FACTOR_OF = re.compile(r"\bfa[ck]tor (?:of |von )?\Z", re.IGNORECASE)
_TWENTIETH_CENTURY = 70  # years of two digits from here on are before 2000
_MONEY_BEFORE = re.compile(rf"(?<!\w)(?:{CURRENCY})\s?[-−–]?\s?\Z", re.IGNORECASE)
_MONEY_AFTER = re.compile(rf"\s?(?:{CURRENCY})(?!\w)", re.IGNORECASE)
_MONEY_CHARS = 8  # characters before the digits that are searched for a currency
_FACTOR_CHARS = 12  # characters before a number that are searched for words such as "faktor von "


@dataclass(frozen=True)
class Number:
    """A number in a statement, with its value and notation.

    Attributes:
        value: without sign and scale.
        places: decimal places.
        exponent: power of ten; 6 for "million".
        is_factor: "3.5 times", "a factor of 3.5".
        is_money: a currency precedes or follows it.
        is_plain: digits only, as in years, names and counts.
    """

    text: str
    value: Decimal
    places: int = 0
    exponent: int = 0
    is_negative: bool = False
    is_percent: bool = False
    is_factor: bool = False
    is_money: bool = False
    is_plain: bool = False
    is_word: bool = False


@dataclass(frozen=True)
class _Meaning:
    """The meaning of a result's values according to its labels.

    Attributes:
        has_percentages: values may be percentages.
        scales: powers of ten that the labels name; values may be in that scale.
        heading_scales: powers of ten that the lines above the tables name.
    """

    has_percentages: bool
    scales: Collection[int]
    heading_scales: Collection[int]

    @classmethod
    def of(cls, labels: str, headings: str, language: str) -> "_Meaning":
        words = words_of(language)
        return cls(
            words.percentages.search(labels) is not None,
            words.scales_named(labels),
            words.scales_named(headings),
        )


def has_number(text: str) -> bool:
    """Return whether a text contains a digit or a number word, so that its numbers must be checked."""
    return bool(_INSIDE.search(text) or words_of("en").number.search(text))


def numbers_of(text: str, language: str) -> list[Number]:
    """Return the numbers in a text, in order. The day, month and year of a date are separate numbers, also of
    a date such as 28.2.26.
    """
    parted = _DATE.sub(_parted, text)
    return [_read(match, language) for match in words_of(language).number.finditer(parted)]


def full_year(year: str) -> str:
    """Return the digits of a year with its century: "2026" for "26" and for "2026"."""
    if len(year) == 4:
        return year
    return f"{20 if int(year) < _TWENTIETH_CENTURY else 19}{year}"


def without_rank(line: str, most: int) -> str:
    """Remove the number at the start of a list line if it is at most `most` and can thus be a rank, because
    ranks need no proof.
    """
    rank = _RANK.match(line)
    return line[rank.end() :] if rank and int(rank[1]) <= most else line


def without_date(sentence: str, day: date) -> str:
    """Remove all mentions of the date `day` from a sentence. The month may be a number or a word."""
    d, m, year, month = f"0?{day.day}", f"0?{day.month}", f"{day:%Y}", r"[^\W\d_]+\.?"
    forms = (
        f"{day:%Y-%m-%d}",
        rf"{d}(?:st|nd|rd|th|\.)?(?: of)? {month},? {year}",
        rf"{month} {d}(?:st|nd|rd|th)?,? {year}",
        rf"{d}[./] ?{m}[./] ?{year}",
        rf"{m}/{d}/{year}",
    )
    return re.sub(rf"(?<!\w)(?:{'|'.join(forms)})(?!\w)", "", sentence)


def unproved_numbers(
    statement: str,
    results: Sequence[TableResult],
    others: Collection[str],
    language: str,
    counts: Collection[int] = (),
) -> list[str]:
    """Return the numbers of a statement, as written there, that neither the results nor the other texts
    support.

    Args:
        results: results that the statement may refer to.
        others: texts whose numbers it may repeat, such as the question.
        language: ISO 639-1 code of the answer.
        counts: numbers of listed items, which a number word may repeat.
    """
    words = words_of(language)
    falls = words.may_be_decrease(statement)
    numbers = numbers_of(without_periods(statement), language)
    return [
        number.text
        for number in numbers
        if not (number.is_word and not words.has_words)
        and not (number.is_word and not number.exponent and number.value in counts)
        and not any(_is_of_result(number, result, language, falls=falls) for result in results)
        and not _is_stated(number, others, language)
    ]


def _is_of_result(number: Number, result: TableResult, language: str, *, falls: bool) -> bool:
    counts = (len(result.tables), *(() if result.truncated else (result.row_count,)))
    is_count = not (number.exponent or number.is_percent or number.is_negative)
    if is_count and number.value in (range(max(counts) + 1) if number.is_word else counts):
        return True
    cells = [cell for row in result.rows for cell in row]
    filenames = (table.filename for table in result.tables)
    labels = " ".join((*result.columns, *result.labels, result.sql_in_words, *result.headings, *filenames))
    meaning = _Meaning.of(" ".join((labels, *result.constants)), " ".join(result.headings), language)
    values = [Decimal(repr(cell)) for cell in cells if isinstance(cell, int | float)]
    if any(
        _equals(number, value, meaning, falls=falls)
        or _is_written_out(number, value, meaning, falls=falls)
        or _is_distance(number, value, meaning, falls=falls)
        or _is_factor(number, value, meaning)
        for value in values
        if value.is_finite()
    ):
        return True
    if number.is_percent and any(_is_limit(number, constant) for constant in result.constants):
        return True
    texts = (labels, *result.constants, *(cell for cell in cells if isinstance(cell, str)))
    return _is_stated(number, texts, language)


def _equals(number: Number, value: Decimal, meaning: _Meaning, *, falls: bool) -> bool:
    """Return whether the cell value `value` equals the number after rounding to its precision. Percentages
    may be stored as fractions, and columns may be in millions.
    """
    if number.is_negative != (value < 0) and not (value < 0 and falls):
        return False
    magnitude = abs(value)
    exponents = {number.exponent}
    if number.is_percent:
        # Results often contain percentages as fractions, such as 0.05 for 5 %.
        exponents = {-2, 0} if meaning.has_percentages else {-2}
    elif number.exponent:
        # A column in thousands has 1234 for 1,234 thousand and for 1.234 million.
        exponents |= {number.exponent - power for power in meaning.scales}
    margin = Decimal(1).scaleb(-number.places) / 2
    return any(abs(magnitude.scaleb(-exponent) - number.value) <= margin for exponent in exponents)


def _is_written_out(number: Number, value: Decimal, meaning: _Meaning, *, falls: bool) -> bool:
    """Return whether the number is the cell value `value` without the scale of its table. Example: 95 in a
    table in thousand EUR is EUR 95,000, but not 95,000 employees.
    """
    if not number.is_money or number.exponent:
        return False
    return any(_equals(number, value.scaleb(power), meaning, falls=falls) for power in meaning.heading_scales)


def _is_distance(number: Number, value: Decimal, meaning: _Meaning, *, falls: bool) -> bool:
    """Return whether the number is the difference between the percentage `value` and 100 %. Example: 82.5 %
    spent is 17.5 % less.
    """
    if not (number.is_percent and meaning.has_percentages):
        return False
    plain = replace(number, is_percent=False)
    return any(_equals(plain, percent - 100, meaning, falls=falls) for percent in (value, value * 100))


def _is_factor(number: Number, value: Decimal, meaning: _Meaning) -> bool:
    """Return whether the number is a factor that follows from the percentage `value`. Examples: 249.5 % is
    2.5 times as much; 249.5 % more is 3.5 times as much.
    """
    if not (number.is_factor and meaning.has_percentages):
        return False
    factors = (fraction + more for fraction in (value, value / 100) for more in (0, 1))
    return any(_equals(number, factor, meaning, falls=False) for factor in factors)


def _is_limit(number: Number, constant: str) -> bool:
    """Return whether the percentage `number` occurs in the SQL as the fraction `constant`. Example: 5 % as
    0.05, 1.05 or 0.95.
    """
    if number.is_negative or not re.fullmatch(r"\d{1,9}\.\d{1,9}", constant):
        return False
    fraction = Decimal(constant)
    return number.value in (fraction * 100, abs(fraction - 1) * 100)


def _is_stated(number: Number, others: Collection[str], language: str) -> bool:
    """Return whether any of the texts contains the same number, in digits or as a word."""
    key = (number.value, number.exponent, number.is_percent, number.is_negative)
    stated = (one for text in others for one in numbers_of(text, language))
    if any((one.value, one.exponent, one.is_percent, one.is_negative) == key for one in stated):
        return True
    return number.is_plain and any(_occurs_in(number, text) for text in others)


def _occurs_in(number: Number, text: str) -> bool:
    """Return whether the number occurs in the text as part of a date or of a name such as "A-200"."""
    return any(int(digits) == number.value for digits in _INSIDE.findall(text) if len(digits) < 20)


def _parted(date: re.Match[str]) -> str:
    """Return the day, month and year of a date as separate numbers."""
    return f"{date[1]} / {date[2]} / {full_year(date[3])}"


def _read(match: re.Match[str], language: str) -> Number:
    start, end = match.span()
    words = words_of(language)
    is_factor = bool(
        _TIMES.match(match.string, end) or _FACTOR_OF.search(match.string, start - _FACTOR_CHARS, start)
    )
    if word := match["word"]:
        scale, value = words.exponent(match["scale"] or ""), Decimal(NUMBER_WORDS[word.casefold()])
        return Number(match[0].strip(), value, exponent=scale, is_factor=is_factor, is_word=True)
    rest = (match["rest"] or "").strip().casefold()
    digits_start = match.start("digits")
    is_money = bool(
        _MONEY_AFTER.match(match.string, end)
        or _MONEY_BEFORE.search(match.string, max(0, digits_start - _MONEY_CHARS), digits_start)
    )
    is_percent = is_percent_word(rest)
    value, places = _value(match["digits"], language)
    return Number(
        match[0].strip(),
        value,
        places,
        words.exponent(rest),
        is_negative=bool(match["sign"]),
        is_percent=is_percent,
        is_factor=is_factor,
        is_money=is_money,
        is_plain=match["digits"].isdecimal() and not rest and not match["sign"],
    )


def _value(digits: str, language: str) -> tuple[Decimal, int]:
    """Convert digits with separators to a value, and return it with its number of decimal places."""
    plain = re.sub(r"['’\u00a0\u202f\u2009 ]", "", digits)
    comma_first = language[:2].casefold() in COMMA_DECIMALS
    signs = [sign for sign in plain if sign in ".,"]
    if not signs:
        return Decimal(plain), 0
    decimal = _decimal_sign(plain, signs, "," if comma_first else ".")
    whole, _, fraction = plain.rpartition(decimal) if decimal else (plain, "", "")
    return Decimal(f"{re.sub('[.,]', '', whole)}.{fraction or 0}"), len(fraction)


def _decimal_sign(plain: str, signs: Sequence[str], usual: str) -> str:
    """Return the decimal separator of a number, or "" if its separators only group thousands."""
    is_mixed = len(set(signs)) > 1
    is_grouped = re.fullmatch(r"[1-9]\d{0,2}(?:[.,]\d{3})+", plain) is not None
    if is_grouped and not is_mixed and (len(signs) > 1 or signs[0] != usual):
        return ""
    return signs[-1]
