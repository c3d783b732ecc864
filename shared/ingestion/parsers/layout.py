"""A layout that a parser service found, as a parsed document. The figures are cut out here, from the file.

Runs in the worker process. Of a picture file the whole page is the figure, as without a service.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shared.documents.models import Element, ParsedDocument
from shared.ingestion.models import Layout, LayoutPiece
from shared.ingestion.parsers.context import Workbench
from shared.ingestion.parsers.image import parse_pages
from shared.ingestion.parsers.pdf_lines import is_list_item, without_bullet
from shared.ingestion.parsers.pdf_page import PdfPages
from shared.ingestion.parsers.tables import table_elements

if TYPE_CHECKING:
    from PIL.Image import Image

Cut = Callable[[LayoutPiece], "Image | None"]


def parse_pdf_layout(path: Path, layout: Layout, bench: Workbench) -> ParsedDocument | None:
    """The PDF by its layout; None when the service read fewer pages than there are.

    Raises:
        BadDocumentError: encrypted, damaged beyond reading, or without pages.
    """
    with PdfPages(path) as pages:
        if layout.page_count < pages.count:
            return None
        elements = tuple(layout_elements(layout.pieces, pages.cut, bench))
        return ParsedDocument(
            elements=elements, page_count=pages.count, title=pages.title, author=pages.author
        )


def parse_image_layout(path: Path, layout: Layout, bench: Workbench) -> ParsedDocument | None:
    """The picture, and after the figure of each page what the service found on it; None as above.

    Raises:
        BadDocumentError: no picture, damaged, or too large to decode.
    """
    by_page: dict[int, list[LayoutPiece]] = defaultdict(list)
    for piece in layout.pieces:
        if piece.kind != "figure":
            by_page[piece.page_number or 1].append(piece)
    document = parse_pages(
        path, bench, lambda number: tuple(layout_elements(by_page[number], lambda _: None, bench))
    )
    return document if layout.page_count >= (document.page_count or 0) else None


def layout_elements(pieces: Sequence[LayoutPiece], cut: Cut, bench: Workbench) -> Iterator[Element]:
    """The elements that the pieces become; figures that cannot be cut out, and decorations, are left out."""
    for piece in pieces:
        if piece.kind == "table":
            yield from table_elements(piece.rows, piece.page_number)
        elif piece.kind == "figure":
            yield from _figure(piece, cut, bench)
        else:
            yield _text(piece)


def _text(piece: LayoutPiece) -> Element:
    if piece.kind == "paragraph" and is_list_item(piece.text):
        bare = without_bullet(piece.text)
        text = f"- {bare}" if bare != piece.text else piece.text
        return Element(kind="list_item", text=text, page_number=piece.page_number)
    return Element(kind=piece.kind, text=piece.text, page_number=piece.page_number, level=piece.level)


def _figure(piece: LayoutPiece, cut: Cut, bench: Workbench) -> Iterator[Element]:
    if bench.figures.is_full:
        return
    image = cut(piece)
    picture = bench.figures.add(image, is_named=bool(piece.text or piece.words)) if image else None
    if picture is not None:
        named = picture.model_copy(update={"words": piece.words})
        yield Element(kind="figure", text=piece.text, page_number=piece.page_number, picture=named)
