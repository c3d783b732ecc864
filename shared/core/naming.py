"""What documents are called, and what a question calls them. Pure: texts in, terms out.

A document's names are the words of its file name and title that are names or numbers there, and the words
of its text that are written with a capital and hardly ever without: companies, people, products, places.
How much a name tells is not decided here: the search service weighs each by how few documents use the word.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import PurePosixPath

from shared.core.function_words import FUNCTION_WORDS

MAX_NAMES = 30  # of the text; 60 and more found the right document less often (docs/decisions/0013)
MAX_WORDS = 20_000  # of one document; a filing of 200 pages has 6,000 different ones
MAX_QUESTION_TERMS = 40  # a question of 40 different words that are no function words is a letter
_MIN_TIMES = 3  # a word must stand there so often to be a name of the document
_CAPITAL_SHARE = 10  # and so many times more often with a capital than without
_FEW_LETTERS = 2

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_POSSESSIVE = re.compile(r"['’]s?\Z")
_FORM_NUMBER = re.compile(r"(?<=\d)-(?=[^\W\d_]\b)")  # 10-K and 10K are the same form
_QUARTER_YEAR = re.compile(r"(?<=\bq[1-4])['’](?=\d)", re.IGNORECASE)
_ORDINALS = {"first": "q1", "second": "q2", "third": "q3", "fourth": "q4"}
_QUARTER = re.compile(rf"\b({'|'.join(_ORDINALS)})\s+(?:fiscal\s+)?quarter\b", re.IGNORECASE)
_PERIODS = (
    re.compile(r"(?P<mark>fy|cy)(?P<year>\d{4}|\d{2})\Z"),  # FY2018, FY18
    re.compile(r"(?P<part>q[1-4])(?P<year>\d{4}|\d{2})\Z"),  # Q22023
    re.compile(r"(?P<year>\d{4})(?P<part>q[1-4])\Z"),  # 2023Q2
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_MACHINE_NAME = re.compile(r"(?=.*\d)[0-9a-f-]{12,}\Z", re.IGNORECASE)  # a hash or a UUID names nothing


def document_names(filename: str, title: str, texts: Iterable[str]) -> tuple[str, ...]:
    """The terms by which a document may be meant, each once: of its file name and title, then of its text."""
    capital, small = _letter_cases(texts)
    called = [*_filename_terms(filename), *_terms(title)]
    of_name = [term for term in called if _has_digit(term) or 2 * small[term] <= capital[term]]
    of_text = [
        term
        for term, times in capital.most_common()
        if times >= _MIN_TIMES and small[term] * _CAPITAL_SHARE <= times and _is_word(term)
    ]
    return tuple(term for term in dict.fromkeys([*of_name, *of_text[:MAX_NAMES]]) if _tells(term))


def document_words(names: Sequence[str], texts: Iterable[str]) -> tuple[str, ...]:
    """A document's names and every word that it uses, each once: by them the service knows what is rare.

    Numbers count only as names: a filing holds nearly every year, and is called by one.
    """
    used = dict.fromkeys(names)
    for text in texts:
        used.update(dict.fromkeys(_plain(match[0]) for match in _WORD.finditer(text)))
    named = frozenset(names)
    return tuple(term for term in used if term in named or _is_word(term))[:MAX_WORDS]


def question_terms(question: str) -> tuple[str, ...]:
    """The terms of a question that may name a document: also two words as one, for file names join them."""
    terms = _terms(question)
    told = [term for term in terms if term not in FUNCTION_WORDS]
    may_join = {term for term in told if term.isalpha()}
    joined = [one + other for one, other in pairwise(terms) if {one, other} <= may_join]
    return tuple(dict.fromkeys([*told, *joined]))[:MAX_QUESTION_TERMS]


def name_query(question: str) -> str | None:
    """A query in the full Lucene syntax for the documents that a question may name; None if it names none.

    A term counts where it is a name, and counts as much as it is rare among all words: the clause on `names`
    chooses, with next to no weight, and the clause on `words` scores. Terms are letters and digits in lower
    case, so nothing in them can be read as an operator.
    """
    terms = question_terms(question)
    return " ".join(f"(+names:{term}^0.001 +words:{term})" for term in terms) or None


def without_possessive(word: str) -> str:
    """ "Apple's" -> "Apple": analyzers keep the ending, and the word alone is not found by it."""
    return _POSSESSIVE.sub("", word)


def _terms(text: str) -> list[str]:
    text = _QUARTER.sub(lambda match: _ORDINALS[match[1].lower()], _FORM_NUMBER.sub("", text))
    text = _QUARTER_YEAR.sub("", text)
    return [part for match in _WORD.finditer(text) for part in _period_parts(_plain(match[0]))]


def _filename_terms(filename: str) -> list[str]:
    stem = PurePosixPath(filename).stem
    if _MACHINE_NAME.match(stem):
        return []
    return _terms(_CAMEL.sub(" ", stem).replace("_", " "))


def _plain(word: str) -> str:
    return without_possessive(word).casefold().replace("'", "").replace("’", "")


def _period_parts(term: str) -> list[str]:
    """FY2018 -> 2018; Q22023 and 2023Q2 -> q2, 2023; any other term as it is."""
    found = next((match for period in _PERIODS if (match := period.match(term))), None)
    if found is None:
        return [term]
    year = found["year"] if len(found["year"]) > _FEW_LETTERS else f"20{found['year']}"
    part = found.groupdict().get("part")
    return [part, year] if part else [year]


def _letter_cases(texts: Iterable[str]) -> tuple[Counter[str], Counter[str]]:
    """How often each word stands with a capital or a digit in front, and how often with a small letter."""
    capital: Counter[str] = Counter()
    small: Counter[str] = Counter()
    for text in texts:
        for match in _WORD.finditer(text):
            (small if match[0][0].islower() else capital)[_plain(match[0])] += 1
    return capital, small


def _tells(term: str) -> bool:
    return (len(term) >= _FEW_LETTERS or term.isdigit()) and term not in FUNCTION_WORDS


def _is_word(term: str) -> bool:
    return not term.isdigit() and term not in FUNCTION_WORDS


def _has_digit(term: str) -> bool:
    return any(character.isdigit() for character in term)
