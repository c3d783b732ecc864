"""The ruling lines of a PDF page: edges along an axis of what is drawn on it. Reads; judges nothing."""

from collections.abc import Iterable, Iterator
from ctypes import c_float, c_int
from dataclasses import dataclass
from typing import Any

_MAX_OBJECTS = 3000  # a page with more is a drawing; looking at it would cost more than its tables are worth
_MAX_SEGMENTS = 2000  # of one path: above, a map or a plot
_MAX_FORM_DEPTH = 3
_STRAIGHT = 1.0  # points that a line may lean
_MIN_LENGTH = 3.0  # points; shorter are the ends of thin rectangles

Matrix = tuple[float, float, float, float, float, float]
_IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


@dataclass(frozen=True)
class Rule:
    """A straight line along an axis. Points; y grows upwards.

    Attributes:
        at: y of a horizontal line, x of a vertical one.
        start, end: where it runs from and to along the other axis.
    """

    at: float
    start: float
    end: float


def page_rules(page: Any) -> tuple[list[Rule], list[Rule]]:
    """Horizontal and vertical rules of a pypdfium2 page; none of a page that is turned."""
    if page.get_rotation():
        return [], []
    edges = _Edges()
    edges.read(page.raw)
    return edges.horizontal, edges.vertical


class _Edges:
    """Collects rules from a page's objects and from the forms among them."""

    def __init__(self) -> None:
        import pypdfium2.raw as pdfium

        self._pdfium = pdfium
        self._objects_left = _MAX_OBJECTS
        self._x, self._y = c_float(), c_float()
        self._fill, self._stroke = c_int(), c_int()
        self.horizontal: list[Rule] = []
        self.vertical: list[Rule] = []

    def read(self, page: Any) -> None:
        pdfium = self._pdfium
        count = pdfium.FPDFPage_CountObjects(page)
        if count <= _MAX_OBJECTS:
            self._objects((pdfium.FPDFPage_GetObject(page, index) for index in range(count)), _IDENTITY, 0)

    def _objects(self, drawn: Iterable[Any], outer: Matrix, depth: int) -> None:
        """Look at paths and forms. Most objects of a page are text: they cost one call each."""
        pdfium = self._pdfium
        kind_of, path, form = pdfium.FPDFPageObj_GetType, pdfium.FPDF_PAGEOBJ_PATH, pdfium.FPDF_PAGEOBJ_FORM
        for one in drawn:
            kind = kind_of(one)
            if kind == path:
                self._path(one, outer)
            elif kind == form and depth < _MAX_FORM_DEPTH:
                count = min(pdfium.FPDFFormObj_CountObjects(one), self._objects_left)
                self._objects_left -= count
                parts = [pdfium.FPDFFormObj_GetObject(one, index) for index in range(count)]
                self._objects(parts, _joined(self._matrix(one), outer), depth + 1)

    def _path(self, path: Any, outer: Matrix) -> None:
        if not self._pdfium.FPDFPath_GetDrawMode(path, self._fill, self._stroke):
            return
        is_drawn = self._fill.value or self._stroke.value
        if not is_drawn or self._pdfium.FPDFPath_CountSegments(path) > _MAX_SEGMENTS:
            return
        for x0, y0, x1, y1 in self._lines(path, _joined(self._matrix(path), outer)):
            if abs(y1 - y0) <= _STRAIGHT and abs(x1 - x0) >= _MIN_LENGTH:
                self.horizontal.append(Rule((y0 + y1) / 2, min(x0, x1), max(x0, x1)))
            elif abs(x1 - x0) <= _STRAIGHT and abs(y1 - y0) >= _MIN_LENGTH:
                self.vertical.append(Rule((x0 + x1) / 2, min(y0, y1), max(y0, y1)))

    def _lines(self, path: Any, matrix: Matrix) -> Iterator[tuple[float, float, float, float]]:
        """The straight segments of a path, closing ones included, in the page's coordinates."""
        pdfium, x, y = self._pdfium, self._x, self._y
        a, b, c, d, e, f = matrix
        begin = before = (0.0, 0.0)
        for index in range(pdfium.FPDFPath_CountSegments(path)):
            segment = pdfium.FPDFPath_GetPathSegment(path, index)
            pdfium.FPDFPathSegment_GetPoint(segment, x, y)
            point = a * x.value + c * y.value + e, b * x.value + d * y.value + f
            kind = pdfium.FPDFPathSegment_GetType(segment)
            if kind == pdfium.FPDF_SEGMENT_MOVETO:
                begin = point
            elif kind == pdfium.FPDF_SEGMENT_LINETO:
                yield (*before, *point)
            before = point
            if pdfium.FPDFPathSegment_GetClose(segment):
                yield (*before, *begin)
                before = begin

    def _matrix(self, drawn: Any) -> Matrix:
        found = self._pdfium.FS_MATRIX()
        if not self._pdfium.FPDFPageObj_GetMatrix(drawn, found):
            return _IDENTITY
        return found.a, found.b, found.c, found.d, found.e, found.f


def _joined(inner: Matrix, outer: Matrix) -> Matrix:
    """First `inner`, then `outer`. Source: PDF 32000-1, 8.3.4."""
    if outer is _IDENTITY:
        return inner
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
