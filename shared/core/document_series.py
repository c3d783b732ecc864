"""Documents that appear again and again, by their file names: `2023 Q1 NVDA.pdf`, `2023 Q2 NVDA.pdf`. Pure.

What changes from one to the next is a number, a quarter or a month; the other words are the same, in the same
order. A name without such a change, or of nothing else, belongs to no series.
"""

import re
from collections import Counter
from collections.abc import Iterable

_WORD = re.compile(r"[^\W_]+")
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
    for word in _WORD.findall((stem if dot else filename).casefold()):
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
