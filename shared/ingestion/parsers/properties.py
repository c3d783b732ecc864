"""Titles and authors from a file's own properties: what people wrote, not what programs put there."""

import re

_MIN_TITLE_LETTERS = 4
_NO_TITLE = re.compile(
    r"(?:untitled.*|unbenannt.*|(?:document|dokument|book|mappe|presentation|präsentation|slide|folie) ?\d*"
    r"|powerpoint[- ]pr[äe]sentation|.*\.\w{2,4})\Z",
    re.IGNORECASE,
)
_NO_AUTHOR = re.compile(
    r"(?:python-\w+|openpyxl|xlsxwriter|apache poi|user|admin|administrator|microsoft(?: office)?(?: user)?"
    r"|unknown)\Z",
    re.IGNORECASE,
)
_MAX_CHARS = 300


def meaningful_title(text: str | None) -> str | None:
    """The title on one line; None when it is empty, a file name, or what a program calls a new document."""
    title = _on_one_line(text).removeprefix("Microsoft Word - ")
    letters = sum(character.isalpha() for character in title)
    return title if letters >= _MIN_TITLE_LETTERS and not _NO_TITLE.match(title) else None


def meaningful_author(text: str | None) -> str | None:
    """The author on one line; None when it is empty or names a program."""
    author = _on_one_line(text)
    return author if author and not _NO_AUTHOR.match(author) else None


def _on_one_line(text: str | None) -> str:
    return " ".join((text or "").split())[:_MAX_CHARS]
