"""Cuts tables that lost their lines ("Products 5.1 4.9 Services 2.0 1.8 Total 7.1 6.7") into rows. Pure.

A sentence is such a table when it is long and holds many numbers. A row begins with a capitalised word behind
two numbers; not with a month, for dates stand in the head of such tables.
"""

import re

LEAST_WORDS = 40  # longer than most sentences; unmeasured
LEAST_NUMBERS = 8
_NUMERIC = re.compile(r"[(\[$€£+−–—-]*(?:\d[\d.,]*)?[)\]%$€£,−–—-]*")
_ROW_NAME = re.compile(r"[A-ZÄÖÜ][a-zäöüß]")
_MONTH = re.compile(
    "January|February|March|April|May|June|July|August|September|October|November|December|"
    "Januar|Februar|März|Mai|Juni|Juli|Oktober|Dezember"
)


def split_run_on(sentence: str) -> list[str]:
    """Its rows, each a verbatim piece; the sentence alone where it is no such table."""
    words = list(re.finditer(r"\S+", sentence))
    numeric = [_NUMERIC.fullmatch(word.group()) is not None for word in words]
    if len(words) < LEAST_WORDS or sum(numeric) < LEAST_NUMBERS:
        return [sentence]
    starts = [
        word.start()
        for place, word in enumerate(words)
        if place > 1 and all(numeric[place - 2 : place]) and _begins_row(word.group())
    ]
    edges = zip([0, *starts], [*starts, len(sentence)], strict=True)
    return [sentence[start:end].strip() for start, end in edges]


def _begins_row(word: str) -> bool:
    return bool(_ROW_NAME.match(word)) and not _MONTH.fullmatch(word.strip(".,"))
