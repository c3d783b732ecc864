"""Rendering of a PDF page as a picture with word positions, for use in the worker process only."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pypdfium2

from shared.documents.page_models import PageSheet
from shared.evidence.models import PageArea, PageWord
from shared.ingestion.parsers.pdf import open_pdf
from shared.ingestion.parsers.pdf_content import HYPHEN_MARK
from shared.ingestion.parsers.pdf_geometry import Region
from shared.ingestion.parsers.pdfium_forms import flatten, open_form
from shared.ingestion.parsers.pdfium_page import shown_matrix
from shared.ingestion.parsers.pdfium_text import text_lines
from shared.platform.errors import BadDocumentError, NotFoundError

# Pixels per point. An A4 page is 1,190 pixels wide, which is sharp on high-density screens.
SCALE = 2.0
# Maximum width and height of a rendered page, which matters for large paper sizes.
MAX_SIDE_PX = 3000
_MAX_WORDS = 20_000
# Number of decimal places of a position, which is a fraction of the page. One unit is about a tenth of a
# pixel.
_DIGITS = 4


def render_page(source: Path, page_number: int, picture: Path) -> PageSheet:
    """Render a page to the PNG file `picture`, and return the size and words of the page. Pages are counted
    from 1.

    Raises:
        BadDocumentError: the page or the file cannot be read.
        NotFoundError: the page doesn't exist.
    """
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
    """Yield the words of a pypdfium2 page in content order, at most 20,000. Scanned pages have none.

    Raises:
        pypdfium2.PdfiumError: the text of the page cannot be read.
    """
    words = (word for line in text_lines(page) for word in line.words)
    matrix = shown_matrix(page)
    width, height = page.get_size()
    for word in islice(words, _MAX_WORDS):
        box = Region(word.left, word.bottom, word.right, word.top).transform(matrix)
        if box.area <= 0:
            continue
        sides = (box.left / width, 1 - box.top / height, box.right / width, 1 - box.bottom / height)
        left, top, right, bottom = (round(min(max(side, 0.0), 1.0), _DIGITS) for side in sides)
        area = PageArea(left=left, top=top, right=right, bottom=bottom)
        yield PageWord(text=word.text.removesuffix(HYPHEN_MARK), area=area)
