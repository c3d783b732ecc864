"""Says that documents give different numbers for what is asked: both side by side, with their dates."""

import re
from collections.abc import Sequence

from local.model_server.answers.markup import cite, plain, statement
from local.model_server.answers.phrases import Phrases
from local.model_server.text.passages import Passage
from local.model_server.text.words import content_words, stem

SAME_PATTERN = 0.6  # shared words of all words, numbers left out; unmeasured
FEWEST_SHARED_WORDS = 2
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_CODE = re.compile(r"\b[^\W\d_]+[\w-]*\d[\w-]*")


def find_disagreement(
    chosen: Sequence[Passage], passages: Sequence[Passage]
) -> tuple[Passage, Passage] | None:
    """The first of the chosen passages that another document contradicts, and what it says."""
    for passage in chosen:
        others = [other for other in passages if disagrees(passage, other)]
        if others:
            return passage, max(others, key=lambda other: _likeness(passage, other))
    return None


def disagreement(differing: tuple[Passage, Passage], phrases: Phrases) -> str:
    """One line that sets both statements beside each other, each cited."""
    return f"{phrases.differ} {'; '.join(_side(passage, phrases) for passage in differing)}"


def _side(passage: Passage, phrases: Phrases) -> str:
    document = passage.document
    name = (
        f"{plain(document.title)} ({plain(document.filename)})"
        if document.filename
        else plain(document.title)
    )
    version = document.attributes.get("version", "")
    date = document.attributes.get("upload_date", "")[:10]
    edition = [phrases.version.format(plain(version)) if version else "", plain(date)]
    details = ", ".join(detail for detail in edition if detail)
    return (
        f"{name}{f', {details}' if details else ''}: {statement(passage).replace('|', ' ')} {cite(passage)}"
    )


def disagrees(one: Passage, other: Passage) -> bool:
    """Whether another document says the same of the same thing, with other numbers."""
    if one.document.doc_id == other.document.doc_id or one.is_row != other.is_row:
        return False
    first, second = one.reading, other.reading
    numbers = _NUMBER.findall(first), _NUMBER.findall(second)
    if not all(numbers) or numbers[0] == numbers[1]:
        return False
    # Another year or another product is another thing, and no disagreement.
    if set(_YEAR.findall(first)) != set(_YEAR.findall(second)):
        return False
    if set(_CODE.findall(first)) != set(_CODE.findall(second)):
        return False
    return one.cells[:1] == other.cells[:1] and _likeness(one, other) >= SAME_PATTERN


def are_editions(one: Passage, other: Passage) -> bool:
    """Whether the documents' names tell different years: each may be right for its own."""
    first, second = (
        set(_YEAR.findall(f"{passage.document.title} {passage.document.filename}"))
        for passage in (one, other)
    )
    return bool(first and second) and first != second


def _likeness(one: Passage, other: Passage) -> float:
    first, second = _pattern(one), _pattern(other)
    shared = first & second
    return len(shared) / max(1, len(first | second)) if len(shared) >= FEWEST_SHARED_WORDS else 0.0


def _pattern(passage: Passage) -> set[str]:
    return {stem(word) for word in content_words(_NUMBER.sub(" ", passage.reading))}
