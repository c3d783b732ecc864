"""What is drawn on a PDF page beside its text: the bounds of pictures, shapes and shadings.

Left out is what nobody sees as a drawing: backgrounds, frames of half a page, and white shapes.
"""

from collections.abc import Iterable, Iterator
from ctypes import byref, c_float, c_int, c_uint
from dataclasses import dataclass
from typing import Any, Self

from shared.ingestion.parsers.pdf_geometry import (
    IDENTITY,
    Matrix,
    Region,
    object_matrix,
    object_region,
    page_objects,
    page_region,
    product,
)

_MAX_MARKS = 20_000  # of a page, letters apart; a map may hold a million, and is one drawing long before
_MAX_FORM_DEPTH = 5
_MAX_CLIP_POINTS = 12  # of a clip path; a rectangle has 4 or 5, others are not worth their bounds
_BACKGROUND_SHARE = 0.9  # of the page
_COVERING_SHARE = 0.5  # of the page
_FRAME_SHARE, _FRAME_SEGMENTS = 0.3, 10  # a frame or coloured ground so large holds more than one thing
_REACH = 6.0  # points: marks that are nearer to each other belong together
_WHITE = 250  # of 255


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


def page_drawings(page: Any) -> tuple[list[Drawing], Region | None]:
    """The drawings of a pypdfium2 page, each apart from the others, and the picture that covers it, if any.

    Drawings come in the order of the page's content, backgrounds left out.
    """
    marks = list(_Marks(page).read())
    ground = _BACKGROUND_SHARE * page_region(page).area
    drawings = joined_drawings((mark for mark in marks if mark.region.area <= ground), _REACH)
    return drawings, _covering_picture(page, marks)


def has_covering_picture(page: Any) -> bool:
    """Whether one picture takes more than half of the page, as a scan does."""
    return _covering_picture(page, _Marks(page).read()) is not None


def _covering_picture(page: Any, marks: Iterable[Drawing]) -> Region | None:
    least = _COVERING_SHARE * page_region(page).area
    return next((mark.region for mark in marks if mark.pictures and mark.region.area > least), None)


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


class _Marks:
    """Reads the objects of one page, and of the forms among them."""

    def __init__(self, page: Any) -> None:
        import pypdfium2.raw as pdfium

        self._pdfium = pdfium
        self._page = page
        self._region = page_region(page)
        self._left = _MAX_MARKS
        self._point = (c_float(), c_float())
        self._mode = (c_int(), c_int())
        self._colour = [c_uint() for _ in range(4)]

    def read(self) -> Iterator[Drawing]:
        get_type, text = self._pdfium.FPDFPageObj_GetType, self._pdfium.FPDF_PAGEOBJ_TEXT
        for drawn in page_objects(self._page):
            # Some programs write each letter as a separate object: thousands a page.
            if get_type(drawn) != text:
                yield from self._object(drawn, IDENTITY, 0)

    def _object(self, drawn: Any, outer: Matrix, depth: int) -> Iterator[Drawing]:
        pdfium = self._pdfium
        self._left -= 1
        kind = pdfium.FPDFPageObj_GetType(drawn)
        if self._left <= 0 or kind == pdfium.FPDF_PAGEOBJ_TEXT:
            return
        if kind != pdfium.FPDF_PAGEOBJ_FORM:
            mark = self._mark(drawn, kind, outer)
            if mark is not None:
                yield mark
        elif depth < _MAX_FORM_DEPTH:
            matrix = product(object_matrix(drawn), outer)
            for index in range(pdfium.FPDFFormObj_CountObjects(drawn)):
                yield from self._object(pdfium.FPDFFormObj_GetObject(drawn, index), matrix, depth + 1)

    def _mark(self, drawn: Any, kind: int, outer: Matrix) -> Drawing | None:
        """A picture, path or shading; None for what is not seen, and for grounds and frames."""
        pdfium = self._pdfium
        if kind == pdfium.FPDF_PAGEOBJ_PATH and not self._is_inked(drawn):
            return None
        region = self._visible_region(drawn, outer)
        if region is None:
            return None
        if kind == pdfium.FPDF_PAGEOBJ_IMAGE:
            return Drawing(region, pictures=(region,))
        segment_count = max(pdfium.FPDFPath_CountSegments(drawn), 1)
        is_frame = segment_count <= _FRAME_SEGMENTS and region.area > _FRAME_SHARE * self._region.area
        return None if is_frame else Drawing(region, segment_count)

    def _visible_region(self, drawn: Any, outer: Matrix) -> Region | None:
        """Its bounds on the page, as far as not clipped; None for what is not seen."""
        bounds = object_region(drawn)
        if bounds is None:
            return None
        region = bounds.moved(outer).common(self._region)
        clip = self._clip(drawn)
        if clip is not None:
            region = region.common(clip.moved(outer))
        return region if region.width >= 0 and region.height >= 0 else None

    def _clip(self, drawn: Any) -> Region | None:
        """Bounds of its clip path where that is a simple one."""
        pdfium = self._pdfium
        clip = pdfium.FPDFPageObj_GetClipPath(drawn)
        if not clip or pdfium.FPDFClipPath_CountPaths(clip) != 1:
            return None
        count = pdfium.FPDFClipPath_CountPathSegments(clip, 0)
        if not 3 <= count <= _MAX_CLIP_POINTS:
            return None
        x, y = self._point
        xs, ys = [], []
        for index in range(count):
            segment = pdfium.FPDFClipPath_GetPathSegment(clip, 0, index)
            pdfium.FPDFPathSegment_GetPoint(segment, byref(x), byref(y))
            xs.append(x.value)
            ys.append(y.value)
        return Region(min(xs), min(ys), max(xs), max(ys))

    def _is_inked(self, path: Any) -> bool:
        """Whether the path leaves anything to see on white paper."""
        fill, stroke = self._mode
        if not self._pdfium.FPDFPath_GetDrawMode(path, byref(fill), byref(stroke)):
            return False
        if stroke.value:
            return True
        red, green, blue, alpha = self._colour
        known = self._pdfium.FPDFPageObj_GetFillColor(
            path, byref(red), byref(green), byref(blue), byref(alpha)
        )
        is_white = known and min(red.value, green.value, blue.value) >= _WHITE
        return bool(fill.value) and not is_white
