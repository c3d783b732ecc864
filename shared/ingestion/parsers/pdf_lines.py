"""The lines of PDF pages, and how they form paragraphs.

A line end is kept where the next line's first word would have fitted: addresses, lists, rows of a table. It
is dropped where the typesetter wrapped the text.
"""

import ctypes
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import hypot
from statistics import median
from typing import Any

from shared.documents.models import Element

HYPHEN_MARK = "\ufffe"
_BOLD_NAME = re.compile(r"bold|black|heavy|demi|-medi(?:ital)?\Z", re.IGNORECASE)
_FORCE_BOLD = 1 << 18  # PDF 32000-1, table 123: font descriptor flag 19
_FONT_NAME_BYTES = 128
_LIGATURES = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)}
_DROPPED = dict.fromkeys([*range(9), 11, *range(14, 32), 127, 0xAD, 0x200B, 0xFEFF, 0xFFFF])
_CHARACTERS = _LIGATURES | _DROPPED | {0xA0: " ", 9: " "}
_WORD = re.compile(r"\w+(?:-\w+)*")
_BROKEN = re.compile(rf"(\w*){HYPHEN_MARK}\s*(\w*)")
_BULLET = re.compile(r"(?:[•·▪◦‣●○■□]|[*–—-](?=\s)|\(?(?:\d{1,2}|[a-z]|[ivx]{1,4})[.)](?=\s))\s*")
_SIGN = re.compile(r"\A[•·▪◦‣●○■□*–—-]\s*")
_NUMERIC = re.compile(r"[$€£%()\-–—+.,:/\d]*\d[$€£%()\-–—+.,:/\d]*[%)]?\Z|[$€£%—–-]\Z")
_SENTENCE_END = re.compile(r"[.!?…:][\"'”’»)\]]*\Z")
_ROW_NUMBERS = 2
_ROW_SHARE = 0.3  # of a row's words are numbers
_EDGE_LINES = 4  # at most, at the top and at the bottom of a page
_MIN_PAGES = 4
_MIN_SHARE = 0.4  # of all pages; alternating left and right headers come on half of them
_NUMBER = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(r"(?:page |seite |p\. ?)?[-–— ]*#[-–— ]*(?:(?:of|von|/) ?#)?\Z", re.IGNORECASE)


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


class HyphenRule:
    """Knows the words of one document."""

    def __init__(self, texts: Iterable[str]) -> None:
        """`texts` is the whole document, marks and all."""
        whole = "\n".join(_BROKEN.sub(" ", text) if HYPHEN_MARK in text else text for text in texts)
        self._words = set(_WORD.findall(whole.lower()))
        self._words.update([part for word in self._words if "-" in word for part in word.split("-")])

    def mend(self, text: str) -> str:
        """The text without hyphen marks."""
        return _BROKEN.sub(self._decide, text) if HYPHEN_MARK in text else text

    def _decide(self, broken: re.Match[str]) -> str:
        left, right = broken[1], broken[2]
        joined, hyphenated = left + right, f"{left}-{right}"
        if not left or not right or not left[-1].isalpha() or not right[0].isalpha():
            return hyphenated
        if joined.lower() in self._words:
            return joined
        halves_known = left.lower() in self._words and right.lower() in self._words
        if hyphenated.lower() in self._words or halves_known or right[0].isupper():
            return hyphenated
        return joined


def paragraph_element(text: str, page_number: int | None) -> Element:
    """A paragraph, or an item of a list when it begins with a bullet, a number or a letter of a list.

    The item's bullet becomes "-"; numbers stay, they may be referred to.
    """
    if _BULLET.match(text) is None:
        return Element(kind="paragraph", text=text, page_number=page_number)
    bare = _SIGN.sub("", text)
    text = f"- {bare}" if bare != text else text
    return Element(kind="list_item", text=text, page_number=page_number)


def is_row(text: str) -> bool:
    """Whether the line is a row of a table of numbers."""
    words = text.split()
    numbers = sum(_NUMERIC.match(word) is not None for word in words)
    return numbers >= _ROW_NUMBERS and numbers >= _ROW_SHARE * len(words)


class ParagraphRule:
    """Knows the line spacing and the columns of one page."""

    def __init__(self, lines: Sequence[Line]) -> None:
        gaps = [before.bottom - line.top for before, line in pairwise(lines) if line.top < before.top]
        self._usual_gap = median(gaps) if gaps else 0.0
        self._lines = lines

    def same_row(self, before: Line, line: Line) -> bool:
        """Whether `line` stands to the right of `before` on the same base line: cells of one row."""
        return abs(before.bottom - line.bottom) < 0.3 * line.size and line.left >= before.right

    def starts_paragraph(self, before: Line, line: Line) -> bool:
        """Whether `line` belongs to another paragraph than the line before it."""
        if _BULLET.match(line.text) or abs(before.size - line.size) > 0.1 * line.size:
            return True
        if line.top > before.top:  # the next column: a sentence may go on there
            return bool(_SENTENCE_END.search(before.text)) or not line.text[0].islower()
        room = min(max(0.6 * line.size, 1.4 * self._usual_gap + 0.1 * line.size), 1.6 * line.size)
        return before.bottom - line.top > room

    def glue(self, before: Line, line: Line) -> str:
        """A blank where the text was wrapped, a line break where the line end says something."""
        if is_row(before.text) or is_row(line.text):
            return "\n"
        if line.text[0].islower():
            return " "
        first_word = line.text.split(maxsplit=1)[0]
        letter_width = (line.right - line.left) / max(len(line.text), 1)
        would_fit = before.right + letter_width * (len(first_word) + 1) < self._right_edge(before)
        return "\n" if would_fit else " "

    def _right_edge(self, line: Line) -> float:
        """The right edge of the column in which `line` stands."""
        return max(other.right for other in self._lines if abs(other.left - line.left) <= 2 * line.size)


def split_groups(lines: Sequence[Line], rule: ParagraphRule) -> Iterator[list[Line]]:
    """The lines of each paragraph."""
    group: list[Line] = []
    for line in lines:
        if group and not rule.same_row(group[-1], line) and rule.starts_paragraph(group[-1], line):
            yield group
            group = []
        group.append(line)
    if group:
        yield group


def paragraph_text(group: Sequence[Line], rule: ParagraphRule) -> str:
    """The text of a paragraph's lines, hyphen marks left in."""
    text = group[0].text
    for before, line in pairwise(group):
        text += (" " if rule.same_row(before, line) else rule.glue(before, line)) + line.text
    return text


def without_furniture(pages: Sequence[list[Line]]) -> list[list[Line]]:
    """The pages without page numbers, and without lines at their edges that repeat from page to page."""
    if len(pages) < _MIN_PAGES:
        return list(pages)
    edges = [_edge_lines(lines) for lines in pages]
    seen = Counter(key for page in edges for key in set(page.values()))
    repeated = {key for key, count in seen.items() if count >= max(_MIN_PAGES - 1, _MIN_SHARE * len(pages))}
    kept_once: set[str] = set()
    result = []
    for lines, page in zip(pages, edges, strict=True):
        kept = []
        for position, line in enumerate(lines):
            key = page.get(position)
            if key in repeated and (key in kept_once or _PAGE_NUMBER.match(key)):
                continue
            if key in repeated:
                kept_once.add(key)
            kept.append(line)
        result.append(kept)
    return result


def _edge_lines(lines: Sequence[Line]) -> dict[int, str]:
    """Position -> text with its numbers masked, of the lines that stand apart at the page's edges."""
    by_height = sorted(range(len(lines)), key=lambda position: -lines[position].top)
    edge = _until_gap([lines[position] for position in by_height])
    foot = _until_gap([lines[position] for position in reversed(by_height)])
    positions = by_height[:edge] + (by_height[-foot:] if foot else [])
    return {position: _NUMBER.sub("#", lines[position].text) for position in positions}


def _until_gap(lines: Sequence[Line]) -> int:
    """How many lines from the edge inwards stand before the first gap of a line's height; 0 without one."""
    for count, (outer, inner) in enumerate(pairwise(lines), start=1):
        if count > _EDGE_LINES:
            return 0
        upper, lower = (outer, inner) if outer.top >= inner.top else (inner, outer)
        if upper.bottom - lower.top >= outer.size:
            return count
    return 0
