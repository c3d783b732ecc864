"""Reading of drawn objects and tagged headings from PDFium's page objects and the structure tree.

It may only be used in the worker process.
"""

import ctypes
import re
from collections.abc import Iterator, Mapping, Sequence
from ctypes import byref, c_float, c_int, c_uint
from itertools import islice
from typing import Any

import pypdfium2.raw as pdfium

from shared.ingestion.parsers.pdf_content import Drawn, Rule, TaggedHeading
from shared.ingestion.parsers.pdf_geometry import IDENTITY, Matrix, Region, product

# Limits per page, without text objects. A map may have a million, but a fraction of them is enough to detect
# a drawing.
_MAX_OBJECTS = 20_000
_MAX_FORM_DEPTH = 5
# Maximum number of segments per path. Longer paths belong to maps or plots and contain no table rules.
_MAX_SEGMENTS = 2000
# Maximum number of points in a clip path. A rectangle has 4 or 5; more complex clip paths are ignored.
_MAX_CLIP_POINTS = 12
# Minimum length of a rule, in points. Shorter edges are the ends of thin rectangles.
_MIN_RULE = 3.0
# A bar thinner than this many points is a line.
_THIN = 2.0
# Tolerance for slanted edges, in points.
_STRAIGHT = 1.0
# Brightness thresholds, from 0 (black) to 255 (white).
_WHITE, _PALE = 250, 200
# Number of text objects to sample when checking for hidden text.
_HIDDEN_SAMPLE = 50

_HEADING = re.compile(r"H([1-6])?\Z")
_TYPE_BYTES = 64
_MAX_TAG_DEPTH = 30
_MAX_TAGS = 20_000
# Points added on both sides of a tagged heading, because its words may be separate objects with tight boxes
# and gaps between them.
_BLANK = 3.0


def page_objects(page: Any) -> Iterator[Any]:
    """Yield the top-level objects of a page in content order. Form objects are not expanded."""
    get = pdfium.FPDFPage_GetObject
    return (get(page, index) for index in range(pdfium.FPDFPage_CountObjects(page)))


def drawn_objects(objects: Sequence[Any], region: Region, matrix: Matrix) -> Iterator[Drawn]:
    """Yield the paths, pictures and shadings among the objects of a page, including objects nested in form
    objects.

    Args:
        region: visible part of the page.
        matrix: transformation from PDF user space to `region`.
    """
    return _Objects(region).read(objects, matrix)


class _Objects:
    """Reader for the drawn objects of one page, including objects nested in form objects."""

    def __init__(self, region: Region) -> None:
        self._pdfium = pdfium
        self._region = region
        self._left = _MAX_OBJECTS
        self._x, self._y = c_float(), c_float()
        self._sides = [c_float() for _ in range(4)]
        self._fill, self._stroke = c_int(), c_int()
        self._colour = [c_uint() for _ in range(4)]

    def read(self, objects: Sequence[Any], matrix: Matrix) -> Iterator[Drawn]:
        get_type, text = self._pdfium.FPDFPageObj_GetType, self._pdfium.FPDF_PAGEOBJ_TEXT
        for drawn in objects:
            # Skip text, because some programs write each letter as a separate object, which makes thousands
            # per page.
            kind = get_type(drawn)
            if kind != text:
                yield from self._object(drawn, kind, matrix, 0)

    def _object(self, drawn: Any, kind: int, outer: Matrix, depth: int) -> Iterator[Drawn]:
        pdfium = self._pdfium
        self._left -= 1
        if self._left <= 0 or kind == pdfium.FPDF_PAGEOBJ_TEXT:
            return
        if kind == pdfium.FPDF_PAGEOBJ_PATH:
            yield from self._path(drawn, outer)
        elif kind == pdfium.FPDF_PAGEOBJ_IMAGE:
            yield Drawn("picture", self._visible_region(drawn, self._bounds(drawn, outer), outer))
        elif kind != pdfium.FPDF_PAGEOBJ_FORM:
            yield Drawn("shading", self._visible_region(drawn, self._bounds(drawn, outer), outer))
        elif depth < _MAX_FORM_DEPTH:
            matrix = product(self._matrix(drawn), outer)
            for index in range(pdfium.FPDFFormObj_CountObjects(drawn)):
                part = pdfium.FPDFFormObj_GetObject(drawn, index)
                yield from self._object(part, pdfium.FPDFPageObj_GetType(part), matrix, depth + 1)

    def _path(self, path: Any, outer: Matrix) -> Iterator[Drawn]:
        if not self._pdfium.FPDFPath_GetDrawMode(path, self._fill, self._stroke):
            return
        is_stroked = bool(self._stroke.value)
        if not is_stroked and not self._fill.value:
            return
        bounds = self._bounds(path, outer)
        count = self._pdfium.FPDFPath_CountSegments(path)
        rules: tuple[Rule, ...] = ()
        is_thin = bounds is not None and min(bounds.width, bounds.height) <= _THIN
        if bounds is not None and is_thin:
            rules = _middle_line(bounds)
        elif count <= _MAX_SEGMENTS:
            rules = tuple(self._rules(path, count, product(self._matrix(path), outer)))
        shade = None if is_stroked else self._shade(path)
        region = None
        if shade is None or shade < _WHITE:
            # Don't read the clip path of a table rule, because that would cost more than everything else.
            region = self._visible_region(path, bounds, None if is_thin else outer)
        if region is not None or rules:
            yield Drawn("path", region, max(count, 1), rules, shade is not None and shade >= _PALE)

    def _rules(self, path: Any, count: int, matrix: Matrix) -> Iterator[Rule]:
        """Yield the long horizontal and vertical segments of a path, including the segments that close it."""
        pdfium, x, y = self._pdfium, self._x, self._y
        a, b, c, d, e, f = matrix
        begin = before = (0.0, 0.0)
        for index in range(count):
            segment = pdfium.FPDFPath_GetPathSegment(path, index)
            pdfium.FPDFPathSegment_GetPoint(segment, x, y)
            point = a * x.value + c * y.value + e, b * x.value + d * y.value + f
            kind = pdfium.FPDFPathSegment_GetType(segment)
            if kind == pdfium.FPDF_SEGMENT_MOVETO:
                begin = point
            elif kind == pdfium.FPDF_SEGMENT_LINETO:
                yield from _rule(before, point)
            before = point
            if pdfium.FPDFPathSegment_GetClose(segment):
                yield from _rule(before, begin)
                before = begin

    def _matrix(self, drawn: Any) -> Matrix:
        matrix = self._pdfium.FS_MATRIX()
        if not self._pdfium.FPDFPageObj_GetMatrix(drawn, byref(matrix)):
            return IDENTITY
        values = (matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f)
        return IDENTITY if values == IDENTITY else values

    def _bounds(self, drawn: Any, outer: Matrix) -> Region | None:
        left, bottom, right, top = self._sides
        if not self._pdfium.FPDFPageObj_GetBounds(drawn, left, bottom, right, top):
            return None
        return Region(left.value, bottom.value, right.value, top.value).transform(outer)

    def _visible_region(self, drawn: Any, bounds: Region | None, outer: Matrix | None) -> Region | None:
        """Return the part of an object's bounds that is visible on the page, or None if nothing is visible.

        Args:
            outer: transformation of the clip path to the page; None = ignore clipping.
        """
        if bounds is None:
            return None
        region = bounds.intersect(self._region)
        clip = self._clip(drawn) if outer is not None else None
        if clip is not None and outer is not None:
            region = region.intersect(clip.transform(outer))
        return region if region.width >= 0 and region.height >= 0 else None

    def _clip(self, drawn: Any) -> Region | None:
        """Return the bounds of the object's clip path, or None if it has none or a complex one."""
        pdfium = self._pdfium
        clip = pdfium.FPDFPageObj_GetClipPath(drawn)
        if not clip or pdfium.FPDFClipPath_CountPaths(clip) != 1:
            return None
        count = pdfium.FPDFClipPath_CountPathSegments(clip, 0)
        if not 3 <= count <= _MAX_CLIP_POINTS:
            return None
        xs, ys = [], []
        for index in range(count):
            segment = pdfium.FPDFClipPath_GetPathSegment(clip, 0, index)
            pdfium.FPDFPathSegment_GetPoint(segment, self._x, self._y)
            xs.append(self._x.value)
            ys.append(self._y.value)
        return Region(min(xs), min(ys), max(xs), max(ys))

    def _shade(self, path: Any) -> int | None:
        """Return the smallest colour component of a filled path, from 0 to 255 (white). Return None if the
        colour is unknown.
        """
        red, green, blue, alpha = self._colour
        if not self._pdfium.FPDFPageObj_GetFillColor(path, red, green, blue, alpha):
            return None
        return min(red.value, green.value, blue.value)


Point = tuple[float, float]


def _middle_line(bounds: Region) -> tuple[Rule, ...]:
    """Return the centre line of a thin bar as a rule, or an empty tuple if the bar is too short."""
    if bounds.width >= max(bounds.height, _MIN_RULE):
        return (Rule((bounds.bottom + bounds.top) / 2, bounds.left, bounds.right),)
    if bounds.height >= _MIN_RULE:
        return (Rule((bounds.left + bounds.right) / 2, bounds.bottom, bounds.top, is_vertical=True),)
    return ()


def _rule(start: Point, end: Point) -> tuple[Rule, ...]:
    """Return the segment as a rule, or an empty tuple if the segment is slanted or too short."""
    (x, y), (other_x, other_y) = start, end
    width, height = abs(other_x - x), abs(other_y - y)
    if height <= _STRAIGHT and width >= _MIN_RULE:
        return (Rule((y + other_y) / 2, min(x, other_x), max(x, other_x)),)
    if width <= _STRAIGHT and height >= _MIN_RULE:
        return (Rule((x + other_x) / 2, min(y, other_y), max(y, other_y), is_vertical=True),)
    return ()


def has_hidden_text(page: Any) -> bool:
    """Return whether most text of a page is invisible, as in the text layer that scanners add to a
    picture.
    """
    texts = islice(
        (text for text in page_objects(page) if pdfium.FPDFPageObj_GetType(text) == pdfium.FPDF_PAGEOBJ_TEXT),
        _HIDDEN_SAMPLE,
    )
    hidden: list[bool] = [
        pdfium.FPDFTextObj_GetTextRenderMode(text) == pdfium.FPDF_TEXTRENDERMODE_INVISIBLE for text in texts
    ]
    return sum(hidden) * 2 > len(hidden)


def tagged_headings(page: Any, objects: Sequence[Any]) -> Iterator[TaggedHeading]:
    tree = pdfium.FPDF_StructTree_GetForPage(page)
    if not tree:
        return
    try:
        levels = _Tree(pdfium).levels(tree)
    finally:
        pdfium.FPDF_StructTree_Close(tree)
    sides = [c_float() for _ in range(4)]
    for drawn in objects if levels else ():
        level = levels.get(pdfium.FPDFPageObj_GetMarkedContentID(drawn))
        if level is None or pdfium.FPDFPageObj_GetType(drawn) != pdfium.FPDF_PAGEOBJ_TEXT:
            continue
        if pdfium.FPDFPageObj_GetBounds(drawn, *sides):
            left, bottom, right, top = (side.value for side in sides)
            yield TaggedHeading(Region(left - _BLANK, bottom - 1, right + _BLANK, top + 1), level)


class _Tree:
    """Traversal of a page's structure tree that collects its headings."""

    def __init__(self, pdfium: Any) -> None:
        self._pdfium = pdfium
        self._elements_left = _MAX_TAGS
        self._levels: dict[int, int] = {}

    def levels(self, tree: Any) -> Mapping[int, int]:
        """Return the heading level for each marked content id that belongs to a heading."""
        for index in range(self._pdfium.FPDF_StructTree_CountChildren(tree)):
            self._walk(self._pdfium.FPDF_StructTree_GetChildAtIndex(tree, index), None, 0)
        return self._levels

    def _walk(self, element: Any, level: int | None, depth: int) -> None:
        self._elements_left -= 1
        if not element or depth > _MAX_TAG_DEPTH or self._elements_left < 0:
            return
        level = level or self._level(element)
        if level is not None:
            self._note_content(element, level)
        for index in range(self._pdfium.FPDF_StructElement_CountChildren(element)):
            self._walk(self._pdfium.FPDF_StructElement_GetChildAtIndex(element, index), level, depth + 1)

    def _level(self, element: Any) -> int | None:
        buffer = ctypes.create_string_buffer(_TYPE_BYTES)
        length = self._pdfium.FPDF_StructElement_GetType(element, buffer, _TYPE_BYTES)
        if not 0 < length <= _TYPE_BYTES:
            return None
        match = _HEADING.match(buffer.raw[: length - 2].decode("utf-16-le", "replace"))
        return int(match[1] or 1) if match else None

    def _note_content(self, element: Any, level: int) -> None:
        for index in range(self._pdfium.FPDF_StructElement_GetMarkedContentIdCount(element)):
            content_id = self._pdfium.FPDF_StructElement_GetMarkedContentIdAtIndex(element, index)
            if content_id >= 0:
                self._levels[content_id] = level
