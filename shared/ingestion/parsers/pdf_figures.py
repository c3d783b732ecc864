"""The figures of a PDF page: pictures and drawings that say something, rendered as they look on the page.

Which drawings count was tuned on the pages of public reports, papers, manuals and slides
(docs/figures-checked.md). Words within a figure stay in the page's text.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from shared.ingestion.parsers.pdf_drawings import (
    Drawing,
    Region,
    joined_drawings,
    page_drawings,
    page_region,
)
from shared.ingestion.parsers.pdf_lines import Line

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PAGE_FIGURES = 12  # a page with more is a catalogue of icons, or a drawing that came apart
_MIN_PICTURE = 60.0  # points, both ways: smaller ones are icons and logos
_MIN_SEGMENTS = 15  # three bars of a chart; fewer are frames and underlinings
_MIN_WIDTH, _MIN_HEIGHT = 100.0, 60.0  # points, of a drawing without picture and caption
_MIN_CAPTIONED = 40.0  # points, both ways, of a drawing with a caption
_MAX_BANNER_HEIGHT = 80.0  # points
_BANNER_PROPORTION = 4.0
_MAX_TEXT_SHARE = 0.25  # of the area: a table or a box of text is text
_MAX_LAYOUT_PICTURES = 20  # a picture in more pieces is a mosaic or a pattern
_LABEL_REACH = 14.0  # points from a drawing to the words at its edges
_LABEL_ROUNDS = 3  # words next to words: legends, the names of rows
_MAX_LABEL_WORDS = 8
_RUNNING_WORDS = 5
_PANEL_SLACK = 0.1  # of their height, by which panels may differ
_PART_REACH = 30.0  # points between the parts of one figure
_CAPTION_REACH = 45.0  # points from a figure to its caption
_MAX_CAPTION_LINES = 4
_PAGE_SHARE = 0.95  # of the page: more is its background
_MARGIN = 4.0  # points around the figure
_DPI = 150
# "Figure 3: Flow", "Fig. 2a (detail)"; but not "Figure 3 shows that …", which is a sentence.
_CAPTION = re.compile(
    r"(?i:fig(?:ure|\.)?|abb(?:ildung|\.)?|chart|diagram|exhibit|scheme|graph|map|plate|photo|bild|grafik"
    r"|schaubild)\s*[A-Z]?\.?\d+(?:[.\-]\d+)*[a-z]?\s*(?:[:.|–—(\-]|\Z|(?=[A-ZÄÖÜ]))"
)
_TABLE_CAPTION = re.compile(r"tab(?:le|elle|\.)\s*[A-Z]?\.?\d+", re.IGNORECASE)


@dataclass(frozen=True)
class PageFigure:
    """A figure where it stands.

    Attributes:
        label: its "Figure N" line and those that go on from it; empty when there is none.
        anchor: the line of the page before which it belongs; None = at the page's end.
        words: lines within it.
    """

    region: Region
    label: str
    words: str
    anchor: Line | None


def page_figures(page: Any, lines: Sequence[Line], tables: Sequence[Region]) -> list[PageFigure]:
    """The figures of a pypdfium2 page, from the top.

    Args:
        lines: the page's text.
        tables: what was read as tables: it is no figure.
    """
    drawings = [drawing for drawing in page_drawings(page) if not _is_table(drawing.region, tables)]
    finder = _Finder(page_region(page), lines)
    figures = [*finder.captioned(drawings), *finder.others()]
    return sorted(figures, key=lambda figure: -figure.region.top)[:MAX_PAGE_FIGURES]


def line_region(line: Line) -> Region:
    """Its bounds; those of turned text come in any order."""
    return Region(
        min(line.left, line.right),
        min(line.bottom, line.top),
        max(line.left, line.right),
        max(line.bottom, line.top),
    )


def render_region(page: Any, region: Region) -> "Image":
    """What the page shows there, at 150 dpi.

    Raises:
        ValueError: the region has no size.
    """
    import ctypes

    import pypdfium2.raw as pdfium

    scale = _DPI / 72
    width, height = (round(size * scale) for size in page.get_size())
    x, y = ctypes.c_int(), ctypes.c_int()
    xs, ys = [], []
    # By PDFium itself: a page may be turned, and its origin anywhere.
    for corner in ((region.left, region.bottom), (region.right, region.top)):
        pdfium.FPDF_PageToDevice(page, 0, 0, width, height, 0, *corner, ctypes.byref(x), ctypes.byref(y))
        xs.append(x.value)
        ys.append(y.value)
    crop = (min(xs), height - max(ys), width - max(xs), min(ys))
    bitmap = page.render(scale=scale, crop=tuple(max(side, 0) / scale for side in crop), rev_byteorder=True)
    try:
        image: Image = bitmap.to_pil().copy()
        return image
    finally:
        bitmap.close()


class _Finder:
    """Finds the figures of one page. Drawings that a caption names come first; they need less to count."""

    def __init__(self, whole: Region, lines: Sequence[Line]) -> None:
        self._whole = whole
        self._lines = lines
        self._boxes = [(line, line_region(line)) for line in lines]
        self._running = _running_lines(lines)
        self._left: list[Drawing] = []

    def captioned(self, drawings: Sequence[Drawing]) -> Iterator[PageFigure]:
        """A figure for each caption that has something drawn above it, or else below it."""
        self._left = list(drawings)
        open_captions = [(line, box) for line, box in self._boxes if _CAPTION.match(line.text)]
        # All captions look up first: what stands below one may belong to the next.
        for is_above in (True, False):
            for line, box in list(open_captions):
                parts = self._gathered(box, is_above)
                if parts and self._is_figure(_whole_of(parts).region):
                    self._left = [drawing for drawing in self._left if drawing not in parts]
                    open_captions.remove((line, box))
                    yield self._figure(_whole_of(parts), line)

    def others(self) -> Iterator[PageFigure]:
        """Figures without a caption, among the drawings that are left."""
        for drawing in _joined_panels(self._left):
            if self._stands_alone(drawing) and not self._is_named_table(drawing):
                yield self._figure(drawing, None)
                continue
            # A layout of text, shapes and pictures: the pictures are what is worth showing.
            pictures = [Drawing(region, pictures=(region,)) for region in drawing.pictures]
            for picture in joined_drawings(pictures, 0.0):
                if len(drawing.pictures) <= _MAX_LAYOUT_PICTURES and self._stands_alone(picture):
                    yield self._figure(picture, None)

    def _is_figure(self, region: Region) -> bool:
        """Whether what a caption names is large enough, and not a frame or ground behind the page's text."""
        is_large = region.width >= _MIN_CAPTIONED and region.height >= _MIN_CAPTIONED
        is_ground = region.area > 0.5 * self._whole.area and self._text_share(region) > _MAX_TEXT_SHARE
        return is_large and not is_ground and region.area <= _PAGE_SHARE * self._whole.area

    def _gathered(self, caption: Region, is_above: bool) -> list[Drawing]:
        """Drawings from the caption on, each near the one before, with no running text between them."""
        parts: list[Drawing] = []
        reached, reach = caption, _CAPTION_REACH
        middle = caption.bottom + caption.height / 2
        candidates = [
            drawing
            for drawing in self._left
            if (drawing.region.bottom + drawing.region.height / 2 > middle) == is_above
        ]
        while near := [
            drawing
            for drawing in candidates
            if self._joins(drawing.region, reached, reach)
            or any(_are_panels(part.region, drawing.region) for part in parts)
        ]:
            candidates = [drawing for drawing in candidates if drawing not in near]
            parts += near
            reached, reach = caption.joined(_whole_of(parts).region), _PART_REACH
        return parts

    def _joins(self, region: Region, reached: Region, reach: float) -> bool:
        if region.left >= reached.right or region.right <= reached.left:
            return False
        lower, upper = (reached, region) if region.bottom >= reached.top else (region, reached)
        between = Region(region.left, lower.top, region.right, upper.bottom)
        return between.height <= 0 or (between.height <= reach and not self._has_running_text(between))

    def _has_running_text(self, region: Region) -> bool:
        return any(
            line in self._running and region.common(box).area > 0.5 * box.area for line, box in self._boxes
        )

    def _stands_alone(self, drawing: Drawing) -> bool:
        """Whether it says something without a caption."""
        region = drawing.region
        if region.area > _PAGE_SHARE * self._whole.area or _is_banner(region):
            return False
        if any(min(picture.width, picture.height) >= _MIN_PICTURE for picture in drawing.pictures):
            return self._text_share(region) <= _MAX_TEXT_SHARE
        is_large = region.width >= _MIN_WIDTH and region.height >= _MIN_HEIGHT
        return (
            is_large
            and drawing.segment_count >= _MIN_SEGMENTS
            and self._text_share(region) <= _MAX_TEXT_SHARE
        )

    def _is_named_table(self, drawing: Drawing) -> bool:
        """Whether it is the lines of a table: a "Table N" stands at it, and it holds no picture."""
        region = drawing.region
        return not drawing.pictures and any(
            _TABLE_CAPTION.match(line.text)
            and region.overlaps(box, _CAPTION_REACH)
            and region.left < box.right
            and region.right > box.left
            for line, box in self._boxes
        )

    def _text_share(self, region: Region) -> float:
        covered = sum(region.common(box).area for _, box in self._boxes if region.overlaps(box))
        return covered / region.area if region.area else 1.0

    def _figure(self, drawing: Drawing, caption: Line | None) -> PageFigure:
        region = self._with_labels(drawing.region)
        label_lines = self._label_lines(caption) if caption else []
        for line in label_lines:
            region = region.joined(line_region(line))
        within = [
            line
            for line, box in self._boxes
            if line not in label_lines and region.common(box).area > 0.5 * box.area
        ]
        anchor = caption or (within[0] if within else self._line_below(region))
        framed = Region(
            region.left - _MARGIN, region.bottom - _MARGIN, region.right + _MARGIN, region.top + _MARGIN
        )
        return PageFigure(
            region=framed.common(self._whole),
            label=" ".join(line.text for line in label_lines),
            words="\n".join(line.text for line in within),
            anchor=anchor,
        )

    def _with_labels(self, region: Region) -> Region:
        """With the words at its edges: names of axes and rows, legends."""
        width = region.width
        for _ in range(_LABEL_ROUNDS):
            grown = region
            for line, box in self._boxes:
                if self._is_label(line) and box.width <= 1.2 * width and region.overlaps(box, _LABEL_REACH):
                    grown = grown.joined(box)
            if grown == region:
                break
            region = grown
        return region

    def _is_label(self, line: Line) -> bool:
        is_short = len(line.text.split()) <= _MAX_LABEL_WORDS
        return is_short and line not in self._running and not _CAPTION.match(line.text)

    def _label_lines(self, first: Line) -> list[Line]:
        """The caption's first line and those that go on from it."""
        found = [first]
        for line in self._lines[self._lines.index(first) + 1 :]:
            before = found[-1]
            goes_on = (
                abs(line.size - first.size) < 0.6 and 0 <= before.bottom - line.bottom < 2.2 * first.size
            )
            if len(found) == _MAX_CAPTION_LINES or not goes_on or _CAPTION.match(line.text):
                break
            found.append(line)
        return found

    def _line_below(self, region: Region) -> Line | None:
        """The first line under the figure, in its column if there is one."""
        below = [(line, box) for line, box in self._boxes if box.top <= region.bottom + 1]
        same_column = [pair for pair in below if pair[1].left < region.right and pair[1].right > region.left]
        found = max(same_column or below, key=lambda pair: pair[1].top, default=None)
        return found[0] if found else None


def _is_table(region: Region, tables: Sequence[Region]) -> bool:
    """Whether most of it was read as a table."""
    return any(region.common(table).area > 0.6 * region.area for table in tables)


def _is_banner(region: Region) -> bool:
    return region.height < _MAX_BANNER_HEIGHT and region.width > _BANNER_PROPORTION * region.height


def _running_lines(lines: Sequence[Line]) -> set[Line]:
    """Lines of running text: of several words, with another such line right above or below."""
    running: set[Line] = set()
    for before, line in pairwise(line for line in lines if len(line.text.split()) >= _RUNNING_WORDS):
        is_near = 0 < before.bottom - line.bottom < 2.5 * line.size
        if is_near and abs(before.size - line.size) < 0.6 and abs(before.left - line.left) < 3 * line.size:
            running |= {before, line}
    return running


def _joined_panels(drawings: Sequence[Drawing]) -> list[Drawing]:
    """Drawings of one height that stand side by side as one: the panels of a chart."""
    joined: list[Drawing] = []
    for drawing in sorted(drawings, key=lambda drawing: drawing.region.left):
        beside = next((other for other in joined if _are_panels(other.region, drawing.region)), None)
        if beside is not None:
            joined.remove(beside)
        joined.append(drawing if beside is None else beside.joined(drawing))
    return joined


def _are_panels(one: Region, other: Region) -> bool:
    left, right = (one, other) if one.left <= other.left else (other, one)
    slack = _PANEL_SLACK * max(left.height, right.height)
    return (
        min(left.height, right.height) >= _MIN_CAPTIONED
        and 0 <= right.left - left.right <= _PART_REACH
        and abs(left.top - right.top) <= slack
        and abs(left.bottom - right.bottom) <= slack
    )


def _whole_of(parts: Sequence[Drawing]) -> Drawing:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.joined(part)
    return whole
