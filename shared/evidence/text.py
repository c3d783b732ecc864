"""Splits text into sentences and words, and finds the statement that a citation refers to. Pure."""

import re
from collections.abc import Iterator

# A sentence ends at . ! ? or … (and closing quotes or brackets) if white space and a possible sentence start
# follow. Table rows and list items end with their line.
_END = re.compile(
    r"(?:(?<=[.!?…])|(?<=[.!?…][\"'”’»)\]]))\s+(?=[\"'“‘„«(\[]?[A-ZÀ-ÖØ-ÞĀ-Ž0-9§•–-])|\n+|(?<=[。！？])"
)

_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|No|Nos|Nr|Fig|Figs|Tab|Abb|Eq|Sec|Ch|Vol|pp|p|cf|vs|approx|Art|Abs|"
    r"Inc|Ltd|Co|Corp|e\.g|i\.e|z\.B|d\.h|u\.a|bzw|ca|inkl|et al|Jan|Feb|Apr|Aug|Sept|Sep|Oct|Nov|Dec)"
    r"|\b(?:Tsd|Mio|Mrd|Mill|thsd|tys|mln|mld)|\d\s?(?:Tsd|Mio|Mrd|Mill|thsd|tys|mln|mld|bn|mn)|\b[A-Z]|(?:^|\s)\d{1,2})\.$"
)

_WORD = re.compile(r"\S{1,40}")

# Length in characters of the longest abbreviation, including the separator before it.
_LONGEST_ABBREVIATION = 12


def split_sentences(text: str) -> list[str]:
    """Return the sentences of `text` without surrounding white space. Empty sentences are dropped."""
    return [sentence for sentence in _joined_at_abbreviations(_END.split(text)) if sentence]


def sentence_ends(text: str) -> list[int]:
    """Return the offsets at which sentences end. The end of `text` is included only if it has closing
    punctuation.
    """
    ends = [end.start() for end in _END.finditer(text)]
    closed = text.rstrip()
    if ends_with_stop(closed):
        ends.append(len(closed))
    return [end for end in ends if end and not _ABBREVIATION.search(text[:end][-_LONGEST_ABBREVIATION:])]


def ends_with_stop(text: str) -> bool:
    """Return whether a text ends with `.`, `!` or a similar sign. Quotation marks, brackets and emphasis
    after that sign are ignored.
    """
    return text.rstrip("\"'”’»)]*_").endswith(tuple(".!?…。！？"))


def split_words(text: str) -> Iterator[str]:
    """Yield the words of `text`. Words longer than 40 characters, as in languages without spaces, are cut
    into pieces.
    """
    return (word[0] for word in _WORD.finditer(text))


def _joined_at_abbreviations(pieces: list[str]) -> Iterator[str]:
    pending = ""
    for piece in pieces:
        pending = f"{pending} {piece.strip()}".strip()
        if not _ABBREVIATION.search(pending):
            yield pending
            pending = ""
    yield pending


# Matches a citation mark. Models can't forge one, because `shared.evidence.reader_text` sanitises their
# texts. A mark ends where another begins, and marks in a row begin only at the first of the spaces before
# them, because searches from each of many beginnings would take quadratic time.
_MARK = r"\(Source: (?:(?!\(Source: )[^\n])*?\)\[\d{1,3}\]"
_MARKS = re.compile(_MARK)
_MARKS_IN_ROW = re.compile(rf"(?<![^\S\n])(?:[^\S\n]*{_MARK})+")
_NUMBER_OF_MARK = re.compile(r"\)\[(\d{1,3})\]")
_MARKS_BEHIND = re.compile(rf"(?:[^\S\n]*{_MARK})+[.!?]?")
_ENDS_AT_MARK = re.compile(r"(?<=\))\[\d{1,3}\][.!?]?(?=\s*\Z|[^\S\n]*\n|\s+[\"'“‘„«*]?[A-ZÀ-ÖØ-ÞĀ-Ž])")
_HEADING_AT_END = re.compile(r"(?:\A|\n)#{1,6} [^\n]*\Z")
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)


def has_mark(text: str) -> bool:
    """Return whether a text contains a citation mark such as `(Source: manual.pdf)[1]`."""
    return bool(_MARKS.search(text))


def without_marks(text: str) -> str:
    """Remove citation marks such as `(Source: manual.pdf)[1]` from a text."""
    return _MARKS.sub("", text)


def cited_statements(text: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield each statement of an answer that has citation marks, with the numbers of its citations. A
    statement begins after the marks of the previous one, or on a new line.
    """
    for line in text.splitlines():
        start = 0
        for marks in _MARKS_IN_ROW.finditer(line):
            yield line[start : marks.start()], tuple(map(int, _NUMBER_OF_MARK.findall(marks[0])))
            start = marks.end()


def whole_sentences(text: str) -> str:
    """Return `text` up to the end of its last complete sentence or citation mark, or "" if it has neither."""
    end = max(_ends(text), default=0) or _last_mark(text)
    behind = _MARKS_BEHIND.match(text, end)
    cut = text[: behind.end() if behind else end].rstrip()
    while heading := _HEADING_AT_END.search(cut):
        cut = cut[: heading.start()].rstrip()
    return _without_open_code(cut)


def _ends(text: str) -> Iterator[int]:
    yield from (end.end() for end in _ENDS_AT_MARK.finditer(text))
    # File names in citation marks may look like the end of a sentence, so marks are replaced by digits.
    yield from sentence_ends(_MARKS.sub(lambda mark: "0" * len(mark[0]), text))


def _last_mark(text: str) -> int:
    """Return the end offset of the last citation mark, or 0 if there is none."""
    return max((mark.end() for mark in _MARKS.finditer(text)), default=0)


def _without_open_code(text: str) -> str:
    fences = [fence.start() for fence in _FENCE.finditer(text)]
    return text[: fences[-1]].rstrip() if len(fences) % 2 else text


# Characters that are searched for the header row. A table row whose header is further up is used alone.
_RECENT_CHARS = 4000
_MAX_LINE_CHARS = 500


def last_claim(text: str) -> str:
    """Return the last line of `text`, which the next citation refers to, without citation marks. The header
    row precedes a table row.

    The whole line is needed because a single cell ("9 bar") isn't a statement; long lines are cut to their
    last 500 characters.
    """
    lines = without_marks(text[-_RECENT_CHARS:]).rstrip().split("\n")
    line = lines[-1][-_MAX_LINE_CHARS:].strip()
    if not lines[-1].lstrip().startswith("|"):
        return line
    header = lines[-1]
    for above in reversed(lines[:-1]):
        if not above.lstrip().startswith("|"):
            break
        header = above
    return line if header is lines[-1] else f"{header[:_MAX_LINE_CHARS].strip()}\n{line}"


def cut_at_word(line: str, max_chars: int) -> str:
    """Shorten a line to the whole words within `max_chars` characters, followed by an ellipsis. Return a
    line that is short enough unchanged.
    """
    return line if len(line) <= max_chars else line[:max_chars].rpartition(" ")[0] + " …"
