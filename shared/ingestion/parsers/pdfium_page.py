"""Conversion of PDF pages to plain data types, and rendering of pages.

Only this module, `pdfium_text`, `pdfium_objects` and `pdfium_forms` access PDFium's structures.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shared.ingestion.parsers.pdf_content import FormField, PageContent, TaggedHeading, TextLine, Word
from shared.ingestion.parsers.pdf_geometry import IDENTITY, Matrix, Region, pixels_of, upright_matrix
from shared.ingestion.parsers.pdfium_forms import form_fields
from shared.ingestion.parsers.pdfium_objects import drawn_objects, page_objects, tagged_headings
from shared.ingestion.parsers.pdfium_text import text_lines

if TYPE_CHECKING:
    from PIL.Image import Image

# Minimum number of rotated letters on a rotated page. The axis title of a chart has fewer.
_MIN_TURNED_CHARS = 60
# Minimum share of the letters that have the same rotation on a rotated page.
_TURNED_SHARE = 0.8


class Sheet:
    """An open pypdfium2 page with its content and its number, counted from 1.

    Args:
        is_tagged: whether the document has a structure tree.

    Raises:
        pypdfium2.PdfiumError: the text of the page cannot be read.
    """

    def __init__(self, page: Any, number: int, *, is_tagged: bool = False) -> None:
        self.page = page
        self.number = number
        self.content = read_page(page, is_tagged=is_tagged)

    def picture(self, scale: float, **options: Any) -> "Image":
        """Render the page at `scale` pixels per point, in its reading orientation.

        Raises:
            pypdfium2.PdfiumError: the page cannot be rendered.
            ValueError: `crop` leaves no area.
        """
        return render(self.page, scale, rotation=90 * self.content.quarters, **options)

    def part(self, region: Region, dpi: int, max_side_px: int) -> "Image":
        """Render a region of the page at `dpi`, or at a lower resolution if the picture would exceed
        `max_side_px`.

        Raises:
            pypdfium2.PdfiumError: the page cannot be rendered.
            ValueError: the region is empty.
        """
        scale = min(dpi / 72, max_side_px / max(region.width, region.height, 1.0))
        whole = self.content.region
        width, height = round(whole.width * scale), round(whole.height * scale)
        left, top, right, bottom = pixels_of(region, whole, (width, height))
        crop = tuple(max(side, 0) / scale for side in (left, height - bottom, width - right, top))
        return self.picture(scale, crop=crop, rev_byteorder=True)


def render(page: Any, scale: float, **options: Any) -> "Image":
    """Render a pypdfium2 page at `scale` pixels per point.

    Raises:
        pypdfium2.PdfiumError: the page cannot be rendered.
        ValueError: `crop` leaves no area.
    """
    bitmap = page.render(scale=scale, **options)
    try:
        # Copy the picture, because the bitmap's memory belongs to PDFium.
        image: Image = bitmap.to_pil().copy()
        return image
    finally:
        bitmap.close()


def shown_matrix(page: Any) -> Matrix:
    """Return the transformation from PDF user space to the page as shown by a viewer."""
    return upright_matrix(Region(*page.get_bbox()), page.get_rotation() // 90)


def read_page(page: Any, *, is_tagged: bool = False) -> PageContent:
    """Read the content of a pypdfium2 page, rotated so that most of its text is upright.

    Args:
        is_tagged: whether the document has a structure tree.

    Raises:
        pypdfium2.PdfiumError: the page's text cannot be read.
    """
    objects = list(page_objects(page.raw))
    lines = tuple(text_lines(page))
    box, viewer_quarters = Region(*page.get_bbox()), page.get_rotation() // 90
    quarters = _reading_quarters(lines, viewer_quarters)
    matrix = upright_matrix(box, quarters)
    region = box.transform(matrix)
    return PageContent(
        region=region,
        lines=lines if matrix is IDENTITY else tuple(_moved_line(line, matrix) for line in lines),
        drawn=tuple(drawn_objects(objects, region, matrix)),
        fields=tuple(_moved_field(one, matrix) for one in form_fields(page)),
        headings=tuple(_moved_heading(one, matrix) for one in tagged_headings(page.raw, objects))
        if is_tagged
        else (),
        has_objects=bool(objects),
        quarters=(quarters - viewer_quarters) % 4,
    )


def _reading_quarters(lines: Sequence[TextLine], viewer_quarters: int) -> int:
    """Return the number of clockwise quarter turns that make most letters upright. If that is unclear, return
    the viewer's rotation.
    """
    chars = Counter[int]()
    for line in lines:
        chars[line.quarters] += sum(len(word.text) for word in line.words)
    quarters, count = max(chars.items(), key=lambda item: item[1], default=(viewer_quarters, 0))
    is_clear = chars.total() >= _MIN_TURNED_CHARS and count >= _TURNED_SHARE * chars.total()
    return quarters if is_clear else viewer_quarters


def _moved_line(line: TextLine, matrix: Matrix) -> TextLine:
    words = [
        Word(word.text, box.left, box.bottom, box.right, box.top)
        for word in line.words
        for box in [Region(word.left, word.bottom, word.right, word.top).transform(matrix)]
    ]
    return line._replace(words=tuple(words))


def _moved_field(field: FormField, matrix: Matrix) -> FormField:
    return field._replace(box=field.box.transform(matrix))


def _moved_heading(heading: TaggedHeading, matrix: Matrix) -> TaggedHeading:
    return heading._replace(box=heading.box.transform(matrix))
