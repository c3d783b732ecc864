"""What Tesseract read in a picture: its table of words as text, and where each stands. Pure.

Source of the table: TessBaseAPI::GetTSVText, twelve columns.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Self

_MIN_CONFIDENCE = 40.0  # of 100, of a line's words on average: below are stains, photos, handwriting
_MIN_WORDS, _CLEAR_CONFIDENCE = 5, 60.0  # upside down they have 20-45, the right way up 85-96
_WORD_LEVEL = "5"  # page, block, paragraph, line, word
_COLUMNS = 12

Box = tuple[int, int, int, int]  # left, top, right, bottom in pixels; y grows downwards


@dataclass(frozen=True)
class RecognisedLine:
    """A line that was read well enough, and its bounds."""

    text: str
    box: Box


@dataclass(frozen=True)
class Recognised:
    """What stands in a picture.

    Attributes:
        text: a line per line, a blank line between paragraphs; lines that are not sure are left out.
        lines: those of the text.
        words: bounds of every word, also of those that are not sure.
        size: width and height of the picture that was read, in pixels.
        confidence: 0-100, of the words on average; 0 when there are none.
    """

    text: str
    lines: tuple[RecognisedLine, ...]
    words: tuple[Box, ...]
    size: tuple[int, int]
    confidence: float = 100.0

    @property
    def is_doubtful(self) -> bool:
        """Whether there are words that cannot be made out, as on a page that lies the wrong way up."""
        return len(self.words) >= _MIN_WORDS and self.confidence < _CLEAR_CONFIDENCE

    def turned_back(self, quarters: int) -> Self:
        """As it stands in a picture that was turned anticlockwise by so many quarters before it was read."""
        width, height = self.size if quarters == 2 else self.size[::-1]
        return replace(
            self,
            lines=tuple(
                replace(line, box=_turned_back(line.box, quarters, self.size)) for line in self.lines
            ),
            words=tuple(_turned_back(box, quarters, self.size) for box in self.words),
            size=(width, height),
        )


@dataclass(frozen=True)
class _Word:
    """A row of the table: its place in the page's order, how sure it is (0-100), its letters, its bounds."""

    block: tuple[str, str]
    line: str
    confidence: float
    text: str
    box: Box


def read_table(table: str, size: tuple[int, int]) -> Recognised:
    """The words of a table.

    Args:
        size: width and height of the picture, in pixels.
    """
    words = list(_words(table.splitlines()[1:]))
    paragraphs: list[list[RecognisedLine]] = []
    for _, in_paragraph in groupby(words, key=lambda word: word.block):
        lines = [list(line) for _, line in groupby(in_paragraph, key=lambda word: word.line)]
        paragraphs.append([_line(line) for line in lines if _is_sure(line)])
    texts = ("\n".join(line.text for line in paragraph) for paragraph in paragraphs if paragraph)
    return Recognised(
        text="\n\n".join(texts),
        lines=tuple(line for paragraph in paragraphs for line in paragraph),
        words=tuple(word.box for word in words),
        size=size,
        confidence=sum(word.confidence for word in words) / len(words) if words else 0.0,
    )


def _turned_back(box: Box, quarters: int, size: tuple[int, int]) -> Box:
    left, top, right, bottom = box
    width, height = size
    if quarters == 1:
        return height - bottom, left, height - top, right
    if quarters == 2:
        return width - right, height - bottom, width - left, height - top
    return top, width - right, bottom, width - left


def _words(rows: Iterable[str]) -> Iterable[_Word]:
    for row in rows:
        columns = row.split("\t")
        if len(columns) == _COLUMNS and columns[0] == _WORD_LEVEL and columns[11].strip():
            left, top, width, height = (int(column) for column in columns[6:10])
            box = (left, top, left + width, top + height)
            yield _Word((columns[2], columns[3]), columns[4], float(columns[10]), columns[11].strip(), box)


def _line(words: Sequence[_Word]) -> RecognisedLine:
    lefts, tops, rights, bottoms = zip(*(word.box for word in words), strict=True)
    box = (min(lefts), min(tops), max(rights), max(bottoms))
    return RecognisedLine(" ".join(word.text for word in words), box)


def _is_sure(line: Sequence[_Word]) -> bool:
    has_letters = any(character.isalnum() for word in line for character in word.text)
    return has_letters and sum(word.confidence for word in line) >= _MIN_CONFIDENCE * len(line)
