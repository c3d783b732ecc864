"""Sentences and words of a text, and the statement that a citation belongs to. Pure."""

import re
from collections.abc import Iterator

# A sentence ends at . ! ? or … (and closing quotes or brackets), followed by white space and something that
# can begin a sentence. Lines of a table or a list end at their line end.
_END = re.compile(
    r"(?:(?<=[.!?…])|(?<=[.!?…][\"'”’»)\]]))\s+(?=[\"'“‘„«(\[]?[A-ZÀ-ÖØ-ÞĀ-Ž0-9§•–-])|\n+|(?<=[。！？])"
)

_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|No|Nos|Nr|Fig|Figs|Tab|Abb|Eq|Sec|Ch|Vol|pp|p|cf|vs|approx|Art|Abs|"
    r"Inc|Ltd|Co|Corp|e\.g|i\.e|z\.B|d\.h|u\.a|bzw|ca|inkl|et al|Jan|Feb|Apr|Aug|Sept|Sep|Oct|Nov|Dec)"
    r"|\b[A-Z]|(?:^|\s)\d{1,2})\.$"
)

_LONGEST_ABBREVIATION = 12  # characters, with what stands before it


def split_sentences(text: str) -> list[str]:
    """The sentences of `text`, white space at their ends dropped, empty ones left out."""
    return [sentence for sentence in _joined_at_abbreviations(_END.split(text)) if sentence]


def sentence_ends(text: str) -> list[int]:
    """Where sentences of `text` end; its own end is one only behind a sign that ends a sentence."""
    found = [end.start() for end in _END.finditer(text)]
    closed = text.rstrip()
    if closed and closed.rstrip("\"'”’»)]*_")[-1:] in tuple(".!?…。！？"):
        found.append(len(closed))
    return [end for end in found if end and not _ABBREVIATION.search(text[:end][-_LONGEST_ABBREVIATION:])]


def split_words(text: str) -> list[str]:
    """The words of `text`; scripts without blanks come in runs of at most 40 characters."""
    return [word[start : start + 40] for word in text.split() for start in range(0, len(word), 40)]


def _joined_at_abbreviations(pieces: list[str]) -> Iterator[str]:
    held = ""
    for piece in pieces:
        held = f"{held} {piece.strip()}".strip()
        if not _ABBREVIATION.search(held):
            yield held
            held = ""
    yield held


_MARK = r"\(Source: [^\n]*?\)\[\d{1,3}\]"  # no text of a model looks so: `shared.evidence.reader_text`
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


_RECENT_CHARS = 4000  # a table whose header row is farther up is rare; the row alone must do then
_MAX_LINE_CHARS = 500


def last_claim(text: str) -> str:
    """The line that `text` ends with; a row of a table comes with the table's header row before it.

    The whole line, because a cell alone ("9 bar") says nothing; of a long one the last 500 characters.
    """
    lines = text[-_RECENT_CHARS:].rstrip().split("\n")
    line = lines[-1][-_MAX_LINE_CHARS:].strip()
    if not lines[-1].lstrip().startswith("|"):
        return line
    header = lines[-1]
    for above in reversed(lines[:-1]):
        if not above.lstrip().startswith("|"):
            break
        header = above
    return line if header is lines[-1] else f"{header[:_MAX_LINE_CHARS].strip()}\n{line}"
