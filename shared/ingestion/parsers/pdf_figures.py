"""Detection of the figures on a PDF page: meaningful pictures and drawings, with their captions and words.

A figure is rendered with everything in its area; words within it also remain in the page's text. The
thresholds were tuned on public reports, papers, manuals and slides (docs/status-and-evidence.md).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from shared.ingestion.parsers.pdf_content import PageContent
from shared.ingestion.parsers.pdf_drawings import Drawing, join_drawings, page_drawings
from shared.ingestion.parsers.pdf_geometry import Region
from shared.ingestion.parsers.pdf_lines import Line, line_region
from shared.ingestion.parsers.pdf_tables import join_rules, page_rules

# Maximum distance between a figure and its caption, in points.
CAPTION_REACH = 45.0
# Maximum distance between a drawing and the words at its edges, in points.
_LABEL_REACH = 14.0
# Number of times that a drawing is expanded by adjacent words, such as legends and row names.
_LABEL_ROUNDS = 3
_MAX_LABEL_WORDS = 8
# Maximum width of a label, relative to the width of the drawing.
_MAX_LABEL_PROPORTION = 1.2
# Maximum distance between a drawing and the title above it, in points.
_TITLE_REACH = 24.0
_MAX_TITLE_LINES, _MAX_TITLE_WORDS = 3, 16
_RUNNING_WORDS = 5
_MAX_CAPTION_LINES = 4
_MAX_LEGEND_LINES, _MIN_LEGEND_LETTERS = 2, 5
# Maximum relative difference between the font sizes of a caption's lines. It allows for small capitals.
_SAME_SIZE = 0.25

# Matches "Figure 3: Flow" and "Fig. 2a (detail)", but not the sentence "Figure 3 shows that …".
_CAPTION = re.compile(
    r"(?i:fig(?:ure|\.)?|abb(?:ildung|\.)?|chart|diagram|exhibit|scheme|graph|map|plate|photo|bild|grafik"
    r"|schaubild)\s*[A-Z]?\.?\d+(?:[.\-]\d+)*[a-z]?\s*(?:[:.|–—(\-]|\Z|(?=[A-ZÄÖÜ]))"
)
_TABLE_CAPTION = re.compile(r"tab(?:le|elle|\.)\s*[A-Z]?\.?\d+", re.IGNORECASE)


class FigureText:
    """The lines of a page, and methods that find the text inside, above or below a region."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self._boxes = [(line, line_region(line)) for line in lines]
        self._running = _running_lines(lines)
        self._usual_size = median([line.size for line in lines]) if lines else 0.0
        self.captions = [(line, box) for line, box in self._boxes if _CAPTION.match(line.text)]

    def share(self, region: Region) -> float:
        """Return the share of the region that lines of text cover. It exceeds 1 if lines overlap."""
        covered = sum(region.intersect(box).area for _, box in self._boxes if region.overlaps(box))
        return covered / region.area if region.area else 1.0

    def within(self, region: Region) -> list[Line]:
        """Return the lines that have more than half of their area in the region."""
        return [line for line, box in self._boxes if region.intersect(box).area > 0.5 * box.area]

    def has_running(self, region: Region) -> bool:
        """Return whether the region contains a line of running text."""
        return any(line in self._running for line in self.within(region))

    def is_named_table(self, region: Region) -> bool:
        """Return whether the region has a caption such as "Table 3"."""
        return any(
            _TABLE_CAPTION.match(line.text)
            and region.overlaps(box, CAPTION_REACH)
            and region.left < box.right
            and region.right > box.left
            for line, box in self._boxes
        )

    def with_labels(self, region: Region) -> Region:
        """Expand the region by short texts at its edges: axis titles, row names and legends."""
        width = _MAX_LABEL_PROPORTION * region.width
        labels = [box for line, box in self._boxes if self._is_label(line) and box.width <= width]
        for _ in range(_LABEL_ROUNDS):
            grown = region
            for box in labels:
                if region.overlaps(box, _LABEL_REACH):
                    grown = grown.join_with(box)
            if grown == region:
                break
            region = grown
        return region

    def caption_lines(self, first: Line) -> list[Line]:
        """Return the lines of a caption: its given first line, and the lines that continue it."""
        caption = [first]
        for line in self._lines[self._lines.index(first) + 1 :]:
            if (
                len(caption) == _MAX_CAPTION_LINES
                or _CAPTION.match(line.text)
                or not _continues_caption(caption[-1], line)
            ):
                break
            caption.append(line)
        return caption

    def legend(self, drawn: Region, grown: Region) -> list[Line]:
        """Return the lines directly below a drawing if they describe it. The list is empty if the text is
        long or consists mostly of digits.
        """
        below = [line for line in self.within(grown) if line_region(line).top <= drawn.bottom + 2]
        letters = sum(character.isalpha() for line in below for character in line.text)
        is_said = letters >= _MIN_LEGEND_LETTERS and letters * 2 >= sum(len(line.text) for line in below)
        return below if len(below) <= _MAX_LEGEND_LINES and is_said else []

    def titles(self, region: Region) -> list[Line]:
        """Return the title directly above a drawing, from the top: up to three lines that are bold or larger
        than usual and no wider than the drawing.
        """
        above = [
            (box.bottom, line)
            for line, box in self._boxes
            if region.top - _LABEL_REACH < box.bottom < region.top + _TITLE_REACH
            and region.left - _LABEL_REACH <= box.left
            and box.right <= region.right + _LABEL_REACH
        ]
        title: list[Line] = []
        for bottom, line in sorted(above, key=lambda pair: pair[0]):
            reached = title[-1].top if title else region.top
            is_title = line.bold or line.size > self._usual_size
            if len(title) == _MAX_TITLE_LINES or not is_title or bottom - reached > _TITLE_REACH:
                break
            if len(line.text.split()) > _MAX_TITLE_WORDS or _CAPTION.match(line.text):
                break
            title.append(line)
        return title[::-1]

    def line_below(self, region: Region) -> Line | None:
        """Return the first line below the region, or None. A line in the same column is preferred."""
        below = [(line, box) for line, box in self._boxes if box.top <= region.bottom + 1]
        same_column = [pair for pair in below if pair[1].left < region.right and pair[1].right > region.left]
        nearest = max(same_column or below, key=lambda pair: pair[1].top, default=None)
        return nearest[0] if nearest else None

    def _is_label(self, line: Line) -> bool:
        is_short = len(line.text.split()) <= _MAX_LABEL_WORDS
        return is_short and line not in self._running and not _CAPTION.match(line.text)


def _running_lines(lines: Sequence[Line]) -> set[Line]:
    """Return the lines of running text: lines of at least five words with a similar line above or below, and
    the last lines of such paragraphs.
    """
    running: set[Line] = set()
    for before, line in pairwise(lines):
        is_near = 0 < before.bottom - line.bottom < 2.5 * line.size
        is_alike = abs(before.size - line.size) < 0.6 and abs(before.left - line.left) < 3 * line.size
        if is_near and is_alike and len(before.text.split()) >= _RUNNING_WORDS:
            is_long = len(line.text.split()) >= _RUNNING_WORDS
            if is_long or before in running:
                running |= {before, line}
    return running


def _continues_caption(before: Line, line: Line) -> bool:
    """Return whether `line` continues the caption line `before`, because it has the same style and is
    directly below.
    """
    is_alike = abs(line.size - before.size) <= _SAME_SIZE * before.size and line.bold == before.bold
    return is_alike and 0 <= before.bottom - line.bottom < 1.7 * max(before.size, line.size)


# Maximum number of figures per page. More suggest a catalogue of icons or a fragmented drawing.
MAX_PAGE_FIGURES = 12
# Minimum width and height of a picture, in points. Smaller ones are icons and logos.
_MIN_PICTURE = 60.0
# Minimum number of line segments in a drawing. Three bars of a chart have as many; frames and underlines have
# fewer.
_MIN_SEGMENTS = 15
# Minimum width and height of a drawing without picture and caption, in points.
_MIN_WIDTH, _MIN_HEIGHT = 100.0, 60.0
# Minimum width and height of a drawing with a caption, in points.
_MIN_CAPTIONED = 40.0
# Maximum height of a banner, in points, and its minimum width relative to the height.
_MAX_BANNER_HEIGHT = 80.0
_BANNER_PROPORTION = 4.0
# Maximum share of a figure's area that is covered by text. More text indicates a table or a text box.
_MAX_TEXT_SHARE = 0.25
# Maximum number of pictures in a layout. More suggest a mosaic or a pattern.
_MAX_LAYOUT_PICTURES = 20
# Tolerance when comparing the panels of one figure, relative to their height.
_PANEL_SLACK = 0.1
# Maximum distance between the parts of one figure, in points.
_PART_REACH = 30.0
# Two figures are merged if they overlap by at least this share of the smaller one.
_SAME_SHARE = 0.6
# Minimum share of text in the area of a ruled drawing for it to count as a table. In our samples, charts have
# 0.03 to 0.10 and tables 0.15.
_TABLE_TEXT_SHARE = 0.12
# Minimum number of vertical lines in a table, and the minimum share of its height that each one spans.
_MIN_BORDERS, _FULL_SHARE = 3, 0.8
# A drawing that covers a larger share of the page is a background.
_PAGE_SHARE = 0.95
# Margin around a figure, in points.
_MARGIN = 4.0


@dataclass(frozen=True)
class PageFigure:
    """Figure on a page, with its label, its lines of text and its position.

    Attributes:
        label: its caption ("Figure N"), otherwise the legend below or the title above; may be empty.
        anchor: the line before which the figure is inserted; None = end of page.
        lines: lines within the figure, from the top, without the label.
    """

    region: Region
    label: str
    anchor: Line | None
    lines: tuple[Line, ...] = ()

    @property
    def words(self) -> str:
        return "\n".join(line.text for line in self.lines)


def page_figures(
    page: PageContent, lines: Sequence[Line], tables: Sequence[Region], scanned: Sequence[Drawing] = ()
) -> list[PageFigure]:
    """Return the figures of a page from top to bottom, at most 12.

    Args:
        lines: text lines of the page.
        tables: areas of tables, which are not figures.
        scanned: drawings in the picture of a scanned page.
    """
    drawn, _ = page_drawings(page)
    drawings = [
        drawing
        for drawing in [*drawn, *scanned]
        if not any(_covers(table, drawing.region, _SAME_SHARE) for table in tables)
    ]
    if not drawings:
        return []
    figures = _Finder(page, FigureText(lines)).find(drawings)
    return sorted(figures, key=lambda figure: -figure.region.top)[:MAX_PAGE_FIGURES]


class _Finder:
    """Detection of the figures on one page of a PDF file. It first selects drawings that have a caption,
    which must meet fewer conditions than the others.
    """

    def __init__(self, page: PageContent, text: FigureText) -> None:
        self._page = page
        self._whole = page.region
        self._text = text
        self._left: list[Drawing] = []

    def find(self, drawings: Sequence[Drawing]) -> list[PageFigure]:
        self._left = list(drawings)
        figures: list[PageFigure] = []
        for drawing, caption in [
            *self._captioned_drawings(),
            *((drawing, None) for drawing in self._uncaptioned_drawings()),
        ]:
            # Compare the areas with their labels included. Two drawings that overlap only then are also the
            # same figure.
            if not any(_are_one(figure.region, drawing.region) for figure in figures):
                figure = self._figure(drawing, caption)
                figures = [other for other in figures if not _are_one(other.region, figure.region)]
                figures.append(figure)
        return figures

    def _captioned_drawings(self) -> Iterator[tuple[Drawing, Line]]:
        """Yield each drawing that has a caption, with the first line of the caption. Drawings above a caption
        are preferred to drawings below it.
        """
        captions = list(self._text.captions)
        # Search above all captions before searching below: a drawing below a caption may belong to the next
        # caption.
        for is_above in (True, False):
            for line, box in list(captions):
                parts = self._gather_drawings(box, is_above)
                if parts and self._is_figure(_whole_of(parts).region):
                    self._left = [drawing for drawing in self._left if drawing not in parts]
                    captions.remove((line, box))
                    yield _whole_of(parts), line

    def _uncaptioned_drawings(self) -> Iterator[Drawing]:
        """Yield the remaining drawings that are figures even without a caption."""
        for drawing in _join_panels(self._left):
            if self._stands_alone(drawing):
                if not self._is_table(drawing):
                    yield drawing
                continue
            # If the drawing is a layout of text, shapes and pictures, only its pictures are figures.
            pictures = [Drawing(region, pictures=(region,)) for region in drawing.pictures]
            for picture in join_drawings(pictures, 0.0):
                if len(drawing.pictures) <= _MAX_LAYOUT_PICTURES and self._stands_alone(picture):
                    yield picture

    def _is_figure(self, region: Region) -> bool:
        """Return whether a drawing with a caption is large enough for a figure and isn't just a frame or
        background of text.
        """
        is_large = region.width >= _MIN_CAPTIONED and region.height >= _MIN_CAPTIONED
        is_ground = region.area > 0.5 * self._whole.area and self._text.share(region) > _MAX_TEXT_SHARE
        return is_large and not is_ground and region.area <= _PAGE_SHARE * self._whole.area

    def _gather_drawings(self, caption: Region, is_above: bool) -> list[Drawing]:
        """Collect the drawings above or below a caption. Each must be close to the caption or to a drawing
        collected before.

        Running text ends the search.
        """
        parts: list[Drawing] = []
        reached, reach = caption, CAPTION_REACH
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
            reached, reach = caption.join_with(_whole_of(parts).region), _PART_REACH
        return parts

    def _joins(self, region: Region, reached: Region, reach: float) -> bool:
        if region.left >= reached.right or region.right <= reached.left:
            return False
        lower, upper = (reached, region) if region.bottom >= reached.top else (region, reached)
        between = Region(region.left, lower.top, region.right, upper.bottom)
        return between.height <= 0 or (between.height <= reach and not self._text.has_running(between))

    def _stands_alone(self, drawing: Drawing) -> bool:
        """Return whether a drawing without a caption is large and detailed enough to be a figure."""
        region = drawing.region
        if region.area > _PAGE_SHARE * self._whole.area or _is_banner(region):
            return False
        has_picture = any(min(picture.width, picture.height) >= _MIN_PICTURE for picture in drawing.pictures)
        is_large = region.width >= _MIN_WIDTH and region.height >= _MIN_HEIGHT
        is_drawn = is_large and drawing.segment_count >= _MIN_SEGMENTS
        if drawing.is_cut_from_scan:
            return is_large
        return (has_picture or is_drawn) and self._text.share(region) <= _MAX_TEXT_SHARE

    def _is_table(self, drawing: Drawing) -> bool:
        """Return whether a drawing is the grid of a table. Such a grid has a caption such as "Table 3", or
        column borders and much text.
        """
        if drawing.pictures:
            return False
        region = drawing.region
        if self._text.is_named_table(region):
            return True
        return self._text.share(region) > _TABLE_TEXT_SHARE and self._border_count(region) >= _MIN_BORDERS

    def _border_count(self, region: Region) -> int:
        """Return the number of vertical lines that span at least 80 % of the region's height."""
        _, vertical = page_rules(self._page)
        return sum(
            region.left - _MARGIN <= rule.at <= region.right + _MARGIN
            and min(rule.end, region.top) - max(rule.start, region.bottom) >= _FULL_SHARE * region.height
            for rule in join_rules(vertical)
        )

    def _figure(self, drawing: Drawing, caption: Line | None) -> PageFigure:
        region = self._text.with_labels(drawing.region)
        label = self._text.caption_lines(caption) if caption else []
        # Without pictures, the line below is usually an axis label instead of a legend.
        if caption is None and drawing.pictures:
            label = self._text.legend(drawing.region, region)
        for line in label:
            region = region.join_with(line_region(line))
        titles = self._text.titles(region)
        for line in titles:
            region = region.join_with(line_region(line))
        words = [line for line in self._text.within(region) if line not in label]
        first = label or words
        anchor = first[0] if first else self._text.line_below(region)
        return PageFigure(
            region=region.enlarge(_MARGIN).intersect(self._whole),
            label=" ".join(line.text for line in label or titles),
            anchor=anchor,
            lines=tuple(sorted(words, key=lambda line: -line.top)),
        )


def _covers(cover: Region, region: Region, share: float) -> bool:
    return region.intersect(cover).area >= share * region.area > 0


def _are_one(region: Region, other: Region) -> bool:
    return region.intersect(other).area > _SAME_SHARE * min(region.area, other.area)


def _is_banner(region: Region) -> bool:
    return region.height < _MAX_BANNER_HEIGHT and region.width > _BANNER_PROPORTION * region.height


def _join_panels(drawings: Iterable[Drawing]) -> list[Drawing]:
    """Merge adjacent drawings of equal height, such as the panels of a chart."""
    joined: list[Drawing] = []
    for drawing in sorted(drawings, key=lambda drawing: drawing.region.left):
        beside = next((other for other in joined if _are_panels(other.region, drawing.region)), None)
        if beside is not None:
            joined.remove(beside)
        joined.append(drawing if beside is None else beside.join_with(drawing))
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
        whole = whole.join_with(part)
    return whole
