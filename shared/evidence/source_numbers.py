"""Finds the numbers of cited statements that the cited documents don't contain. Pure.

A verified quotation proves its own words, not the sentence that cites it: "the excess is 24,000 pounds" may
cite a quotation that says 25,000. A number that is in none of the sources was calculated by the model or is
wrong, so readers are told of it.

Numbers are compared by value, without signs. "1.2 million" agrees with 1,234,567 and with 1,234, because the
source may be in thousands. The notation of a source may be English or German whatever its language. Not
compared are numbers that are words in the statement, the months of dates, and 0 and 1.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache

from shared.evidence.citations import CitationBook
from shared.evidence.number_proof import Number, full_year, numbers_of, without_date, without_rank
from shared.evidence.text import cited_statements

_DIGITS = re.compile(r"(?<![\d.,])\d{1,19}(?!\d|[.,]\d)")


def _day_and_year(date: re.Match[str]) -> str:
    """Return the day and the year of a date without its month."""
    return f"{date[1]} / {full_year(date[2])}"


_NUMERIC_DATES: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"(?<![\d.])(\d{1,2})\.\s?\d{1,2}\.\s?(\d{4}|\d{2})(?!\.?\d)"), _day_and_year),
    (re.compile(r"(?<![\d/])\d{1,2}/\d{1,2}/(\d{4})(?![\d/])"), r"\1"),  # the day may be first or second
    (re.compile(r"(?<![\d-])(\d{4})-\d{2}-(\d{2})(?![\d-])"), r"\1 / \2"),
)
_MOST_LIST_ITEMS = 100
_POWERS = (0, 3, 6, 9)

_SMALL_NUMBERS = (
    "two three four five six seven eight nine ten eleven twelve",
    "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "deux trois quatre cinq six sept huit neuf dix onze douze",
    "dos tres cuatro cinco seis siete ocho nueve diez once doce",
    "due tre quattro cinque sei sette otto nove dieci undici dodici",
    "dois três quatro cinco seis sete oito nove dez onze doze",
    "twee drie vier vijf zes zeven acht negen tien elf twaalf",
    "dwa trzy cztery pięć sześć siedem osiem dziewięć dziesięć jedenaście dwanaście",
    "två tre fyra fem sex sju åtta nio tio elva tolv",
    "to tre fire fem seks syv otte ni ti elleve tolv",
)
_TENS = (
    "ten twenty thirty forty fifty sixty seventy eighty ninety hundred",
    "zehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig hundert",
    "dix vingt trente quarante cinquante soixante soixante-dix quatre-vingts quatre-vingt-dix cent",
    "diez veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa cien",
    "dieci venti trenta quaranta cinquanta sessanta settanta ottanta novanta cento",
)
_WORDS = {
    **{word: number for words in _SMALL_NUMBERS for number, word in enumerate(words.split(), 2)},
    **{word: 10 * number for words in _TENS for number, word in enumerate(words.split(), 1)},
}
"""Numbers as sources write them in words. A word that means different numbers in two languages has one of
them, because no other check depends on it."""
_WORD = re.compile(rf"(?<!\w)(?:{'|'.join(sorted(_WORDS, key=len, reverse=True))})", re.IGNORECASE)


@dataclass(frozen=True)
class SourceNumbers:
    """The numbers in a source, in each notation in which they can be read.

    Attributes:
        values: with their scales, such as 1,200,000 for "1.2 million".
        integers: runs of digits, such as the parts of dates and of names like "A-200", and words.
    """

    values: frozenset[Decimal]
    integers: frozenset[int]

    @classmethod
    def of(cls, texts: Iterable[str], language: str) -> "SourceNumbers":
        """Read the numbers in the texts of a source.

        Args:
            language: ISO 639-1 code of the answer. Its names of scales are understood.
        """
        text = "\n".join(texts)
        readings = (numbers_of(text, notation) for notation in dict.fromkeys((language, "en", "de")))
        digits = set(map(int, _DIGITS.findall(text)))
        words = {_WORDS[word.casefold()] for word in _WORD.findall(text)}
        return cls(
            frozenset(number.value.scaleb(number.exponent) for numbers in readings for number in numbers),
            frozenset(digits | words | {0, 1}),
        )

    def __contains__(self, number: Number) -> bool:
        """Return whether a number of a statement agrees with one of these after rounding."""
        if number.is_plain and int(number.value) in self.integers:
            return True
        value, margin = (
            number.value.scaleb(number.exponent),
            Decimal(1).scaleb(number.exponent - number.places) / 2,
        )
        if not (number.exponent or number.places or number.is_percent):
            return value in self.values
        powers = (*_POWERS, 2) if number.is_percent else _POWERS  # 34 % may be stored as 0.34
        return any(abs(other.scaleb(power) - value) <= margin for other in self.values for power in powers)


def unsourced_statements(
    text: str, book: CitationBook, question: str, language: str, today: date | None = None
) -> Iterator[tuple[tuple[str, ...], tuple[int, ...]]]:
    """Yield the unsourced numbers of each cited statement of an answer, with the numbers of its citations.

    Statements are skipped if a citation is unproved, computed, or of a picture, whose numbers can't be
    compared.

    Args:
        question: text whose numbers any statement may repeat.
        language: ISO 639-1 code of the answer.
        today: a date that any statement may contain.
    """
    citations = {citation.n: citation for citation in book.citations}

    @cache
    def numbers_in_source_of(n: int) -> SourceNumbers:
        return SourceNumbers.of(book.source_texts(citations[n]), language)

    for statement, cited_numbers in cited_statements(text):
        cited = [citations[n] for n in cited_numbers if n in citations]
        if not cited or any(not one.verified and one.kind != "metadata" for one in cited):
            continue
        quoted = SourceNumbers.of([question, *(citation.quote for citation in cited)], language)
        # Most statements are decided by their quotations, which are much shorter than their documents.
        if not unsourced_numbers(statement, [quoted], language, today):
            continue
        sources = (numbers_in_source_of(citation.n) for citation in cited)
        if numbers := unsourced_numbers(statement, [quoted, *sources], language, today):
            yield tuple(numbers), cited_numbers


def unsourced_numbers(
    statement: str, sources: Collection[SourceNumbers], language: str, today: date | None = None
) -> list[str]:
    """Return the numbers of a statement, as written there, that none of its sources contains."""
    text = without_rank(without_date(statement, today) if today else statement, _MOST_LIST_ITEMS)
    for numeric_date, without_month in _NUMERIC_DATES:
        text = numeric_date.sub(without_month, text)
    return list(
        dict.fromkeys(
            number.text
            for number in numbers_of(text, language)
            if not number.is_word and all(number not in source for source in sources)
        )
    )
