"""Keyword queries, and the names by which documents are found.

The one place where a question becomes a query: its words are searched for and never read as operators.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from pathlib import PurePosixPath

FUNCTION_WORDS = frozenset(
    (
        # English, with the words of asking
        "a about all also am an and any are at be been being between but by can could did do does "
        "doing done each for from get give gives had has have having he her here him his how i if in "
        "into is it its just let me more most much must my no not of on or our over please she should "
        "show so some tell than that the their them then there these they this those to under us was "
        "we were what when where which while who whom whose why will with would you your "
        # German
        "aber als am auch auf aus bei beim bis bitte da dann das dass dem den der des doch dort ein "
        "eine einem einen einer eines er es für gibt haben hatte ich ihr im ins ist ja kann können "
        "mit nach nicht noch nur ob oder ohne sei sein sich sie sind über um und uns unter vom von "
        "vor wann warum was welche welchem welchen welcher welches wenn wer werden wie wieso wir wird "
        "wo wurde wurden zu zum zur "
        # French, Spanish, Italian, Dutch: the smallest words
        "au aux avec ce ces cette comment dans de du elle en est et il la le les leur lui ne nous où "
        "par pas pour qu quand que quel quelle quelles quels qui sa ses sont sur un une vous al como "
        "con cual cuál cuando cuándo cuánto del dónde el es esta este están fue ha han las lo los más "
        "muy para pero por qué quién según ser si sobre su sus una unas uno unos y alla che chi cosa "
        "dal dalla degli dei della delle di e gli i nel nella non per perché quale quali quanto sono "
        "sul sulla aan bij dat deze dit een het hoe hun ik je kan maar naar niet nog of ook op te uit "
        "van voor waar waarom wanneer wat welk welke werd wie wij worden wordt ze zich zijn "
    ).split()
)

MAX_NAMES = 30  # of the text; 60 and more found the right document less often (decision 0006)
MAX_WORDS = 20_000  # of one document; a filing of 200 pages has 6,000 different ones
MAX_QUESTION_TERMS = 40  # a question of 40 different words that are no function words is a letter
_MIN_TIMES = 3  # a word must stand there so often to be a name of the document
_CAPITAL_SHARE = 10  # and this many times more often capitalised than not
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
    of_name = [term for term in called if any(map(str.isdigit, term)) or 2 * small[term] <= capital[term]]
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


def _is_word(term: str) -> bool:
    return not term.isdigit() and term not in FUNCTION_WORDS


_ANYWHERE = re.compile(r"""([+|"()'\\])""")
_MINUS_FIRST = re.compile(r"(?<!\S)-")  # elsewhere it is part of a word: R-134a
_AROUND_WORDS = '.,;:!?¿¡…()[]{}"“”„«»‘'
_STAR_LAST = re.compile(r"\*(?!\S)")
_LUCENE = re.compile(r"""([+\-&|!(){}\[\]^"~*?:\\/])""")
_LUCENE_WORDS = frozenset({"AND", "OR", "NOT"})
PAIR_WEIGHT = 0.25  # of two words that stand together, against each alone; 0.5 does as well (decision 0006)
NEAR_WEIGHT = 0.25  # of two words that stand near each other; more helps prose and harms filings
NEAR_WORDS = 3  # that may stand between them in the text
_MAX_PAIRS = 40  # of each sort: a longer text is no question, and the service takes 1,024 clauses


def keyword_query(text: str) -> str:
    """A query for the words of `text`: signs that the simple syntax reads as operators are escaped.

    Unescaped, "-12 bar" would look for what does not hold 12, and a lone quotation mark or parenthesis would
    change how all that follows is read.
    Source: "Simple query syntax in Azure AI Search", the sections on special characters and on escaping.
    """
    escaped = _ANYWHERE.sub(r"\\\1", text)
    return _STAR_LAST.sub(r"\\*", _MINUS_FIRST.sub(r"\\-", escaped))


def question_query(question: str) -> str:
    """A query in the full Lucene syntax for the words of a question that say something, and pairs of them.

    Function words match nearly every block, and together outweigh the rare word that counts; of a possessive
    the word itself is looked for, each word once. Two such words side by side count more where they stand
    side by side, too, and two with only function words between them where they stand near each other:
    `relief valve "relief valve"^0.25 "relief valve"~3^0.25`. All the words if none of them says something.
    """
    words = [without_possessive(word.strip(_AROUND_WORDS)) for word in question.split()]
    told = [word if word and _says_something(word, question) else "" for word in words]
    if not any(told):
        return _each(question.split())
    beside = [pair for pair in pairwise(told) if all(pair)]
    near = list(pairwise(dict.fromkeys(word for word in told if word)))
    parts = [_each(told), *_pairs(beside, f"^{PAIR_WEIGHT}"), *_pairs(near, f"~{NEAR_WORDS}^{NEAR_WEIGHT}")]
    return " ".join(parts)


def _pairs(pairs: Iterable[tuple[str, str]], suffix: str) -> list[str]:
    quoted = (f'"{_escaped(one)} {_escaped(other)}"{suffix}' for one, other in dict.fromkeys(pairs))
    return list(islice(quoted, _MAX_PAIRS))


def _each(words: Iterable[str]) -> str:
    return " ".join(_escaped(word) for word in dict.fromkeys(words) if word)


def _escaped(word: str) -> str:
    """A word that the full syntax reads as one; AND, OR and NOT in capitals are words like others.

    Source: "Lucene query syntax in Azure AI Search", the section on escaping.
    """
    return f"\\{word}" if word in _LUCENE_WORDS else _LUCENE.sub(r"\\\1", word)


def _says_something(word: str, question: str) -> bool:
    # "IT" and "WHO" are names where the rest is not written in capitals, too.
    is_acronym = len(word) > 1 and word.isupper() and not question.isupper()
    return is_acronym or word.casefold() not in FUNCTION_WORDS
