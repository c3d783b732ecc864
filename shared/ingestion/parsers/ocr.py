"""Text recognition in pictures with Tesseract, including the positions of words.

Tesseract returns a tab-separated table of words with twelve columns. Source: TessBaseAPI::GetTSVText.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from statistics import median
from threading import BoundedSemaphore
from typing import Self

from PIL.Image import Image

from shared.ingestion.parsers import tesseract
from shared.ingestion.parsers.pdf_content import TextLine, Word
from shared.ingestion.parsers.pdf_geometry import Box
from shared.ingestion.parsers.pdf_lines import Line, line_of
from shared.ingestion.parsers.pdf_tables import Table, place_tables
from shared.ingestion.parsers.pdf_unruled import unruled_tables
from shared.ingestion.parsers.tesseract import Engines, Problem

# Minimum mean confidence of a line's words, from 0 to 100. Stains, photos and handwriting have lower values.
_MIN_CONFIDENCE = 40.0
# Words of a drawing that are further apart than this, relative to their height, are separate labels.
_LABEL_GAP = 0.9
# Words of more than twice the usual height need this higher confidence, because they may be parts of a
# drawing.
_TALL, _SURE_CONFIDENCE = 2.0, 85.0
# A page with at least this many words and a lower mean confidence is illegible. Upside-down pages have 20 to
# 45, upright pages 85 to 96.
_MIN_WORDS, _CLEAR_CONFIDENCE = 5, 60.0
# Levels of rows in Tesseract's table: 1 page, 2 block, 3 paragraph, 4 line, 5 word.
_WORD_LEVEL = "5"
_COLUMNS = 12
# Resolution of pages for text recognition. Small print is lost below 150; above 200 is slower without benefit
# (unmeasured).
DPI = 200
# Time limit per picture. A scanned page takes 1 to 4 s.
PICTURE_TIMEOUT_S = 60.0
# Quarter turns to try on an illegible page, starting with the most common case, upside down.
_QUARTERS = (2, 1, 3)
_AT_ONCE = 2
# Maximum number of pictures in the queue. Each page takes 4 MB.
_WAITING = 4
# Longest side of a picture. An A4 page at 300 dpi is 3,508 pixels high.
_MAX_SIDE_PX = 4000


Rows = tuple[tuple[str, ...], ...]
"""The cell texts of a table, header row first."""


@dataclass(frozen=True)
class RecognisedLine:
    """A line of text that was recognised with sufficient confidence, and its bounds in pixels."""

    text: str
    box: Box


@dataclass(frozen=True)
class Recognised:
    """Result of text recognition for one picture.

    Attributes:
        text: all lines except doubtful ones, with a blank line between paragraphs.
        parts: paragraphs and tables from the top; rows of numbers are combined to tables.
        labels: the text read as labels of a drawing: words that are far apart form separate paragraphs.
        lines: the lines of `text`.
        words: bounds of all words, including doubtful ones.
        size: width and height of the picture that was read, in pixels.
        confidence: mean confidence of the words, 0-100; 0 if there are none.
    """

    text: str
    lines: tuple[RecognisedLine, ...]
    words: tuple[Box, ...]
    size: tuple[int, int]
    confidence: float = 100.0
    labels: str = ""
    parts: tuple[str | Rows, ...] = ()

    @property
    def is_doubtful(self) -> bool:
        """Whether the text is illegible, as on a page that was scanned upside down."""
        return len(self.words) >= _MIN_WORDS and self.confidence < _CLEAR_CONFIDENCE

    def in_original_picture(self, quarters: int) -> Self:
        """Return the same result with all bounds in the coordinates of the original picture, which was
        rotated anticlockwise by this many quarter turns before recognition.
        """
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
    """A recognised word: its block and paragraph, line, confidence (0-100), text, and bounds in pixels."""

    block: tuple[str, str]
    line: str
    confidence: float
    text: str
    box: Box

    @property
    def height(self) -> int:
        return self.box[3] - self.box[1]


def read_table(table: str, size: tuple[int, int]) -> Recognised:
    """Parse Tesseract's output for a picture, a table with one row per word.

    Args:
        size: width and height of the picture, in pixels.
    """
    words = list(_words(table.splitlines()))
    paragraphs: list[list[Sequence[_Word]]] = []
    for _, in_paragraph in groupby(words, key=lambda word: word.block):
        lines = [list(line) for _, line in groupby(in_paragraph, key=lambda word: word.line)]
        paragraphs.append([line for line in lines if _is_sure(line)])
    texts = ("\n".join(_line(line).text for line in paragraph) for paragraph in paragraphs if paragraph)
    return Recognised(
        text="\n\n".join(texts),
        parts=tuple(_parts([[_line_in_points(line) for line in paragraph] for paragraph in paragraphs])),
        lines=tuple(_line(line) for paragraph in paragraphs for line in paragraph),
        words=tuple(word.box for word in words),
        size=size,
        confidence=sum(word.confidence for word in words) / len(words) if words else 0.0,
        labels="\n\n".join(_labels(words)),
    )


def _parts(paragraphs: Sequence[Sequence[Line]]) -> Iterator[str | Rows]:
    """Yield the text of each paragraph, and the rows of each table where its first words occur."""
    tables = list(unruled_tables([line for paragraph in paragraphs for line in paragraph]))
    placed: list[Table] = []
    for paragraph in paragraphs:
        for part in place_tables(paragraph, tables):
            if not isinstance(part, Table):
                yield "\n".join(line.text for line in part)
            elif part not in placed:
                placed.append(part)
                yield part.rows


def _line_in_points(line: Sequence[_Word]) -> Line:
    """Convert a line from pixels to points. Every word gets the height of the whole line, because Tesseract's
    boxes enclose only the ink.
    """
    scale = 72 / DPI
    _, top, _, bottom = _line(line).box
    words = [
        Word(word.text, word.box[0] * scale, -bottom * scale, word.box[2] * scale, -top * scale)
        for word in line
    ]
    return line_of(TextLine(tuple(words), (bottom - top) * scale, is_bold=False), page_number=1)


def _labels(words: Sequence[_Word]) -> Iterator[str]:
    """Yield the labels of a drawing. Words that are far apart become separate labels.

    Numbers stay in the same label as the rest of their row.
    """
    usual = median(word.height for word in words) if words else 0
    sure = [
        word
        for word in words
        if word.confidence >= (_SURE_CONFIDENCE if word.height > _TALL * usual else _MIN_CONFIDENCE)
    ]
    for _, in_paragraph in groupby(sure, key=lambda word: word.block):
        labels: list[list[RecognisedLine]] = []
        for _, line in groupby(in_paragraph, key=lambda word: word.line):
            above = list(labels)
            for piece in map(_line, _pieces(list(line))):
                label = next((one for one in above if _is_right_below(piece.box, one[-1].box)), None)
                if label is None:
                    labels.append([piece])
                else:
                    label.append(piece)
                    above.remove(label)
        texts = ("\n".join(piece.text for piece in label) for label in labels)
        yield from (text for text in texts if any(map(str.isalnum, text)))


def _pieces(line: Sequence[_Word]) -> Iterator[list[_Word]]:
    piece = [line[0]]
    for before, word in pairwise(line):
        gap = word.box[0] - before.box[2]
        is_row = any(character.isdigit() for character in before.text + word.text)
        if gap > _LABEL_GAP * max(before.height, word.height) and not is_row:
            yield piece
            piece = []
        piece.append(word)
    yield piece


def _is_right_below(box: Box, above: Box) -> bool:
    is_close = box[1] - above[3] <= max(box[3] - box[1], above[3] - above[1])
    return is_close and min(box[2], above[2]) > max(box[0], above[0])


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


_REASONS: dict[Problem, str] = {
    "off": "Text recognition is disabled (OCR_TIMEOUT_S=0).",
    "missing": "Text recognition is not installed. Install the app with a Python version for which tesserocr "
    "has a wheel, or use TEXT_RECOGNITION=document_intelligence.",
    "time": "Text recognition ran out of time. Split the file, or raise OCR_TIMEOUT_S.",
    "memory": "Text recognition needs more memory than a parser may use. Scan at 300 dpi or less, or split "
    "the file.",
    "failed": "Text recognition failed. Scan the pages again, or save them as PNG.",
}


@dataclass
class TextRecognition:
    """Text recognition for the pictures of one document, which share a time limit.

    Attributes:
        budget_s: time limit for all pictures, in seconds from the first one; 0 disables recognition.
        languages: folder with Tesseract language data; None = the installed data.
    """

    budget_s: float = 0
    languages: Path | None = None
    _ends_at: float | None = None
    _problem: Problem | None = None
    _pool: ThreadPoolExecutor = field(default_factory=partial(ThreadPoolExecutor, _AT_ONCE, "ocr"))
    _room: BoundedSemaphore = field(default_factory=partial(BoundedSemaphore, _AT_ONCE + _WAITING))
    _engines: Engines | None = None

    @property
    def is_available(self) -> bool:
        """Whether text recognition is enabled and installed."""
        return self.budget_s > 0 and tesseract.is_installed(self.languages)

    @property
    def has_failed(self) -> bool:
        """Whether recognition is unavailable, or has failed for at least one picture."""
        return not self.is_available or self._problem is not None

    @property
    def unread_reason(self) -> str:
        """Explanation for users why the first unread picture could not be read, and how to fix that."""
        if self.budget_s <= 0:
            return _REASONS["off"]
        return _REASONS["missing" if not self.is_available else self._problem or "failed"]

    def submit(self, picture: Image) -> "Future[Recognised | None]":
        """Start to read a picture. The call blocks while the queue is full. The result of the future is None
        if reading failed.
        """
        if self._ends_at is None:
            self._ends_at = time.monotonic() + self.budget_s
            self._engines = tesseract.open_engines(self.languages)
        grey = picture.convert("L")
        grey.thumbnail((_MAX_SIDE_PX, _MAX_SIDE_PX))
        self._room.acquire()
        future = self._pool.submit(self._read, grey)
        future.add_done_callback(lambda _: self._room.release())
        return future

    def read(self, picture: Image) -> tuple[str | Rows, ...]:
        """Return the paragraphs and tables in a picture, or an empty tuple if the picture could not be
        read.
        """
        recognised = self.submit(picture).result() if self.is_available else None
        return recognised.parts if recognised is not None else ()

    def read_labels(self, drawing: Image) -> str:
        """Return the words of a drawing as in `Recognised.labels`, or "" if the drawing could not be read."""
        recognised = self.submit(drawing).result() if self.is_available else None
        return recognised.labels if recognised is not None else ""

    def close(self) -> None:
        """Cancel queued pictures, and wait for the pictures in progress."""
        self._pool.shutdown(cancel_futures=True)
        if self._engines is not None:
            self._engines.close()

    def _read(self, grey: Image) -> Recognised | None:
        """Read a picture. If the words are illegible, try other orientations and keep the best result."""
        best = self._read_upright(grey)
        for quarters in _QUARTERS:
            if best is None or not best.is_doubtful:
                break
            turned = self._read_upright(grey.rotate(90 * quarters, expand=True))
            if turned is not None and turned.confidence > best.confidence:
                best = turned.in_original_picture(quarters)
        return best

    def _read_upright(self, grey: Image) -> Recognised | None:
        left_s = (self._ends_at or 0.0) - time.monotonic()
        if self._engines is None or left_s <= 0:
            self._problem = self._problem or "time"
            return None
        table, problem = self._engines.read(grey, min(left_s, PICTURE_TIMEOUT_S))
        if problem is not None:
            self._problem = self._problem or problem
            return None
        return read_table(table, grey.size)
