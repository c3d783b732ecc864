"""Reading of the words of a PDF page and their style from PDFium, for use in the worker process only."""

import ctypes
import re
import unicodedata
from collections.abc import Iterator, Sequence
from math import hypot
from typing import Any

import pypdfium2.raw as pdfium

from shared.ingestion.parsers.pdf_content import HYPHEN_MARK, TextLine, Word

_LIGATURES = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)}
_DROPPED = dict.fromkeys([*range(9), 11, *range(14, 32), 127, 0xAD, 0x200B, 0xFEFF, 0xFFFF])
_CHARACTERS = _LIGATURES | _DROPPED | {0xA0: " ", 9: " "}
_WORD = re.compile(rf"[^\s{HYPHEN_MARK}]+{HYPHEN_MARK}?")
_BOLD_NAME = re.compile(r"bold|black|heavy|demi|-medi(?:ital)?\Z", re.IGNORECASE)
# Font descriptor flag 19. Source: PDF 32000-1, table 123.
_FORCE_BOLD = 1 << 18
_FONT_NAME_BYTES = 128
# A jump to the left by more than this, in letter heights, starts another column within the same content line.
_LEAP = 2.5
# Minimum number of words in a line that may contain two columns.
_MIN_LEAP_WORDS = 6


def text_lines(page: Any) -> Iterator[TextLine]:
    """Yield the non-blank lines of a pypdfium2 page in content order.

    Raises:
        pypdfium2.PdfiumError: the text of the page cannot be read.
    """
    text_page = page.get_textpage()
    try:
        yield from _TextReader(text_page).lines()
    finally:
        text_page.close()


def clean_text(raw: str) -> str:
    """Return a text from PDFium as one line, with ligatures expanded and control characters removed.

    Hyphen marks are kept.
    """
    return " ".join(unicodedata.normalize("NFC", raw.translate(_CHARACTERS)).split())


class _TextReader:
    """Reader for the words of one page and their style.

    Only two letters per word are queried for bounds and two per line for style. Querying all letters would be
    several times slower.
    """

    def __init__(self, text_page: Any) -> None:
        self._pdfium = pdfium
        self._text_page = text_page
        self._raw_page = text_page.raw
        self._box = pdfium.FS_RECTF()
        self._matrix = pdfium.FS_MATRIX()
        self._name = ctypes.create_string_buffer(_FONT_NAME_BYTES)
        self._flags = ctypes.c_int()
        self._count: int = text_page.count_chars()

    def lines(self) -> Iterator[TextLine]:
        text: str = self._text_page.get_text_range()
        start = 0
        for raw in text.split("\r\n"):
            yield from self._line(raw, start, len(text) == self._count)
            start += len(raw) + 2

    def _line(self, raw: str, start: int, is_even: bool) -> Iterator[TextLine]:
        """Yield the lines of text in a line of PDFium's output, which is split after hyphens at line ends and
        at jumps to another column.

        Args:
            is_even: whether text positions equal letter positions; otherwise unreadable letters shift them.
        """
        matches = list(_WORD.finditer(raw))
        shift = 0 if is_even or not matches else self._shift(start, raw)
        is_plain = raw.isascii() and raw.isprintable()
        words: list[Word] = []
        spans: list[tuple[int, int]] = []
        for match in matches:
            text = match[0] if is_plain else clean_text(match[0])
            if not text:
                continue
            first, last = start + match.start(), start + match.end() - 1
            if text[-1] == HYPHEN_MARK and last > first:
                last -= 1
            if shift is None:
                first, last = self._char_index(first), self._char_index(last)
            else:
                first, last = first + shift, last + shift
            word = self._word(text, first, last)
            if words and _starts_line(words, word, len(matches)):
                yield self._text_line(words, spans)
                words, spans = [], []
            words.append(word)
            spans.append((first, last))
        if words:
            yield self._text_line(words, spans)

    def _shift(self, start: int, raw: str) -> int | None:
        """Return the difference between text positions and letter indexes, or None if it isn't constant
        within the line.
        """
        first, last = start + len(raw) - len(raw.lstrip()), start + len(raw.rstrip()) - 1
        shift = self._char_index(first) - first
        return shift if self._char_index(last) - last == shift else None

    def _word(self, text: str, first: int, last: int) -> Word:
        box, get_box, text_page = self._box, self._pdfium.FPDFText_GetLooseCharBox, self._raw_page
        if not get_box(text_page, first, box):
            return Word(text, 0.0, 0.0, 0.0, 0.0)
        left, bottom, right, top = box.left, box.bottom, box.right, box.top
        if last == first or not get_box(text_page, last, box):
            return Word(text, left, bottom, right, top)
        # Combine the boxes of the first and last letter, because the letters of a word may differ in height,
        # and rotated letters in both dimensions.
        return Word(
            text,
            min(box.left, left),
            min(box.bottom, bottom),
            max(box.right, right),
            max(box.top, top),
        )

    def _text_line(self, words: Sequence[Word], letters: Sequence[tuple[int, int]]) -> TextLine:
        first, last = letters[0][0], letters[-1][1]
        middle = (first + last) // 2
        # A space that PDFium has inserted has no style, so use the next letter that belongs to a word.
        middle = max(middle, next((begin for begin, end in letters if end >= middle), first))
        size, quarters = self._size(middle)
        return TextLine(tuple(words), size, self._is_bold(first) and self._is_bold(middle), quarters)

    def _char_index(self, text_index: int) -> int:
        index: int = self._pdfium.FPDFText_GetCharIndexFromTextIndex(self._raw_page, text_index)
        return max(0, min(index, self._count - 1))

    def _size(self, index: int) -> tuple[float, int]:
        """Return the rendered font size of a letter, and the clockwise quarter turns that make it upright."""
        nominal: float = self._pdfium.FPDFText_GetFontSize(self._raw_page, index)
        matrix = self._matrix
        # The nominal font size is often 1, and the text matrix scales it.
        if not self._pdfium.FPDFText_GetMatrix(self._raw_page, index, matrix):
            return round(nominal, 1), 0
        size = round(nominal * hypot(matrix.c, matrix.d), 1)
        if abs(matrix.b) > abs(matrix.a):
            return size, 1 if matrix.b > 0 else 3
        return size, 2 if matrix.a < 0 and matrix.d < 0 else 0

    def _is_bold(self, index: int) -> bool:
        length = self._pdfium.FPDFText_GetFontInfo(
            self._raw_page, index, self._name, _FONT_NAME_BYTES, self._flags
        )
        name = self._name.value.decode("utf-8", "replace") if 0 < length <= _FONT_NAME_BYTES else ""
        return bool(_BOLD_NAME.search(name)) or bool(self._flags.value & _FORCE_BOLD)


def _starts_line(words: Sequence[Word], word: Word, word_count: int) -> bool:
    """Return whether `word` starts a new line, although PDFium reports it as part of the same line as
    `words`.
    """
    before = words[-1]
    if before.text[-1] == HYPHEN_MARK:
        return True
    # Arabic and Hebrew words also follow to the left, but only after a space.
    leap = before.left - word.right
    return word_count >= _MIN_LEAP_WORDS and word.left < words[0].left and leap > _LEAP * before.height > 0
