"""One page of a PDF as a picture, with its words and where they stand. Runs in the worker process only."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from shared.documents.page_models import PageSheet
from shared.evidence.models import PageArea, PageWord
from shared.ingestion.models import LayoutPiece
from shared.ingestion.parsers.pdf import document_title, metadata_value, open_pdf
from shared.ingestion.parsers.pdf_forms import flatten, open_form
from shared.platform.errors import BadDocumentError, NotFoundError

if TYPE_CHECKING:
    from PIL.Image import Image


_DPI = 150  # as figures that our own parser finds
_MAX_SIDE_PX = 2000


class PdfPages:
    """An open PDF. A context manager."""

    def __init__(self, path: Path) -> None:
        """
        Raises:
            BadDocumentError: encrypted, damaged beyond reading, or without pages.
        """
        self._document = open_pdf(path)
        self.count = len(self._document)
        self.title = document_title(self._document)
        self.author = metadata_value(self._document, "Author")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._document.close()

    def cut(self, piece: LayoutPiece) -> "Image | None":
        """What the piece's area shows; None when it has none, or the page cannot be drawn."""
        import pypdfium2

        number = piece.page_number
        if piece.area is None or number is None or not 1 <= number <= self.count:
            return None
        try:
            with self._page(number) as page:
                return _rendered(page, piece.area)
        except (pypdfium2.PdfiumError, ValueError):
            return None

    @contextmanager
    def _page(self, number: int) -> Iterator[Any]:
        page = self._document[number - 1]
        try:
            yield page
        finally:
            page.close()


def _rendered(page: Any, area: PageArea) -> "Image":
    """The area as the page is shown: turned as the reader sees it, which is how services measure it, too."""
    width, height = page.get_size()
    left, right = _clipped(area.left) * width, _clipped(area.right) * width
    top, bottom = _clipped(area.top) * height, _clipped(area.bottom) * height
    scale = min(_DPI / 72, _MAX_SIDE_PX / max(right - left, bottom - top, 1.0))
    bitmap = page.render(scale=scale, crop=(left, height - bottom, width - right, top), rev_byteorder=True)
    try:
        image: Image = bitmap.to_pil().copy()
        return image
    finally:
        bitmap.close()


def _clipped(share: float) -> float:
    return min(max(share, 0.0), 1.0)


SCALE = 2.0  # pixels of a point: an A4 page is 1,190 wide, sharp in half a window of a dense screen
MAX_SIDE_PX = 3000  # of a drawing on large paper
_MAX_WORDS = 20_000
_BLANKS = frozenset({0, 0x02, 0xAD, 0xFFFE, 0xFFFF, 0x200B, 0xFEFF})  # marks of hyphens, and invisible signs
_SAME_LINE = 0.3  # of a letter's height, that letters of one word share
_DIGITS = 4  # of a fraction of the page: a tenth of a pixel


def render_page(source: Path, page_number: int, picture: Path) -> PageSheet:
    """Write the page to `picture` as PNG.

    Raises:
        BadDocumentError: the page, or the file, cannot be read.
        NotFoundError: the file has no such page.
    """
    import pypdfium2

    document = open_pdf(source)
    try:
        if not 1 <= page_number <= len(document):
            raise NotFoundError(f"There is no page {page_number}.", f"The file has {len(document)} pages.")
        open_form(document)
        page = flatten(document, page_number - 1)
        width, height = page.get_size()
        scale = min(SCALE, MAX_SIDE_PX / max(width, height, 1.0))
        image = page.render(scale=scale, may_draw_forms=False).to_pil().convert("RGB")
        image.save(picture, "PNG")
        return PageSheet(width_px=image.width, height_px=image.height, words=tuple(page_words(page)))
    except pypdfium2.PdfiumError:
        raise BadDocumentError(f"Page {page_number} cannot be read.", "Export the document again.") from None
    finally:
        document.close()


def page_words(page: Any) -> Iterator[PageWord]:
    """The words of a pypdfium2 page in content order, at most 20,000; nothing for a scan.

    Raises:
        pypdfium2.PdfiumError: the page's text cannot be read.
    """
    text_page = page.get_textpage()
    try:
        words = _Words(page, text_page)
        for count, word in enumerate(words.read()):
            if count == _MAX_WORDS:
                break
            yield word
    finally:
        text_page.close()


@dataclass
class _Word:
    """A word while it is read; its box in points, y upwards."""

    text: str
    left: float
    bottom: float
    right: float
    top: float


class _Words:
    """Reads letters, and puts them together."""

    def __init__(self, page: Any, text_page: Any) -> None:
        import pypdfium2.raw as pdfium

        self._pdfium = pdfium
        self._page = page
        self._text_page = text_page
        # Device units fine enough for fractions of four digits: PDFium turns and crops as it renders.
        self._side = 100_000

    def read(self) -> Iterator[PageWord]:
        word: _Word | None = None
        for index in range(self._text_page.count_chars()):
            code = self._pdfium.FPDFText_GetUnicode(self._text_page, index)
            box = None if _is_blank(code) else self._box(index)
            if word is not None and (box is None or not _continues(word, box)):
                yield self._finished(word)
                word = None
            if box is not None:
                word = _with_letter(word, chr(code), box)
        if word is not None:
            yield self._finished(word)

    def _box(self, index: int) -> tuple[float, float, float, float] | None:
        """Left, bottom, right, top of a letter; None for one without a place."""
        rectangle = self._pdfium.FS_RECTF()
        if not self._pdfium.FPDFText_GetLooseCharBox(self._text_page, index, rectangle):
            return None
        left, right = sorted((rectangle.left, rectangle.right))
        bottom, top = sorted((rectangle.bottom, rectangle.top))
        return (left, bottom, right, top) if right > left and top > bottom else None

    def _finished(self, word: _Word) -> PageWord:
        corners = [self._on_page(word.left, word.bottom), self._on_page(word.right, word.top)]
        (left, right), (top, bottom) = (sorted(values) for values in zip(*corners, strict=True))
        return PageWord(text=word.text, area=PageArea(left=left, top=top, right=right, bottom=bottom))

    def _on_page(self, x: float, y: float) -> tuple[float, float]:
        """A point of the page as fractions of what is rendered, from the upper left corner."""
        across, down = ctypes.c_int(), ctypes.c_int()
        self._pdfium.FPDF_PageToDevice(
            self._page, 0, 0, self._side, self._side, 0, x, y, ctypes.byref(across), ctypes.byref(down)
        )
        return _fraction(across.value / self._side), _fraction(down.value / self._side)


def _is_blank(code: int) -> bool:
    return code in _BLANKS or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF or chr(code).isspace()


def _continues(word: _Word, box: tuple[float, float, float, float]) -> bool:
    """Whether a letter belongs to the word: beside it on its line, as no blank parts joined lines."""
    left, bottom, right, top = box
    shared = min(word.top, top) - max(word.bottom, bottom)
    size = max(min(word.top - word.bottom, top - bottom), 0.1)
    gap = max(left - word.right, word.left - right)
    return (shared >= _SAME_LINE * size and gap <= 2 * size) or _is_upright(word, box)


def _is_upright(word: _Word, box: tuple[float, float, float, float]) -> bool:
    """Text that runs upwards or downwards: its letters stand above each other, close by."""
    left, bottom, right, top = box
    shared = min(word.right, right) - max(word.left, left)
    gap = max(bottom - word.top, word.bottom - top)
    return shared >= 0.8 * min(word.right - word.left, right - left) and gap <= 0.1 * (top - bottom)


def _with_letter(word: _Word | None, letter: str, box: tuple[float, float, float, float]) -> _Word:
    left, bottom, right, top = box
    if word is None:
        return _Word(letter, left, bottom, right, top)
    return _Word(
        word.text + letter,
        min(word.left, left),
        min(word.bottom, bottom),
        max(word.right, right),
        max(word.top, top),
    )


def _fraction(value: float) -> float:
    return round(min(max(value, 0.0), 1.0), _DIGITS)
