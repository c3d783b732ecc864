"""The lines of a PDF page, with what their look says: size, weight, place. Reads; judges nothing.

PDFium gives text in the order of the page's content, a line per visual line, except that it joins lines at a
hyphen and puts U+FFFE there: such a line spans several visual ones.
"""

import ctypes
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from math import hypot
from typing import Any

HYPHEN_MARK = "\ufffe"
_BOLD_NAME = re.compile(r"bold|black|heavy|demi|-medi(?:ital)?\Z", re.IGNORECASE)
_FORCE_BOLD = 1 << 18  # PDF 32000-1, table 123: font descriptor flag 19
_FONT_NAME_BYTES = 128
_LIGATURES = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)}
_DROPPED = dict.fromkeys([*range(9), 11, *range(14, 32), 127, 0xAD, 0x200B, 0xFEFF, 0xFFFF])
_CHARACTERS = _LIGATURES | _DROPPED | {0xA0: " ", 9: " "}


@dataclass(frozen=True)
class Line:
    """A line of text on a page. Lengths are points; y grows upwards.

    Attributes:
        size: font size of the middle letter, as drawn: the first may be a large number or bullet, the last a
            small footnote mark.
        bold: first and middle letter are; a bold word at the begin of a paragraph does not count.
        left, top: of the first letter.
        right, bottom: of the last letter, which stands lower when the line holds hyphen marks.
    """

    text: str
    page_number: int
    size: float
    bold: bool
    left: float
    right: float
    top: float
    bottom: float


def page_lines(page: Any, page_number: int) -> list[Line]:
    """The lines of a pypdfium2 page that are not blank, in content order.

    Raises:
        pypdfium2.PdfiumError: the page's text cannot be read.
    """
    text_page = page.get_textpage()
    try:
        return list(_lines(text_page, page_number))
    finally:
        text_page.close()


def clean_text(raw: str) -> str:
    """PDFium's text on one line: ligatures as letters, no control characters. Hyphen marks stay."""
    return " ".join(unicodedata.normalize("NFC", raw.translate(_CHARACTERS)).split())


def _lines(text_page: Any, page_number: int) -> Iterator[Line]:
    text: str = text_page.get_text_range()
    reader = _LookReader(text_page)
    start = 0
    for raw in text.split("\r\n"):
        stripped = raw.strip()
        if stripped:
            first = start + raw.index(stripped[0])
            last = start + len(raw.rstrip()) - 1
            clean = clean_text(stripped)
            if clean:
                yield reader.line(clean, page_number, (first, _middle(raw, start, first, last), last))
        start += len(raw) + 2


def _middle(raw: str, start: int, first: int, last: int) -> int:
    """The position of the letter nearest to the middle: blanks may be PDFium's own, and have no look."""
    middle = (first + last) // 2
    while raw[middle - start].isspace():
        middle += 1
    return middle


class _LookReader:
    """Asks PDFium how single letters look. Few calls a line: one a letter would be ten times slower."""

    def __init__(self, text_page: Any) -> None:
        import pypdfium2.raw as pdfium

        self._pdfium = pdfium
        self._text_page = text_page
        self._box = pdfium.FS_RECTF()
        self._matrix = pdfium.FS_MATRIX()
        self._name = ctypes.create_string_buffer(_FONT_NAME_BYTES)
        self._flags = ctypes.c_int()
        self._last_index: int = text_page.count_chars() - 1

    def line(self, text: str, page_number: int, letters: tuple[int, int, int]) -> Line:
        """The line, looked at by its first, middle and last letter (positions in the page's text)."""
        first_index, middle_index, last_index = (self._char_index(letter) for letter in letters)
        left, _, top, bottom_of_first = self._bounds(first_index)
        _, right, _, bottom = self._bounds(last_index)
        return Line(
            text=text,
            page_number=page_number,
            size=self._size(middle_index),
            bold=self._is_bold(first_index) and self._is_bold(middle_index),
            left=left,
            right=right,
            top=top,
            bottom=bottom or bottom_of_first,
        )

    def _char_index(self, text_index: int) -> int:
        index: int = self._pdfium.FPDFText_GetCharIndexFromTextIndex(self._text_page, text_index)
        return max(0, min(index, self._last_index))

    def _bounds(self, index: int) -> tuple[float, float, float, float]:
        """Left, right, top, bottom; zeros when PDFium does not know."""
        box = self._box
        if not self._pdfium.FPDFText_GetLooseCharBox(self._text_page, index, box):
            return 0.0, 0.0, 0.0, 0.0
        return box.left, box.right, box.top, box.bottom

    def _size(self, index: int) -> float:
        nominal: float = self._pdfium.FPDFText_GetFontSize(self._text_page, index)
        # The nominal size is often 1, and the text matrix does the scaling.
        if self._pdfium.FPDFText_GetMatrix(self._text_page, index, self._matrix):
            nominal *= hypot(self._matrix.c, self._matrix.d)
        return round(nominal, 1)

    def _is_bold(self, index: int) -> bool:
        length = self._pdfium.FPDFText_GetFontInfo(
            self._text_page, index, self._name, _FONT_NAME_BYTES, self._flags
        )
        name = self._name.value.decode("utf-8", "replace") if 0 < length <= _FONT_NAME_BYTES else ""
        return bool(_BOLD_NAME.search(name)) or bool(self._flags.value & _FORCE_BOLD)
