"""One page of a PDF as a picture, with its words and where they stand. Runs in the worker process only."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.documents.page_models import PageSheet
from shared.evidence.models import PageArea, PageWord
from shared.ingestion.parsers.pdf import open_pdf
from shared.ingestion.parsers.pdf_forms import flatten, open_form
from shared.ingestion.parsers.pdf_geometry import Region, pixels_of, sorted_region
from shared.platform.errors import BadDocumentError, NotFoundError

SCALE = 2.0  # pixels of a point: an A4 page is 1,190 wide, sharp in half a window of a dense screen
MAX_SIDE_PX = 3000  # of a drawing on large paper
_MAX_WORDS = 20_000
_BLANKS = frozenset({0, 0x02, 0xAD, 0xFFFE, 0xFFFF, 0x200B, 0xFEFF})  # marks of hyphens, and invisible signs
_SAME_LINE = 0.3  # of a letter's height, that letters of one word share
_UNITS = 100_000
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
    """A word while it is read."""

    text: str
    box: Region


class _Words:
    """Reads letters, and puts them together."""

    def __init__(self, page: Any, text_page: Any) -> None:
        import pypdfium2.raw as pdfium

        self._pdfium = pdfium
        self._page = page
        self._text_page = text_page

    def read(self) -> Iterator[PageWord]:
        word: _Word | None = None
        for index in range(self._text_page.count_chars()):
            code = self._pdfium.FPDFText_GetUnicode(self._text_page, index)
            box = None if _is_blank(code) else self._box(index)
            if word is not None and (box is None or not _continues(word.box, box)):
                yield self._finished(word)
                word = None
            if box is not None:
                letter = chr(code)
                word = _Word(word.text + letter, word.box.joined(box)) if word else _Word(letter, box)
        if word is not None:
            yield self._finished(word)

    def _box(self, index: int) -> Region | None:
        """Where a letter stands; None for one without a place."""
        rectangle = self._pdfium.FS_RECTF()
        if not self._pdfium.FPDFText_GetLooseCharBox(self._text_page, index, rectangle):
            return None
        box = sorted_region(rectangle)
        return box if box.area > 0 else None

    def _finished(self, word: _Word) -> PageWord:
        # Device units fine enough for fractions of four digits: PDFium turns and crops as it renders.
        sides = pixels_of(self._page, word.box, (_UNITS, _UNITS))
        left, top, right, bottom = (round(min(max(side / _UNITS, 0.0), 1.0), _DIGITS) for side in sides)
        return PageWord(text=word.text, area=PageArea(left=left, top=top, right=right, bottom=bottom))


def _is_blank(code: int) -> bool:
    return code in _BLANKS or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF or chr(code).isspace()


def _continues(word: Region, letter: Region) -> bool:
    """Whether a letter belongs to the word: beside it on its line, as no blank parts joined lines."""
    shared = min(word.top, letter.top) - max(word.bottom, letter.bottom)
    size = max(min(word.height, letter.height), 0.1)
    gap = max(letter.left - word.right, word.left - letter.right)
    return (shared >= _SAME_LINE * size and gap <= 2 * size) or _is_upright(word, letter)


def _is_upright(word: Region, letter: Region) -> bool:
    """Text that runs upwards or downwards: its letters stand above each other, close by."""
    shared = min(word.right, letter.right) - max(word.left, letter.left)
    gap = max(letter.bottom - word.top, word.bottom - letter.top)
    return shared >= 0.8 * min(word.width, letter.width) and gap <= 0.1 * letter.height
