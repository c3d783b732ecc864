"""Conversion of a parser service's layout to a parsed document, with figures cropped from the original file.

It runs in the worker process. In a picture file, each whole page is a figure, as without a service.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pypdfium2
from PIL.Image import Image

from shared.documents.models import Element, ParsedDocument
from shared.ingestion.models import Layout, LayoutPiece
from shared.ingestion.parsers.context import ParseContext
from shared.ingestion.parsers.image import parse_image
from shared.ingestion.parsers.pdf import document_author, document_title, open_pdf
from shared.ingestion.parsers.pdf_lines import paragraph_element
from shared.ingestion.parsers.pdfium_page import render
from shared.ingestion.parsers.tables import merged_table_elements

# The resolution of the built-in PDF parser.
_DPI = 150
_MAX_SIDE_PX = 2000

Cut = Callable[[LayoutPiece], "Image | None"]


def parse_pdf_layout(path: Path, layout: Layout, context: ParseContext) -> ParsedDocument | None:
    """Convert the layout of a PDF to elements. Return None if the service read fewer pages than the file has.

    Raises:
        BadDocumentError: the file is encrypted, too damaged to read, or without pages.
    """
    with closing(open_pdf(path)) as document:
        if layout.page_count < len(document):
            return None
        elements = layout_elements(layout.pieces, lambda piece: cut_figure(document, piece), context)
        return ParsedDocument(
            elements=tuple(elements),
            page_count=len(document),
            title=document_title(document),
            author=document_author(document),
        )


def cut_figure(document: Any, piece: LayoutPiece) -> Image | None:
    """Return a picture of a figure, cropped from its rendered page. Return None if its area is unknown or the
    page can't be rendered.

    The page is rotated as in a viewer, which matches the coordinates of services.
    """
    number, area = piece.page_number, piece.area
    if area is None or number is None or not 1 <= number <= len(document):
        return None
    try:
        with closing(document[number - 1]) as page:
            width, height = page.get_size()
            left, right = _clipped(area.left) * width, _clipped(area.right) * width
            top, bottom = _clipped(area.top) * height, _clipped(area.bottom) * height
            scale = min(_DPI / 72, _MAX_SIDE_PX / max(right - left, bottom - top, 1.0))
            crop = (left, height - bottom, width - right, top)
            return render(page, scale, crop=crop, rev_byteorder=True)
    except (pypdfium2.PdfiumError, ValueError):
        return None


def _clipped(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def parse_image_layout(path: Path, layout: Layout, context: ParseContext) -> ParsedDocument | None:
    """Convert the layout of a picture file to elements. Each page is a figure, followed by the text that the
    service found on it.

    Return None if the service read fewer pages than the file has.

    Raises:
        BadDocumentError: the file is not a picture, damaged, or too large to decode.
    """
    by_page: dict[int, list[LayoutPiece]] = defaultdict(list)
    for piece in layout.pieces:
        if piece.kind != "figure":
            by_page[piece.page_number or 1].append(piece)
    document = parse_image(
        path, context, lambda number: tuple(layout_elements(by_page[number], lambda _: None, context))
    )
    return document if layout.page_count >= (document.page_count or 0) else None


def layout_elements(pieces: Sequence[LayoutPiece], cut: Cut, context: ParseContext) -> Iterator[Element]:
    """Yield the document elements for layout pieces. Decorations and figures that can't be cropped are
    skipped.
    """
    for piece in pieces:
        if piece.kind == "table":
            yield from merged_table_elements(piece.rows, piece.page_number)
        elif piece.kind == "figure":
            yield from _figure(piece, cut, context)
        elif piece.kind == "paragraph":
            yield paragraph_element(piece.text, piece.page_number)
        else:
            yield Element(kind=piece.kind, text=piece.text, page_number=piece.page_number, level=piece.level)


def _figure(piece: LayoutPiece, cut: Cut, context: ParseContext) -> Iterator[Element]:
    if context.figures.is_full:
        return
    image = cut(piece)
    picture = context.figures.add(image, is_named=bool(piece.text or piece.words)) if image else None
    if picture is not None:
        figure = picture.model_copy(update={"words": piece.words})
        yield Element(kind="figure", text=piece.text, page_number=piece.page_number, picture=figure)
