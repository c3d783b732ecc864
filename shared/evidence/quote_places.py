"""Locates a quotation in displayed text, so that it can be highlighted. A match does not prove the quotation.
Pure.

Only letters and digits are compared, ignoring case and accents: white space, hyphenation, table borders and
bullets differ between a page's words, its paragraphs, and the model's prompt.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from shared.evidence.alignment import OMISSION
from shared.evidence.models import PageArea, PageWord

# Letters compared before and after a quotation, to tell identical passages of a page apart.
_CONTEXT_LETTERS = 80
# minimum for locating a single table cell, because shorter cells occur in too many places
_MIN_CELL_LETTERS = 6
_PARTS = re.compile(rf"\n+|{OMISSION}")
_SIGNS_AT_END = re.compile(r"[^\w\s]+\Z")
_CELLS = re.compile(r"[|\n]+")
_SAME_LINE = 0.5  # minimum vertical overlap of two words on one line, as a share of the smaller height
_WORD_GAP = 2.5  # line heights; words further apart are in different columns


@dataclass(frozen=True)
class Place:
    """A range of characters in one of several texts, which `index` identifies. `end` is exclusive."""

    index: int
    start: int
    end: int


@dataclass(frozen=True)
class _Folded:
    """The letters and digits of several texts, and the original position of each."""

    letters: str
    places: tuple[tuple[int, int], ...]

    def occurrences(self, part: str) -> list[int]:
        """Return the offsets at which `part` occurs as whole words."""
        positions = list(_positions(self.letters, part))
        return [start for start in positions if self._is_edge(start) and self._is_edge(start + len(part))]

    def _is_edge(self, position: int) -> bool:
        """Return whether a word boundary precedes the letter at `position`."""
        if not 0 < position < len(self.places):
            return True
        (before_text, before), (after_text, after) = self.places[position - 1], self.places[position]
        return before_text != after_text or after - before > 1


def quote_places(texts: Sequence[str], quote: str, context: str = "") -> list[Place]:
    """Return the ranges of the texts that the quotation covers, or an empty list if it isn't found. `context`
    selects one of several occurrences.

    Args:
        texts: in reading order; a quotation may span several.
        context: text around the quotation, such as its block, to choose among several occurrences.
    """
    folded = _fold(texts)
    around = _fold([context]).letters
    whole = _best(folded, _fold([quote]).letters, around)
    if whole is not None:
        return _with_end(_merge_spans(folded, [whole]), texts, quote)
    spans = [span for part in _PARTS.split(quote) for span in _part_spans(folded, part, around)]
    return _merge_spans(folded, spans)


def quote_areas(words: Sequence[PageWord], quote: str, context: str = "") -> tuple[PageArea, ...]:
    """Return the rectangles on a page that the quotation covers, one for each run of adjacent words on a
    line. Empty if the quotation isn't found.
    """
    covered = {place.index for place in quote_places([word.text for word in words], quote, context)}
    areas: list[PageArea] = []
    for index in sorted(covered):
        area = words[index].area
        if index - 1 in covered and _on_one_line(areas[-1], area):
            areas[-1] = _around(areas[-1], area)
        else:
            areas.append(area)
    return tuple(areas)


def row_places(texts: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Place]:
    """Return the ranges of the Markdown table lines whose cells equal those of one of `rows`."""
    row_letters = {_fold([" ".join(row)]).letters for row in rows} - {""}
    if not row_letters:
        return []
    places: list[Place] = []
    for index, text in enumerate(texts):
        start = 0
        for line in text.split("\n"):
            if line.startswith("|") and _fold([line]).letters in row_letters:
                places.append(Place(index, start, start + len(line)))
            start += len(line) + 1
    return places


def _with_end(places: list[Place], texts: Sequence[str], quote: str) -> list[Place]:
    """Extend the last range by the closing punctuation of the quotation, if the text contains it there."""
    end = _SIGNS_AT_END.search(quote)
    *others, last = places
    if end is None or not texts[last.index].startswith(end[0], last.end):
        return places
    return [*others, Place(last.index, last.start, last.end + len(end[0]))]


def _part_spans(folded: _Folded, part: str, around: str) -> Iterator[tuple[int, int]]:
    """Yield the span of one fragment of a quotation. If it isn't found, yield the spans of its table cells
    that occur exactly once.
    """
    whole = _best(folded, _fold([part]).letters, around)
    if whole is not None:
        yield whole
        return
    for cell in _CELLS.split(part):
        letters = _fold([cell]).letters
        starts = folded.occurrences(letters) if len(letters) >= _MIN_CELL_LETTERS else []
        if len(starts) == 1:
            yield starts[0], starts[0] + len(letters)


def _best(folded: _Folded, letters: str, around: str) -> tuple[int, int] | None:
    """Return the occurrence of `letters` whose surroundings best match `around`, or None if there is none.
    The first of equally good occurrences wins.
    """
    if not letters:
        return None
    before, _, after = around.partition(letters) if letters in around else ("", "", "")

    def fits(start: int) -> int:
        end = start + len(letters)
        own_before = folded.letters[max(0, start - _CONTEXT_LETTERS) : start]
        own_after = folded.letters[end : end + _CONTEXT_LETTERS]
        return _shared(reversed(own_before), reversed(before)) + _shared(own_after, after)

    start = max(folded.occurrences(letters), key=fits, default=None)
    return None if start is None else (start, start + len(letters))


def _shared(one: Iterable[str], other: Iterable[str]) -> int:
    """Return the length of the common prefix of two texts."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))


def _positions(letters: str, part: str) -> Iterator[int]:
    start = letters.find(part)
    while start >= 0:
        yield start
        start = letters.find(part, start + 1)


def _fold(texts: Sequence[str]) -> _Folded:
    letters: list[str] = []
    places: list[tuple[int, int]] = []
    for index, text in enumerate(texts):
        for position, character in enumerate(text):
            for letter in _letters_of(character):
                letters.append(letter)
                places.append((index, position))
    return _Folded("".join(letters), tuple(places))


def _letters_of(character: str) -> Sequence[str]:
    if character.isascii():
        return character.lower() if character.isalnum() else ""
    parts = unicodedata.normalize("NFKD", character.casefold())
    return [part for part in parts if part.isalnum()]


def _merge_spans(folded: _Folded, spans: Sequence[tuple[int, int]]) -> list[Place]:
    """Convert spans of letters to ranges in the original texts, in text order and without overlaps."""
    covered = {letter for start, end in spans for letter in range(start, end)}
    places: list[Place] = []
    for letter in sorted(covered):
        index, position = folded.places[letter]
        if letter - 1 in covered and places[-1].index == index:
            places[-1] = Place(index, places[-1].start, position + 1)
        else:
            places.append(Place(index, position, position + 1))
    return places


def _on_one_line(one: PageArea, other: PageArea) -> bool:
    lower = min(one.bottom - one.top, other.bottom - other.top)
    shared = min(one.bottom, other.bottom) - max(one.top, other.top)
    gap = max(other.left - one.right, one.left - other.right)
    return shared >= _SAME_LINE * lower and gap <= _WORD_GAP * max(lower, 0.005)


def _around(one: PageArea, other: PageArea) -> PageArea:
    return PageArea(
        left=min(one.left, other.left),
        top=min(one.top, other.top),
        right=max(one.right, other.right),
        bottom=max(one.bottom, other.bottom),
    )
