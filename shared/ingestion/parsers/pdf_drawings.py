"""What is drawn on a PDF page beside its text: the bounds of pictures, shapes and shadings.

Left out is what nobody sees as a drawing: backgrounds, frames of half a page, and white shapes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from shared.ingestion.parsers.pdf_content import PageContent
from shared.ingestion.parsers.pdf_geometry import Region

_BACKGROUND_SHARE = 0.9  # of the page
_COVERING_SHARE = 0.5  # of the page
_FRAME_SHARE, _FRAME_SEGMENTS = 0.3, 10  # a frame or coloured ground so large holds more than one thing
_REACH = 6.0  # points: marks that are nearer to each other belong together


@dataclass(frozen=True)
class Drawing:
    """Marks that belong together.

    Attributes:
        segment_count: lines and curves that it is made of; a frame has five.
        pictures: bounds of the pictures among them.
        is_cut_from_scan: found in the picture of a page; it is known to be neither text nor table.
    """

    region: Region
    segment_count: int = 0
    pictures: tuple[Region, ...] = ()
    is_cut_from_scan: bool = False

    def joined(self, other: Self) -> "Drawing":
        return Drawing(
            self.region.joined(other.region),
            self.segment_count + other.segment_count,
            self.pictures + other.pictures,
            self.is_cut_from_scan and other.is_cut_from_scan,
        )


def page_drawings(page: PageContent) -> tuple[list[Drawing], Region | None]:
    """Return the drawings of a page, each apart from the others, and the picture that covers it, if any.

    Drawings come in the order of the page's content, backgrounds left out.
    """
    ground = _BACKGROUND_SHARE * page.region.area
    marks = (mark for mark in _marks(page) if mark.region.area <= ground)
    return joined_drawings(marks, _REACH), covering_picture(page)


def covering_picture(page: PageContent) -> Region | None:
    """Return the bounds of a picture that takes more than half of the page, as a scan does."""
    least = _COVERING_SHARE * page.region.area
    pictures = (drawn.region for drawn in page.drawn if drawn.kind == "picture")
    return next((region for region in pictures if region is not None and region.area > least), None)


def _marks(page: PageContent) -> Iterator[Drawing]:
    """Each visible object as a drawing, grounds and frames left out."""
    for drawn in page.drawn:
        if drawn.region is None:
            continue
        is_large = drawn.region.area > _FRAME_SHARE * page.region.area
        if drawn.kind == "picture":
            yield Drawing(drawn.region, pictures=(drawn.region,))
        elif drawn.segment_count > _FRAME_SEGMENTS or not is_large:
            yield Drawing(drawn.region, drawn.segment_count)


def joined_drawings(drawings: Iterable[Drawing], reach: float) -> list[Drawing]:
    """Drawings that meet, or come nearer than `reach`, become one."""
    apart: list[Drawing] = []
    for drawing in drawings:
        merged = drawing
        while near := [other for other in apart if other.region.overlaps(merged.region, reach)]:
            apart = [other for other in apart if not other.region.overlaps(merged.region, reach)]
            for other in near:
                merged = other.joined(merged)
        apart.append(merged)
    return apart
