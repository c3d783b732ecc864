"""Series of documents, whose file names differ only in a number, quarter or month. Pure.

`2023 Q1 NVDA.pdf` and `2023 Q2 NVDA.pdf` belong to the same series.
"""

import re
from collections import Counter
from collections.abc import Iterable

from shared.retrieval.document_names import MONTH_NAMES

_WORD = re.compile(r"[^\W_]+")

# Phrases that refer to several documents of a series: "these filings", "each reported period", "in den
# letzten drei Quartalen".
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
    """Return the series key of a file: its name with changing words replaced, such as `# nvda` for `2023 Q1
    NVDA.pdf`. Empty if the name has only constant or only changing words.
    """
    stem, dot, _ = filename.rpartition(".")
    marks: list[str] = []
    for word in _WORD.findall((stem if dot else filename).casefold()):
        mark = _CHANGES if word in MONTH_NAMES or any(map(str.isdigit, word)) else word
        if mark != _CHANGES or marks[-1:] != [_CHANGES]:
            marks.append(mark)
    return " ".join(marks) if {_CHANGES} < set(marks) else ""


def series_words(series: str) -> str:
    """Return the constant words of a series key, such as `nvda` for `# nvda`."""
    return " ".join(word for word in series.split() if word != _CHANGES)


def repeated_series(filenames: Iterable[str]) -> tuple[str, ...]:
    """Return the series to which at least two of the file names belong, largest first."""
    counted = Counter(filter(None, map(series_of, dict.fromkeys(filenames))))
    return tuple(series for series, count in counted.most_common() if count >= _SEVERAL)


def speaks_of_editions(question: str) -> bool:
    """Return whether a question refers to several documents of a series, as in "the last three quarters"."""
    return _SEVERAL_EDITIONS.search(question) is not None
