"""Detection of drawings on a PDF page from the bounds of its pictures, shapes and shadings.

Backgrounds, frames of half a page and white shapes are ignored.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from shared.ingestion.parsers.pdf_content import PageContent
from shared.ingestion.parsers.pdf_geometry import Region

# A larger object, as a share of the page, is a background.
_BACKGROUND_SHARE = 0.9
# A larger picture, as a share of the page, is a scan.
_COVERING_SHARE = 0.5
# A shape that covers a larger share of the page with fewer segments is a frame or background, not a drawing.
_FRAME_SHARE, _FRAME_SEGMENTS = 0.3, 10
# Objects that are less than this many points apart form one drawing.
_REACH = 6.0


@dataclass(frozen=True)
class Drawing:
    """Drawn objects that form one visual unit.

    Attributes:
        segment_count: total number of lines and curves; a frame has five.
        pictures: bounds of the pictures in the drawing.
        is_cut_from_scan: whether it was found in the picture of a scanned page, where it is neither text nor
            table.
    """

    region: Region
    segment_count: int = 0
    pictures: tuple[Region, ...] = ()
    is_cut_from_scan: bool = False

    def join_with(self, other: Self) -> "Drawing":
        return Drawing(
            self.region.join_with(other.region),
            self.segment_count + other.segment_count,
            self.pictures + other.pictures,
            self.is_cut_from_scan and other.is_cut_from_scan,
        )


def page_drawings(page: PageContent) -> tuple[list[Drawing], Region | None]:
    """Return the separate drawings of a page, and the bounds of a picture that covers it, or None.

    Drawings are in content order, without backgrounds.
    """
    ground = _BACKGROUND_SHARE * page.region.area
    marks = (mark for mark in _marks(page) if mark.region.area <= ground)
    return join_drawings(marks, _REACH), covering_picture(page)


def covering_picture(page: PageContent) -> Region | None:
    """Return the bounds of a picture that covers more than half of the page, as in a scan. Return None if
    there is none.
    """
    least = _COVERING_SHARE * page.region.area
    pictures = (drawn.region for drawn in page.drawn if drawn.kind == "picture")
    return next((region for region in pictures if region is not None and region.area > least), None)


def _marks(page: PageContent) -> Iterator[Drawing]:
    """Yield each visible object as a drawing. Large frames and simple backgrounds are skipped."""
    for drawn in page.drawn:
        if drawn.region is None:
            continue
        is_large = drawn.region.area > _FRAME_SHARE * page.region.area
        if drawn.kind == "picture":
            yield Drawing(drawn.region, pictures=(drawn.region,))
        elif drawn.segment_count > _FRAME_SEGMENTS or not is_large:
            yield Drawing(drawn.region, drawn.segment_count)


def join_drawings(drawings: Iterable[Drawing], reach: float) -> list[Drawing]:
    """Merge drawings that overlap or are less than `reach` points apart."""
    apart: list[Drawing] = []
    for drawing in drawings:
        merged = drawing
        while near := [other for other in apart if other.region.overlaps(merged.region, reach)]:
            apart = [other for other in apart if not other.region.overlaps(merged.region, reach)]
            for other in near:
                merged = other.join_with(merged)
        apart.append(merged)
    return apart
