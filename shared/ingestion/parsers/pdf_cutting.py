"""Parts of a PDF's pages as pictures, and what the file says of itself. PDFium: worker process only."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from shared.ingestion.parsers.pdf import document_title, metadata_value, open_pdf
from shared.models.layout import LayoutPiece, PageArea

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
