"""Reads a PDF page into plain values.

Only this module, `pdfium_text`, `pdfium_objects` and `pdfium_forms` walk PDFium's structures.
"""

from typing import Any

from shared.ingestion.parsers.pdf_content import PageContent
from shared.ingestion.parsers.pdf_geometry import page_region
from shared.ingestion.parsers.pdfium_forms import form_fields
from shared.ingestion.parsers.pdfium_objects import drawn_objects, page_objects, tagged_headings
from shared.ingestion.parsers.pdfium_text import text_lines


def read_page(page: Any, *, is_tagged: bool = False) -> PageContent:
    """Read a pypdfium2 page.

    Args:
        is_tagged: whether the document has a structure tree.

    Raises:
        pypdfium2.PdfiumError: the page's text cannot be read.
    """
    objects = list(page_objects(page.raw))
    return PageContent(
        region=page_region(page),
        lines=tuple(text_lines(page)),
        drawn=tuple(drawn_objects(objects, page_region(page))),
        fields=tuple(form_fields(page)),
        headings=tuple(tagged_headings(page.raw, objects)) if is_tagged else (),
        has_objects=bool(objects),
        is_turned=bool(page.get_rotation()),
    )
