"""Cited documents that say different things of the same. Pure.

Two proved quotations of different documents conflict when they share most of their words, and the numbers in
them, or whether they deny, are not the same. Quotations that name different years, or different products,
speak of different things.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from shared.core.evidence import marker
from shared.core.quotes import normalise
from shared.core.reader_text import readable
from shared.models.citations import Citation, Conflict

_MIN_SHARED_WORDS = 3
_LIKENESS = 0.6  # shared words of all words, numbers left out; unmeasured
_MAX_CONFLICTS = 3
_MAX_QUOTE_CHARS = 160
_WORD = re.compile(r"[^\W\d_]{2,}")
_NUMBER = re.compile(r"\d+(?:[.,'\u2009 ]\d{3})*(?:[.,]\d+)?")
_YEAR = re.compile(r"(?:19|20)\d\d")
_CODE = re.compile(r"\b[^\W\d_]+[\w-]*\d[\w-]*")
_DENYING = frozenset(
    "no not never without nor kein keine keinen keinem keiner nicht nie niemals ohne".split()
)


def find_conflicts(citations: Sequence[Citation]) -> list[Conflict]:
    """Pairs of citations that conflict, each document pair at most once, in the order of the citations."""
    found: list[Conflict] = []
    seen: set[frozenset[str]] = set()
    proved = [citation for citation in citations if citation.verified]
    for place, first in enumerate(proved):
        for second in proved[place + 1 :]:
            pair = frozenset((first.doc_id, second.doc_id))
            if len(pair) == 2 and pair not in seen and _conflict(first.quote, second.quote):
                seen.add(pair)
                found.append(Conflict(first=first.n, second=second.n))
    return found[:_MAX_CONFLICTS]


def is_named(conflict: Conflict, text: str) -> bool:
    """Whether the answer sets the two beside each other: one line, or row of a table, cites both."""
    marks = (f"[{conflict.first}]", f"[{conflict.second}]")
    return any(all(mark in line for mark in marks) for line in text.split("\n"))


def describe(conflict: Conflict, citations: Sequence[Citation], dates: Mapping[str, datetime]) -> str:
    """`“…” (Source: a.pdf, S. 1)[1], 2023-05-01; “…” (Source: b.pdf, S. 2)[2], 2024-05-01`.

    Args:
        dates: of the documents, by doc_id.
    """
    numbered = {citation.n: citation for citation in citations}
    sides = (numbered[conflict.first], numbered[conflict.second])
    return "; ".join(_side(citation, dates.get(citation.doc_id)) for citation in sides)


def _side(citation: Citation, date: datetime | None) -> str:
    quote = " ".join(citation.quote.split())
    short = quote if len(quote) <= _MAX_QUOTE_CHARS else quote[:_MAX_QUOTE_CHARS].rpartition(" ")[0] + " …"
    day = f", {date.date().isoformat()}" if date else ""
    return f"“{readable(short)}”{marker(citation)}{day}"


def _conflict(first: str, second: str) -> bool:
    one, other = normalise(first), normalise(second)
    words, others = _words(one), _words(other)
    shared = (words & others) - _DENYING
    likeness = len(shared) / max(1, len((words | others) - _DENYING))
    if len(shared) < _MIN_SHARED_WORDS or likeness < _LIKENESS:
        return False
    if _years(one) != _years(other) or _codes(one) != _codes(other):
        return False
    return _numbers(one) != _numbers(other) or bool(words & _DENYING) != bool(others & _DENYING)


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _years(text: str) -> set[str]:
    return set(_YEAR.findall(text))


def _codes(text: str) -> set[str]:
    """Names with digits in them, such as X200: two products are two things."""
    return set(_CODE.findall(text))


def _numbers(text: str) -> Counter[str]:
    return Counter(re.sub(r"[ \u2009']", "", number) for number in _NUMBER.findall(text))
