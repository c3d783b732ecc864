"""Documents by the names that people use for them: references, misspelt words, series. Pure.

A series is a set of files such as `2023 Q1 NVDA.pdf` and `2023 Q2 NVDA.pdf`: a number, a quarter or a month
changes from one to the next, and the other words are the same, in the same order.
"""

import re
from collections import Counter
from collections.abc import Iterable

from shared.retrieval.models import DocumentRecord

ONE_SLIP_FROM = 5  # letters; one slip in a shorter word is too often another word ("plan", "plane")
TWO_SLIPS_FROM = 8


def slips_allowed(word: str) -> int:
    """How many slips a word may hold and still be known: none in a number or a short word."""
    if not word.isalpha() or len(word) < ONE_SLIP_FROM:
        return 0
    return 1 if len(word) < TWO_SLIPS_FROM else 2


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that a misspelt one means; None when there is none, or two are equally near.

    The first letter must be right: hardly anybody misses it, and it keeps other words away.
    """
    allowed = slips_allowed(word)
    near = sorted(
        (slips, other)
        for other in set(known)
        if allowed
        and slips_allowed(other)
        and other[0] == word[0]
        and abs(len(other) - len(word)) <= allowed
        and (slips := slips_between(word, other)) <= allowed
    )
    if not near or (len(near) > 1 and near[0][0] == near[1][0]):
        return None
    return near[0][1]


def slips_between(one: str, other: str) -> int:
    """Letters left out, added, replaced, or neighbours that changed places (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        before, last, row = row, before, [i]
        for j, wanted in enumerate(other, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]


def similarity(reference: str, name: str) -> float:
    """Return how alike two names are, from 0 to 1: twice their common trigrams over all trigrams (Dice).

    The order of words, their separators and a file's suffix make no difference.
    """
    one, other = _trigrams(reference), _trigrams(name)
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0


def _trigrams(name: str) -> set[str]:
    words = (f" {word} " for word in _NAME_WORD.findall(_SUFFIX.sub("", name).casefold()))
    return {word[start : start + 3] for word in words for start in range(len(word) - 2)}


_NAME_WORD = re.compile(r"[^\W_]+")
_SUFFIX = re.compile(r"\.\w{2,5}\Z")
_WORD = re.compile(r"\d+|[^\W\d_]+")  # HX200 and HX-200 are the same words
_FILLERS = frozenset(
    "the a an of for and in on to our my this that file document documents pdf report's der die das den dem "
    "des ein eine einen von und für im zum zur datei dokument".split()
)

# "Berichten" -> "bericht": the kinds of documents, as the ends of German compounds; -s is English.
_GENITIVES = (
    ("buches", "buch"),
    ("buchs", "buch"),
    ("berichtes", "bericht"),
    ("berichts", "bericht"),
    ("vertrages", "vertrag"),
    ("vertrags", "vertrag"),
    ("leitfadens", "leitfaden"),
    ("protokolls", "protokoll"),
)

_PLURALS = (
    ("bücher", "buch"),
    ("büchern", "buch"),
    ("berichte", "bericht"),
    ("berichten", "bericht"),
    ("verträge", "vertrag"),
    ("verträgen", "vertrag"),
    ("leitfäden", "leitfaden"),
    ("plänen", "plan"),
    ("protokollen", "protokoll"),
    ("anleitungen", "anleitung"),
    ("protokolle", "protokoll"),
    ("pläne", "plan"),
    ("richtlinien", "richtlinie"),
    ("listen", "liste"),
    ("ies", "y"),
    ("s", ""),
)

_GENITIVE_ENDS = tuple(end for end, _ in _GENITIVES)
_SHORTEST = 4  # "gas", "HVs": shorter words keep their end
_MIN_SHARE = 0.6  # of a reference's words; unmeasured beyond the samples
_NEAR_BEST = 0.85


def match_reference(reference: str, records: Iterable[DocumentRecord]) -> tuple[DocumentRecord, ...]:
    """The documents that a reference may mean, best first; empty when none fits well enough.

    A reference equal to a file name or title fits that document alone. Otherwise a document fits by the
    share of the reference's words that stand in its file name, title or type; every number of the reference
    must stand there, for a number is what tells one year, version or model from another.
    """
    if not reference.strip():
        return ()
    known = list(records)
    exact = [record for record in known if _same_name(reference, record)]
    if exact:
        return tuple(exact)
    wanted = _words(reference)
    if not wanted:
        return ()
    scored = [(_score(wanted, _document_words(record)), record) for record in known]
    best = max((score for score, _ in scored), default=0.0)
    if best < _MIN_SHARE:
        return ()
    fitting = [(score, record) for score, record in scored if score >= best * _NEAR_BEST]
    return tuple(record for _, record in sorted(fitting, key=lambda pair: (-pair[0], pair[1].filename)))


def reference_query(reference: str) -> str:
    """A query in the full Lucene syntax for documents that a reference may mean.

    Each word also as a prefix, as the analyzer keeps "manual.pdf" whole, and with slips.
    Words are lower-case letters or digits only, so nothing in them can be read as an operator.
    """
    parts: list[str] = []
    for word in sorted(_words(reference)):
        parts += [word, f"{word}*"]
        if allowed := slips_allowed(word):
            parts.append(f"{word}~{allowed}")
    return " ".join(parts)


def spelled_as_named(reference: str, records: Iterable[DocumentRecord]) -> str:
    """The reference with its misspelt words as the documents spell them; a word that one bears stays."""
    named = {word for record in records for word in _WORD.findall(_naming_text(record).casefold())}
    known_words = named | {singular(word) for word in named}

    def right(found: re.Match[str]) -> str:
        word = found.group().casefold()
        if word in _FILLERS or word in known_words or singular(word) in known_words:
            return found.group()
        return nearest(word, named) or found.group()

    return _WORD.sub(right, reference)


def fits_whole(reference: str, record: DocumentRecord) -> bool:
    """Whether every word of a reference stands in the document's name, title or type."""
    wanted = _words(reference)
    return _same_name(reference, record) or (bool(wanted) and wanted <= _document_words(record))


def is_plural(reference: str, records: Iterable[DocumentRecord]) -> bool:
    """Whether the reference's last word is the plural of a word that the documents bear: "annual reports"."""
    words = [word for word in _WORD.findall(reference.casefold()) if not word.isdigit()]
    if not words or singular(words[-1]) == words[-1] or words[-1].endswith(_GENITIVE_ENDS):
        return False
    known_words = {word for record in records for word in _WORD.findall(_naming_text(record).casefold())}
    return words[-1] not in known_words and singular(words[-1]) in known_words


def naming_words(*texts: str) -> frozenset[str]:
    """The words of names, in the form in which they are compared: singular, without fillers."""
    return frozenset(_words(" ".join(texts)))


def singular(word: str) -> str:
    """A lower-case word without the end of its plural, as far as kinds of documents go."""
    if len(word) < _SHORTEST or word.endswith("ss"):
        return word
    return next(
        (word[: -len(end)] + one for end, one in (*_GENITIVES, *_PLURALS) if word.endswith(end)), word
    )


def _score(wanted: set[str], words: set[str]) -> float:
    numbers = {word for word in wanted if word.isdigit()}
    return len(wanted & words) / len(wanted) if numbers <= words else 0.0


def _same_name(reference: str, record: DocumentRecord) -> bool:
    name = reference.strip().casefold()
    return name in (
        record.filename.casefold(),
        record.filename.rpartition(".")[0].casefold(),
        record.title.casefold(),
    )


def _document_words(record: DocumentRecord) -> set[str]:
    return _words(_naming_text(record))


def _naming_text(record: DocumentRecord) -> str:
    return f"{record.filename} {record.title} {record.document_type or ''}"


def _words(text: str) -> set[str]:
    return {singular(word) for word in _WORD.findall(text.casefold()) if word not in _FILLERS}


_DOCUMENT_SERIES_WORD = re.compile(r"[^\W_]+")

_MONTHS = frozenset(
    """january february march april may june july august september october november december
    jan feb mar apr jun jul aug sep sept oct nov dec
    januar februar märz mai juni juli oktober dezember mär okt dez""".split()
)

# "these filings", "each reported period", "in den letzten drei Quartalen": several of them are meant.
_SEVERAL_EDITIONS = re.compile(
    r"""\b(?:(?:these|those|reported|reporting|all|previous|prior|past|last|several|various|successive)
        \s+(?:[\w-]+\s+){0,2}
        (?:quarters|periods|years|months|weeks|reports|filings|editions|issues|versions|minutes|10-?[kq]s)
      |(?:each|every)\s+(?:[\w-]+\s+){0,2}
        (?:quarter|period|year|month|week|report|filing|edition|issue|version|10-?[kq])
      |(?:diese[nr]?|alle[nr]?|letzten|vergangenen|bisherigen|mehrere[nr]?|einzelnen)
        \s+(?:[\w-]+\s+){0,2}
        (?:quartalen?|zeiträumen?|jahren?|monaten?|berichten?|ausgaben|fassungen|versionen|protokollen?)
      |jede[nmrs]?\s+(?:[\w-]+\s+){0,2}
        (?:quartals?|zeitraums?|jahre?s?|monate?s?|berichte?s?|ausgabe|fassung|version|protokolls?)
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)

_CHANGES = "#"
_SEVERAL = 2


def series_of(filename: str) -> str:
    """What the names of a series have in common, such as `# nvda`; empty when it belongs to none."""
    stem, dot, _ = filename.rpartition(".")
    marks: list[str] = []
    for word in _DOCUMENT_SERIES_WORD.findall((stem if dot else filename).casefold()):
        mark = _CHANGES if word in _MONTHS or any(map(str.isdigit, word)) else word
        if mark != _CHANGES or marks[-1:] != [_CHANGES]:
            marks.append(mark)
    return " ".join(marks) if {_CHANGES} < set(marks) else ""


def words_of(series: str) -> str:
    """The words that each of its names has."""
    return " ".join(word for word in series.split() if word != _CHANGES)


def repeated_series(filenames: Iterable[str]) -> tuple[str, ...]:
    """Series of which there are several among the names, those with most first."""
    counted = Counter(filter(None, map(series_of, dict.fromkeys(filenames))))
    return tuple(series for series, count in counted.most_common() if count >= _SEVERAL)


def speaks_of_editions(question: str) -> bool:
    """Whether a question is about several documents of a series, though it names none of them."""
    return _SEVERAL_EDITIONS.search(question) is not None
