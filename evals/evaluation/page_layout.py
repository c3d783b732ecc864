"""The visual reading order of a PDF page: which words can follow each word. Determined independently of the
app's code.

A word may be followed by the next word on its line, the start of the line below, or the top of a column to
the right. The order of the words in the file is ignored.
"""

import csv
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import pypdfium2.raw as pdfium

from evals.evaluation.quotations import bare

# Vertical tolerance for words on one line, relative to a word's height.
_SAME_LINE = 0.4
# Minimum gap between columns, in line heights. Spaces in justified text are narrower.
_WORD_GAP = 0.9
# Maximum gap, in line heights, between lines of a paragraph or between a heading and its text.
_LINE_GAP = 1.3
_MAX_STEPS = 20_000
# Resolution in dots per inch, and minimum confidence of recognised words in percent.
_DPI, _MIN_CONFIDENCE = 200, 40.0
_COLUMNS = (
    "level",
    "page",
    "block",
    "paragraph",
    "line",
    "word",
    "left",
    "top",
    "width",
    "height",
    "conf",
    "text",
)


@dataclass(eq=False)
class PlacedWord:
    """A word with its bounding box (y grows upwards) and the words that may follow it."""

    text: str
    left: float
    bottom: float
    right: float
    top: float
    following: "list[PlacedWord]" = field(default_factory=list, repr=False)

    @property
    def height(self) -> float:
        return max(self.top - self.bottom, 0.1)

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2

    @cached_property
    def forms(self) -> tuple[str, ...]:
        """The spellings of the word for comparison. A hyphen at the end of the word is optional."""
        form = bare(self.text)
        is_broken = form.endswith("-") and form[:-1][-1:].isalpha()
        return (form[:-1], form) if is_broken else (form,)


class PageLayout:
    """The words of a page, connected in visual reading order."""

    def __init__(self, words: Iterable[PlacedWord]) -> None:
        self._words = [word for word in words if word.forms[-1]]
        self._connect()

    def holds(self, quote: str) -> bool:
        """Return whether the quotation can be read on the page, starting at any word and following the visual
        order. The quotation must be normalised by `bare`.
        """
        steps = 0
        open_ends = [
            (word, len(form) - start)
            for word in self._words
            for form in word.forms
            for start in range(len(form))
            if quote.startswith(form[start:]) or form[start:].startswith(quote)
        ]
        seen: set[tuple[int, int]] = set()
        while open_ends and steps < _MAX_STEPS:
            steps += 1
            word, read = open_ends.pop()
            if read >= len(quote):
                return True
            if (id(word), read) in seen:
                continue
            seen.add((id(word), read))
            rest = quote[read:]
            open_ends += [
                (other, read + len(form))
                for other in word.following
                for form in other.forms
                if rest.startswith(form) or form.startswith(rest)
            ]
        return False

    def _connect(self) -> None:
        after = dict(_right_neighbours(self._words))
        for word, other in after.items():
            # Wide gaps are allowed next to a number, because they are common in rows of numbers.
            if _is_near(word, other) or _is_number(word) or _is_number(other):
                word.following.append(other)
        near = {word: other for word, other in after.items() if _is_near(word, other)}
        runs = [_Run(words) for words in _chains(self._words, near)]
        for run in runs:
            below = [other for other in runs if other.is_below(run)]
            run.words[-1].following += [
                other.words[0] for other in below if not any(one.hides(other) for one in below)
            ]
        tops = [run for run in runs if not any(run.is_below(other) for other in runs)]
        for run in runs:
            run.words[-1].following += [top.words[0] for top in tops if top.is_next_column(run)]


class _Run:
    """A sequence of closely spaced words on one line."""

    def __init__(self, words: Sequence[PlacedWord]) -> None:
        self.words = words
        self.left, self.right = words[0].left, max(word.right for word in words)
        self.top, self.bottom = median(word.top for word in words), median(word.bottom for word in words)
        self.height = max(self.top - self.bottom, 0.1)

    def is_below(self, other: "_Run") -> bool:
        gap = other.bottom - self.top
        size = max(self.height, other.height)
        is_lower = self.bottom < other.bottom - 0.3 * size and gap <= _LINE_GAP * size
        return is_lower and self._overlaps(other)

    def hides(self, other: "_Run") -> bool:
        return other is not self and other.top <= self.bottom + 0.3 * self.height and self._overlaps(other)

    def is_next_column(self, other: "_Run") -> bool:
        return self.left >= other.right and self.top - other.top > 0

    def _overlaps(self, other: "_Run") -> bool:
        return min(self.right, other.right) > max(self.left, other.left)


def _right_neighbours(words: Sequence[PlacedWord]) -> Iterator[tuple[PlacedWord, PlacedWord]]:
    """Yield each word with the nearest word to its right on the same line, however large the gap."""
    by_height = sorted(words, key=lambda word: word.middle)
    heights = [word.middle for word in by_height]
    for word in words:
        reach = _SAME_LINE * word.height
        level = by_height[
            bisect_left(heights, word.middle - reach) : bisect_right(heights, word.middle + reach)
        ]
        right = [other for other in level if other is not word and other.left >= word.right - reach]
        if right:
            yield word, min(right, key=lambda other: other.left)


def _chains(words: Sequence[PlacedWord], near: Mapping[PlacedWord, PlacedWord]) -> Iterator[list[PlacedWord]]:
    """Yield sequences of closely spaced words. `near` maps a word to the next one."""
    inner = set(near.values())
    for word in words:
        if word not in inner:
            chain = [word]
            while chain[-1] in near and len(chain) <= len(words):
                chain.append(near[chain[-1]])
            yield chain


def _is_near(word: PlacedWord, after: PlacedWord) -> bool:
    return after.left - word.right <= _WORD_GAP * max(word.height, after.height)


def _is_number(word: PlacedWord) -> bool:
    return any(character.isdigit() or character in "$€£%—" for character in word.text)


def words_in_picture(page: Any) -> list[PlacedWord]:
    """Recognise the words on a rendered page, including those in its pictures. Return an empty list if
    Tesseract isn't installed.
    """
    try:
        import tesserocr
    except ImportError:
        return []
    # SPARSE_TEXT finds text anywhere on the page, in no particular order.
    data, sparse = Path(sys.prefix, "share", "tessdata"), tesserocr.PSM.SPARSE_TEXT
    with tesserocr.PyTessBaseAPI(path=str(data), lang="eng", psm=sparse) as engine:
        engine.SetImage(page.render(scale=_DPI / 72, grayscale=True).to_pil())
        table = engine.GetTSVText(0)
    rows = csv.DictReader(table.splitlines(), _COLUMNS, delimiter="\t", quoting=csv.QUOTE_NONE)
    return [
        _word_of_row(row) for row in rows if row["text"].strip() and float(row["conf"]) >= _MIN_CONFIDENCE
    ]


def _word_of_row(row: Mapping[str, str]) -> PlacedWord:
    left, top, width, height = (float(row[name]) for name in ("left", "top", "width", "height"))
    return PlacedWord(row["text"].strip(), left, -top - height, left + width, -top)


def words_of_page(page: Any) -> Iterator[PlacedWord]:
    """Yield the words of a pypdfium2 page with their positions."""
    text_page = page.get_textpage()
    try:
        word: PlacedWord | None = None
        for index in range(text_page.count_chars()):
            letter = chr(pdfium.FPDFText_GetUnicode(text_page, index))
            box = None if letter.isspace() or letter == "\x00" else text_page.get_charbox(index, loose=True)
            if word is not None and (box is None or not _continues(word, box)):
                yield word
                word = None
            if box is None:
                continue
            if word is None:
                word = PlacedWord(letter, *box)
            else:
                left, bottom, right, top = box
                word.text += letter
                word.left, word.right = min(word.left, left), max(word.right, right)
                word.bottom, word.top = min(word.bottom, bottom), max(word.top, top)
        if word is not None:
            yield word
    finally:
        text_page.close()


def _continues(word: PlacedWord, box: tuple[float, float, float, float]) -> bool:
    left, bottom, right, top = box
    shared = min(word.top, top) - max(word.bottom, bottom)
    gap = max(left - word.right, word.left - right)
    return shared > 0.2 * min(word.height, max(top - bottom, 0.1)) and gap < word.height
