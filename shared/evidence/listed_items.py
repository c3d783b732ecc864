"""Counts the items that a text lists, so that a number word such as "four" in "Two of the four contracts" can
be checked. Pure.
"""

import re
from itertools import groupby

from shared.evidence.text import split_sentences

_ITEM = re.compile(r"\s*(?:[-*•]|\d{1,3}[.)])\s")
_ROW = re.compile(r"\s*\|")
_HEAD_LINES = 2  # the header of a table and the rule below it
_IN_BRACKETS = re.compile(r"\([^()]*\)")
_SEPARATOR = re.compile(r"[,;]\s|\s(?:and|und|sowie)\s")


def listed_counts(text: str) -> set[int]:
    """Return the lengths of the lists, tables and enumerations in a text. Enumerations follow a colon, as in
    "Two are late: A-200 and B-300."
    """
    counts: set[int] = set()
    for kind, lines in groupby(filter(str.strip, text.splitlines()), key=_kind_of):
        group = list(lines)
        if kind == "item":
            counts.add(len(group))
        elif kind == "row":
            counts.add(len(group) - _HEAD_LINES)
        for sentence in split_sentences("\n".join(group)):
            _, colon, enumeration = _IN_BRACKETS.sub("", sentence).rpartition(": ")
            if colon:
                counts.add(sum(bool(item.strip()) for item in _SEPARATOR.split(enumeration)))
    return counts


def _kind_of(line: str) -> str:
    """Return whether a line is an item of a list, a row of a table or text."""
    return "item" if _ITEM.match(line) else "row" if _ROW.match(line) else "text"
