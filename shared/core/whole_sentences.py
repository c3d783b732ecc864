"""Where a text that was broken off can end: behind its last whole sentence. Pure.

The text is Markdown as readers see it, with our own marks of citations, ` (Source: manual.pdf, S. 3)[1]`. A
mark belongs to the sentence before it. Lines of a list or a table count as sentences once they have ended.
"""

import re
from collections.abc import Iterator

from shared.core.sentences import sentence_ends

_MARK = r"\(Source: [^\n]*?\)\[\d{1,3}\]"  # no text of a model looks so: `shared.core.reader_text`
_MARKS = re.compile(_MARK)
_MARKS_BEHIND = re.compile(rf"(?:[^\S\n]*{_MARK})+[.!?]?")
_ENDS_AT_MARK = re.compile(r"(?<=\))\[\d{1,3}\][.!?]?(?=\s*\Z|[^\S\n]*\n|\s+[\"'“‘„«*]?[A-ZÀ-ÖØ-ÞĀ-Ž])")
_HEADING_AT_END = re.compile(r"(?:\A|\n)#{1,6} [^\n]*\Z")
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)


def whole_sentences(text: str) -> str:
    """`text` up to the end of its last whole sentence; empty when it has none."""
    end = max(_ends(text), default=0) or _last_mark(text)
    behind = _MARKS_BEHIND.match(text, end)
    cut = text[: behind.end() if behind else end].rstrip()
    while heading := _HEADING_AT_END.search(cut):
        cut = cut[: heading.start()].rstrip()
    return _without_open_code(cut)


def _ends(text: str) -> Iterator[int]:
    marks = [mark.span() for mark in _MARKS.finditer(text)]
    yield from (end.end() for end in _ENDS_AT_MARK.finditer(text))
    # The name of a file may hold what looks like the end of a sentence.
    yield from (end for end in sentence_ends(text) if not any(start < end < stop for start, stop in marks))


def _last_mark(text: str) -> int:
    """What is proved is worth reading, even if more was to be said."""
    return max((mark.end() for mark in _MARKS.finditer(text)), default=0)


def _without_open_code(text: str) -> str:
    fences = [fence.start() for fence in _FENCE.finditer(text)]
    return text[: fences[-1]].rstrip() if len(fences) % 2 else text
