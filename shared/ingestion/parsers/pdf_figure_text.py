"""The words of a PDF page as its figures see them: captions, labels at the edges, running text."""

import re
from collections.abc import Sequence
from itertools import pairwise

from shared.ingestion.parsers.pdf_drawings import Region
from shared.ingestion.parsers.pdf_lines import Line

CAPTION_REACH = 45.0  # points from a figure to its caption
_LABEL_REACH = 14.0  # points from a drawing to the words at its edges
_LABEL_ROUNDS = 3  # words next to words: legends, the names of rows
_MAX_LABEL_WORDS = 8
_MAX_LABEL_PROPORTION = 1.2  # of the drawing's width
_RUNNING_WORDS = 5
_MAX_CAPTION_LINES = 4
_MAX_LEGEND_LINES, _MIN_LEGEND_LETTERS = 2, 5
_SAME_SIZE = 0.25  # by which sizes of one caption's lines may differ: small capitals
# "Figure 3: Flow", "Fig. 2a (detail)"; but not "Figure 3 shows that …", which is a sentence.
_CAPTION = re.compile(
    r"(?i:fig(?:ure|\.)?|abb(?:ildung|\.)?|chart|diagram|exhibit|scheme|graph|map|plate|photo|bild|grafik"
    r"|schaubild)\s*[A-Z]?\.?\d+(?:[.\-]\d+)*[a-z]?\s*(?:[:.|–—(\-]|\Z|(?=[A-ZÄÖÜ]))"
)
_TABLE_CAPTION = re.compile(r"tab(?:le|elle|\.)\s*[A-Z]?\.?\d+", re.IGNORECASE)


class FigureText:
    """The lines of one page, with their places."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self._boxes = [(line, line_region(line)) for line in lines]
        self._running = _running_lines(lines)
        self.captions = [(line, box) for line, box in self._boxes if _CAPTION.match(line.text)]

    def share(self, region: Region) -> float:
        """How much of the region lines of text cover; more than 1 where they overlap."""
        covered = sum(region.common(box).area for _, box in self._boxes if region.overlaps(box))
        return covered / region.area if region.area else 1.0

    def within(self, region: Region) -> list[Line]:
        """The lines that stand in the region, most of each."""
        return [line for line, box in self._boxes if region.common(box).area > 0.5 * box.area]

    def has_running(self, region: Region) -> bool:
        """Whether a line of running text stands there."""
        return any(line in self._running for line in self.within(region))

    def is_named_table(self, region: Region) -> bool:
        """Whether a "Table N" stands at the region."""
        return any(
            _TABLE_CAPTION.match(line.text)
            and region.overlaps(box, CAPTION_REACH)
            and region.left < box.right
            and region.right > box.left
            for line, box in self._boxes
        )

    def with_labels(self, region: Region) -> Region:
        """The region and the words at its edges: names of axes and rows, legends."""
        width = _MAX_LABEL_PROPORTION * region.width
        labels = [box for line, box in self._boxes if self._is_label(line) and box.width <= width]
        for _ in range(_LABEL_ROUNDS):
            grown = region
            for box in labels:
                if region.overlaps(box, _LABEL_REACH):
                    grown = grown.joined(box)
            if grown == region:
                break
            region = grown
        return region

    def caption_lines(self, first: Line) -> list[Line]:
        """The caption's first line and those that go on from it."""
        found = [first]
        for line in self._lines[self._lines.index(first) + 1 :]:
            if len(found) == _MAX_CAPTION_LINES or _CAPTION.match(line.text) or not _goes_on(found[-1], line):
                break
            found.append(line)
        return found

    def legend(self, drawn: Region, grown: Region) -> list[Line]:
        """The few words right below a drawing that say what it shows; none where they are numbers."""
        below = [line for line in self.within(grown) if line_region(line).top <= drawn.bottom + 2]
        letters = sum(character.isalpha() for line in below for character in line.text)
        is_said = letters >= _MIN_LEGEND_LETTERS and letters * 2 >= sum(len(line.text) for line in below)
        return below if len(below) <= _MAX_LEGEND_LINES and is_said else []

    def line_below(self, region: Region) -> Line | None:
        """The first line under the region, in its column if there is one."""
        below = [(line, box) for line, box in self._boxes if box.top <= region.bottom + 1]
        same_column = [pair for pair in below if pair[1].left < region.right and pair[1].right > region.left]
        found = max(same_column or below, key=lambda pair: pair[1].top, default=None)
        return found[0] if found else None

    def _is_label(self, line: Line) -> bool:
        is_short = len(line.text.split()) <= _MAX_LABEL_WORDS
        return is_short and line not in self._running and not _CAPTION.match(line.text)


def line_region(line: Line) -> Region:
    """Its bounds; those of turned text come in any order."""
    return Region(
        min(line.left, line.right),
        min(line.bottom, line.top),
        max(line.left, line.right),
        max(line.bottom, line.top),
    )


def _running_lines(lines: Sequence[Line]) -> set[Line]:
    """Lines of running text: several words, with another such line above or below; and a paragraph's last."""
    running: set[Line] = set()
    for before, line in pairwise(lines):
        is_near = 0 < before.bottom - line.bottom < 2.5 * line.size
        is_alike = abs(before.size - line.size) < 0.6 and abs(before.left - line.left) < 3 * line.size
        if is_near and is_alike and len(before.text.split()) >= _RUNNING_WORDS:
            is_long = len(line.text.split()) >= _RUNNING_WORDS
            if is_long or before in running:
                running |= {before, line}
    return running


def _goes_on(before: Line, line: Line) -> bool:
    """Whether the line is of the same caption: alike, and right below."""
    is_alike = abs(line.size - before.size) <= _SAME_SIZE * before.size and line.bold == before.bold
    return is_alike and 0 <= before.bottom - line.bottom < 1.7 * max(before.size, line.size)
