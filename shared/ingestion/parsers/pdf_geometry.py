"""Rectangles on a PDF page, and the way between points and pixels.

Points are those of the page's own coordinates: y grows upwards, the origin may be anywhere, and the page may
be turned. Pixels are those of the page as it is shown: y grows downwards from the upper left corner. PDFium
converts. Runs in the worker process only.
"""

from ctypes import byref, c_double, c_int
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from PIL.Image import Image

Matrix = tuple[float, float, float, float, float, float]
IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


@dataclass(frozen=True)
class Region:
    """A rectangle in points."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.top - self.bottom

    @property
    def area(self) -> float:
        return max(self.width, 0.0) * max(self.height, 0.0)

    def holds(self, x: float, y: float) -> bool:
        return self.left <= x <= self.right and self.bottom <= y <= self.top

    def overlaps(self, other: Self, reach: float = 0.0) -> bool:
        """Whether both meet, or come nearer than `reach`."""
        return (
            self.left - reach < other.right
            and other.left - reach < self.right
            and self.bottom - reach < other.top
            and other.bottom - reach < self.top
        )

    def common(self, other: Self) -> "Region":
        """What both cover; its area is 0 when they do not meet."""
        return Region(
            max(self.left, other.left),
            max(self.bottom, other.bottom),
            min(self.right, other.right),
            min(self.top, other.top),
        )

    def joined(self, other: Self) -> "Region":
        """The smallest that covers both."""
        return Region(
            min(self.left, other.left),
            min(self.bottom, other.bottom),
            max(self.right, other.right),
            max(self.top, other.top),
        )

    def grown(self, margin: float) -> "Region":
        """With a margin on all sides."""
        return Region(self.left - margin, self.bottom - margin, self.right + margin, self.top + margin)

    def moved(self, matrix: Matrix) -> "Region":
        """The bounds of the rectangle after a transformation."""
        if matrix is IDENTITY:
            return self
        a, b, c, d, e, f = matrix
        corners = [
            (a * x + c * y + e, b * x + d * y + f)
            for x in (self.left, self.right)
            for y in (self.bottom, self.top)
        ]
        xs, ys = zip(*corners, strict=True)
        return Region(min(xs), min(ys), max(xs), max(ys))


def sorted_region(rectangle: Any) -> Region:
    """An FS_RECTF, whose sides may come in any order."""
    left, right = sorted((rectangle.left, rectangle.right))
    bottom, top = sorted((rectangle.bottom, rectangle.top))
    return Region(left, bottom, right, top)


def page_region(page: Any) -> Region:
    """The visible part of a pypdfium2 page."""
    return Region(*page.get_cropbox())


def product(inner: Matrix, outer: Matrix) -> Matrix:
    """First `inner`, then `outer`. Source: PDF 32000-1, 8.3.4."""
    a, b, c, d, e, f = inner
    oa, ob, oc, od, oe, of = outer
    return (
        a * oa + b * oc,
        a * ob + b * od,
        c * oa + d * oc,
        c * ob + d * od,
        e * oa + f * oc + oe,
        e * ob + f * od + of,
    )


def pixels_of(page: Any, region: Region, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Left, top, right, bottom of a region in a picture of the whole page, `size` pixels wide and high."""
    import pypdfium2.raw as pdfium

    x, y = c_int(), c_int()
    corners = []
    for corner in ((region.left, region.bottom), (region.right, region.top)):
        pdfium.FPDF_PageToDevice(page, 0, 0, *size, 0, *corner, byref(x), byref(y))
        corners.append((x.value, y.value))
    (left, right), (top, bottom) = (sorted(sides) for sides in zip(*corners, strict=True))
    return left, top, right, bottom


def region_of(page: Any, box: tuple[int, int, int, int], size: tuple[int, int]) -> Region:
    """The inverse of `pixels_of`."""
    import pypdfium2.raw as pdfium

    x, y = c_double(), c_double()
    corners = []
    for corner in (box[:2], box[2:]):
        pdfium.FPDF_DeviceToPage(page, 0, 0, *size, 0, *corner, byref(x), byref(y))
        corners.append((x.value, y.value))
    (left, right), (bottom, top) = (sorted(sides) for sides in zip(*corners, strict=True))
    return Region(left, bottom, right, top)


def rendered(page: Any, scale: float, **options: Any) -> "Image":
    """A picture of the page, `scale` pixels a point.

    Raises:
        pypdfium2.PdfiumError: the page cannot be rendered.
        ValueError: `crop` leaves nothing of it.
    """
    bitmap = page.render(scale=scale, **options)
    try:
        image: Image = bitmap.to_pil().copy()  # the bitmap's memory is PDFium's
        return image
    finally:
        bitmap.close()
