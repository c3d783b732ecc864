"""Terms of names, texts and questions, by which documents are found by name."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import PurePosixPath

FUNCTION_WORDS = frozenset(
    (
        # English function words, including question words.
        "a about all also am an and any are at be been being between but by can could did do does "
        "doing done each for from get give gives had has have having he her here him his how i if in "
        "into is it its just let me more most much must my no not of on or our over please she should "
        "show so some tell than that the their them then there these they this those to under us was "
        "we were what when where which while who whom whose why will with would you your "
        # German function words.
        "aber als am auch auf aus bei beim bis bitte da dann das dass dem den der des doch dort ein "
        "eine einem einen einer eines er es für gibt haben hatte ich ihr im ins ist ja kann können "
        "mit nach nicht noch nur ob oder ohne sei sein sich sie sind über um und uns unter vom von "
        "vor wann warum was welche welchem welchen welcher welches wenn wer werden wie wieso wir wird "
        "wo wurde wurden zu zum zur "
        # The shortest function words of French, Spanish, Italian and Dutch.
        "au aux avec ce ces cette comment dans de du elle en est et il la le les leur lui ne nous où "
        "par pas pour qu quand que quel quelle quelles quels qui sa ses sont sur un une vous al como "
        "con cual cuál cuando cuándo cuánto del dónde el es esta este están fue ha han las lo los más "
        "muy para pero por qué quién según ser si sobre su sus una unas uno unos y alla che chi cosa "
        "dal dalla degli dei della delle di e gli i nel nella non per perché quale quali quanto sono "
        "sul sulla aan bij dat deze dit een het hoe hun ik je kan maar naar niet nog of ook op te uit "
        "van voor waar waarom wanneer wat welk welke werd wie wij worden wordt ze zich zijn "
    ).split()
)

# Maximum number of names taken from a text; with 60 or more, the right document was found less often
# (decision 0006).
MAX_NAMES = 30
MAX_WORDS = 20_000  # maximum number of words per document; a filing of 200 pages has 6,000 distinct words
MAX_QUESTION_TERMS = 40  # a text with more distinct content words is hardly a question
_MIN_TIMES = 3  # a word must occur this often in the text to count as a name
_CAPITAL_SHARE = 10  # a name must occur this many times more often with a capital than in lower case
_FEW_LETTERS = 2
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_POSSESSIVE = re.compile(r"['’]s?\Z")
# Matches elided prefixes of French, Italian and Catalan. Analyzers keep "d'Aubier" as one term, but file
# names and questions contain "Aubier".
_ELISION = re.compile(
    r"(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quelqu|all|dall|dell|nell|sull|un)['’](?=\w{3})", re.IGNORECASE
)
# Removes the hyphen, because 10-K and 10K mean the same form.
_FORM_NUMBER = re.compile(r"(?<=\d)-(?=[^\W\d_]\b)")
_QUARTER_YEAR = re.compile(r"(?<=\bq[1-4])['’](?=\d)", re.IGNORECASE)
_ORDINALS = {"first": "q1", "second": "q2", "third": "q3", "fourth": "q4"}
_QUARTER = re.compile(rf"\b({'|'.join(_ORDINALS)})\s+(?:fiscal\s+)?quarter\b", re.IGNORECASE)

_PERIODS = (
    re.compile(r"(?P<mark>fy|cy)(?P<year>\d{4}|\d{2})\Z"),  # matches FY2018 and FY18
    re.compile(r"(?P<part>q[1-4])(?P<year>\d{4}|\d{2})\Z"),  # matches Q22023
    re.compile(r"(?P<year>\d{4})(?P<part>q[1-4])\Z"),  # matches 2023Q2
)

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
# Matches a hash or UUID, which is not a name that people use.
_MACHINE_NAME = re.compile(r"(?=.*\d)[0-9a-f-]{12,}\Z", re.IGNORECASE)


def document_name_terms(filename: str, title: str, texts: Iterable[str]) -> tuple[str, ...]:
    """Return distinct terms that may name a document: terms of its file name and title, followed by frequent
    capitalised words of its text.
    """
    capital, small = _letter_cases(texts)
    name_terms = [*_filename_terms(filename), *terms_of(title)]
    of_name = [term for term in name_terms if any(map(str.isdigit, term)) or 2 * small[term] <= capital[term]]
    of_text = [
        term
        for term, times in capital.most_common()
        if times >= _MIN_TIMES and small[term] * _CAPITAL_SHARE <= times and _is_word(term)
    ]
    return tuple(
        term
        for term in dict.fromkeys([*of_name, *of_text[:MAX_NAMES]])
        if (len(term) >= _FEW_LETTERS or term.isdigit()) and term not in FUNCTION_WORDS
    )


def document_words(names: Sequence[str], texts: Iterable[str]) -> tuple[str, ...]:
    """Return a document's names and other distinct words, at most 20,000. The search service derives term
    rarity from them.

    Numbers count only in names: a filing contains nearly every year but is named after one.
    """
    used = dict.fromkeys(names)
    for text in texts:
        used.update(dict.fromkeys(_plain(match[0]) for match in _WORD.finditer(text)))
    distinct_names = frozenset(names)
    return tuple(term for term in used if term in distinct_names or _is_word(term))[:MAX_WORDS]


def question_terms(question: str) -> tuple[str, ...]:
    """Return the question's content terms, and pairs of adjacent terms joined as in file names, to match
    names of documents.
    """
    terms = terms_of(question)
    content_terms = [term for term in terms if term not in FUNCTION_WORDS]
    may_join = {term for term in content_terms if term.isalpha()}
    joined = [one + other for one, other in pairwise(terms) if {one, other} <= may_join]
    return tuple(dict.fromkeys([*content_terms, *joined]))[:MAX_QUESTION_TERMS]


def without_possessive(word: str) -> str:
    """Remove a possessive ending: "Apple's" becomes "Apple". Analyzers keep the ending, so the two would not
    match.
    """
    return _POSSESSIVE.sub("", word)


def without_elision(word: str) -> str:
    """Remove an elided prefix: "d'Aubier" becomes "Aubier", and "l'école" becomes "école"."""
    elided = _ELISION.match(word)
    return word[elided.end() :] if elided else word


def terms_of(text: str) -> list[str]:
    """Return the words of a text as terms, in order: in lower case, with periods such as "second quarter" and
    "FY18" in the form that file names have.
    """
    text = _QUARTER.sub(lambda match: _ORDINALS[match[1].lower()], _FORM_NUMBER.sub("", text))
    text = _QUARTER_YEAR.sub("", text)
    return [part for match in _WORD.finditer(text) for part in _period_parts(_plain(match[0]))]


def _filename_terms(filename: str) -> list[str]:
    stem = PurePosixPath(filename).stem
    if _MACHINE_NAME.match(stem):
        return []
    return terms_of(_CAMEL.sub(" ", stem).replace("_", " "))


def _plain(word: str) -> str:
    word = without_elision(without_possessive(word))
    return word.casefold().replace("'", "").replace("’", "")


def _period_parts(term: str) -> list[str]:
    """Split FY2018 into 2018, and Q22023 or 2023Q2 into q2 and 2023. Other terms are returned unchanged."""
    period_match = next((match for period in _PERIODS if (match := period.match(term))), None)
    if period_match is None:
        return [term]
    year = period_match["year"] if len(period_match["year"]) > _FEW_LETTERS else f"20{period_match['year']}"
    part = period_match.groupdict().get("part")
    return [part, year] if part else [year]


def _letter_cases(texts: Iterable[str]) -> tuple[Counter[str], Counter[str]]:
    """Count how often each word starts with a capital or digit, and how often with a lower-case letter."""
    capital: Counter[str] = Counter()
    small: Counter[str] = Counter()
    for text in texts:
        for match in _WORD.finditer(text):
            (small if match[0][0].islower() else capital)[_plain(match[0])] += 1
    return capital, small


def _is_word(term: str) -> bool:
    return not term.isdigit() and term not in FUNCTION_WORDS
