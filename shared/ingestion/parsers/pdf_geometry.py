"""Rectangles on a PDF page, and conversion between points and pixels. Pure.

Points refer to the page in reading orientation: y grows upwards from the lower left corner of the visible
part. Pixels refer to a picture of the page: y grows downwards from the upper left corner.
"""

from dataclasses import dataclass
from typing import Any, Self

Matrix = tuple[float, float, float, float, float, float]
IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
# Left, top, right and bottom in pixels.
Box = tuple[int, int, int, int]


@dataclass(frozen=True)
class Region:
    """A rectangle on a page, in points."""

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
        """Return whether the regions overlap, or are less than `reach` points apart."""
        return (
            self.left - reach < other.right
            and other.left - reach < self.right
            and self.bottom - reach < other.top
            and other.bottom - reach < self.top
        )

    def intersect(self, other: Self) -> "Region":
        """Return the intersection of both regions. Its area is 0 if they don't overlap."""
        return Region(
            max(self.left, other.left),
            max(self.bottom, other.bottom),
            min(self.right, other.right),
            min(self.top, other.top),
        )

    def join_with(self, other: Self) -> "Region":
        """Return the smallest region that contains both regions."""
        return Region(
            min(self.left, other.left),
            min(self.bottom, other.bottom),
            max(self.right, other.right),
            max(self.top, other.top),
        )

    def enlarge(self, margin: float) -> "Region":
        """Return the region enlarged by a margin on all sides."""
        return Region(self.left - margin, self.bottom - margin, self.right + margin, self.top + margin)

    def transform(self, matrix: Matrix) -> "Region":
        """Return the bounds of the region after a transformation."""
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
    """Convert a PDFium rectangle (FS_RECTF), whose sides may be swapped."""
    left, right = sorted((rectangle.left, rectangle.right))
    bottom, top = sorted((rectangle.bottom, rectangle.top))
    return Region(left, bottom, right, top)


def upright_matrix(box: Region, quarters: int) -> Matrix:
    """Return the transformation from PDF user space to the page after it was rotated clockwise by this many
    quarter turns.

    Args:
        box: visible part of the page, in user space.
        quarters: clockwise quarter turns of the page, 0 to 3.
    """
    matrices: tuple[Matrix, ...] = (
        (1.0, 0.0, 0.0, 1.0, -box.left, -box.bottom),
        (0.0, -1.0, 1.0, 0.0, -box.bottom, box.right),
        (-1.0, 0.0, 0.0, -1.0, box.right, box.top),
        (0.0, 1.0, -1.0, 0.0, box.top, -box.left),
    )
    return IDENTITY if matrices[quarters] == IDENTITY else matrices[quarters]


def product(inner: Matrix, outer: Matrix) -> Matrix:
    """Return the transformation that applies `inner`, then `outer`. Source: PDF 32000-1, 8.3.4."""
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


def pixels_of(region: Region, page: Region, size: tuple[int, int]) -> Box:
    """Convert a region to a pixel box in a picture of the whole page. `size` is the picture's width and
    height.
    """
    x, y = size[0] / page.width, size[1] / page.height
    return (
        round(region.left * x),
        round((page.top - region.top) * y),
        round(region.right * x),
        round((page.top - region.bottom) * y),
    )


def region_of(box: Box, page: Region, size: tuple[int, int]) -> Region:
    """Convert a pixel box in a picture of the whole page to a region. `size` is the picture's width and
    height.
    """
    x, y = page.width / size[0], page.height / size[1]
    left, top, right, bottom = box
    return Region(left * x, page.top - bottom * y, right * x, page.top - top * y)
