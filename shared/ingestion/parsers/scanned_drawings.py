"""Detection of drawings on scanned pages, as connected areas of ink outside the words.

A scan is a single picture, so the PDF doesn't describe its figures. The positions of words are known from
the hidden text layer or from text recognition. The remaining ink belongs to drawings and table rules.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFilter

from shared.ingestion.parsers.pdf_drawings import Drawing, join_drawings
from shared.ingestion.parsers.pdf_geometry import Box, Region, pixels_of, region_of
from shared.ingestion.parsers.pdfium_page import Sheet

# Scale in pixels per point. At 1, thin lines would become too pale.
_SCALE = 2
# Side of a cell in the grid of ink, which is 4 points.
_CELL_PX = 8
# Grey level, from 0 to 255, below which a pixel counts as ink. Scanned paper has 200 and more.
_INK = 170
# Minimum mean value of a cell's pixels in the ink mask, from 0 to 255, for the cell to count as ink. It
# corresponds to four of its 64 pixels.
_MIN_CELL_INK = 16
# Width of the filter that connects nearby ink, in cells. It reaches 8 points to either side.
_REACH_CELLS = 5
# Margin that is ignored, as a share of the page. It may contain the shadow of the scanner lid.
_MARGIN_SHARE = 0.02
_WORD_MARGIN_PX = 3
# Minimum share of the page without ink. A lower share suggests a photo or a dark background.
_PAPER_SHARE = 0.5
_MIN_SIDE_PT = 60.0
# Minimum share of cells with ink in a drawing. Frames and rules have less.
_MIN_INK_SHARE = 0.02
# Maximum share of a drawing that words may cover. In our samples, labels cover up to 0.45.
_MAX_TEXT_SHARE = 0.5
_MIN_BORDERS, _BORDER_SHARE, _TABLE_TEXT_SHARE = 3, 0.75, 0.05
# Maximum number of pieces to examine. More pieces are noise.
_MAX_PIECES = 500


@dataclass(frozen=True)
class _Piece:
    """Connected area of ink. The bounds are counted in cells; right and bottom are inclusive."""

    left: int
    top: int
    right: int
    bottom: int
    ink_count: int

    @property
    def cell_count(self) -> int:
        return (self.right - self.left + 1) * (self.bottom - self.top + 1)


def scanned_drawings(sheet: Sheet, words: Sequence[Region]) -> list[Drawing]:
    """Return the drawings on a scanned page, each cut from the scan as a picture.

    Args:
        words: bounds of all words on the page, including doubtful ones.

    Raises:
        pypdfium2.PdfiumError: the page cannot be rendered.
    """
    scan = _Scan(sheet)
    ink = scan.ink()
    if ink.histogram()[255] > (1 - _PAPER_SHARE) * ink.width * ink.height:
        return []
    boxes = [scan.box(region) for region in words]
    drawings = [
        Drawing(region, pictures=(region,), is_cut_from_scan=True)
        for piece in _pieces(_without(ink, boxes))
        if piece.ink_count >= _MIN_INK_SHARE * piece.cell_count and not _is_text_or_table(ink, piece, boxes)
        for region in [scan.region(piece)]
    ]
    # A pale photo may break into several pieces with nested bounds, so join them.
    return [
        drawing
        for drawing in join_drawings(drawings, 0.0)
        if min(drawing.region.width, drawing.region.height) >= _MIN_SIDE_PT
    ]


class _Scan:
    """Rendered page with conversions between points and pixels."""

    def __init__(self, sheet: Sheet) -> None:
        self._sheet = sheet
        self._page = sheet.content.region
        self._size = round(_SCALE * self._page.width), round(_SCALE * self._page.height)

    def ink(self) -> Image.Image:
        """Return a mask of the page with 255 for ink and 0 for paper. Margins count as paper."""
        grey = self._sheet.picture(_SCALE, grayscale=True).convert("L")
        ink: Image.Image = grey.point([255 if value < _INK else 0 for value in range(256)])
        x, y = (round(_MARGIN_SHARE * size) for size in ink.size)
        inner = ink.crop((x, y, ink.width - x, ink.height - y))
        framed = inner.resize(ink.size)
        framed.paste(0, (0, 0, *ink.size))
        framed.paste(inner, (x, y))
        return framed

    def box(self, region: Region) -> Box:
        """Convert a region to a pixel box, enlarged by a margin."""
        left, top, right, bottom = pixels_of(region, self._page, self._size)
        margin = _WORD_MARGIN_PX
        return left - margin, top - margin, right + margin, bottom + margin

    def region(self, piece: _Piece) -> Region:
        """Convert the bounds of a piece from cells to points."""
        cells = (piece.left, piece.top, piece.right + 1, piece.bottom + 1)
        left, top, right, bottom = (place * _CELL_PX for place in cells)
        return region_of((left, top, right, bottom), self._page, self._size)


def _without(ink: Image.Image, boxes: Sequence[Box]) -> Image.Image:
    left = ink.copy()
    pen = ImageDraw.Draw(left)
    for box in boxes:
        pen.rectangle(box, fill=0)
    return left


def _pieces(ink: Image.Image) -> Iterator[_Piece]:
    """Yield areas of connected or nearly connected ink, at most `_MAX_PIECES`."""
    cells = ink.reduce(_CELL_PX).point([255 if value >= _MIN_CELL_INK else 0 for value in range(256)])
    near = cells.filter(ImageFilter.MaxFilter(_REACH_CELLS)).tobytes()
    inked, width = cells.tobytes(), cells.width
    order = [place for place, value in enumerate(near) if value]
    unseen, piece_count = set(order), 0
    for first in order:
        if first not in unseen:
            continue
        piece_count += 1
        if piece_count > _MAX_PIECES:
            return
        joined = _join_cells(first, unseen, width)
        dark = [place for place in joined if inked[place]]
        if dark:
            columns, rows = [place % width for place in dark], [place // width for place in dark]
            yield _Piece(min(columns), min(rows), max(columns), max(rows), len(dark))


def _join_cells(first: int, unseen: set[int], width: int) -> list[int]:
    """Return the cell `first` and all cells connected to it. These cells are removed from `unseen`."""
    unseen.remove(first)
    reached = [first]
    # The loop appends to the list while iterating over it.
    for place in reached:
        column = place % width
        beside = [place - width, place + width]
        beside += [place - 1] if column else []
        beside += [place + 1] if column < width - 1 else []
        for other in beside:
            if other in unseen:
                unseen.remove(other)
                reached.append(other)
    return reached


def _is_text_or_table(ink: Image.Image, piece: _Piece, boxes: Sequence[Box]) -> bool:
    left, top = piece.left * _CELL_PX, piece.top * _CELL_PX
    right, bottom = (piece.right + 1) * _CELL_PX, (piece.bottom + 1) * _CELL_PX
    covered = sum(
        max(min(box[2], right) - max(box[0], left), 0) * max(min(box[3], bottom) - max(box[1], top), 0)
        for box in boxes
    )
    share = covered / ((right - left) * (bottom - top))
    if share > _MAX_TEXT_SHARE:
        return True
    return share > _TABLE_TEXT_SHARE and _has_grid(ink.crop((left, top, right, bottom)))


def _has_grid(ink: Image.Image) -> bool:
    """Return whether a picture contains more long horizontal and vertical lines than a frame, as in a ruled
    table.
    """
    # Thicken the lines, so that they stay connected although scans are slightly skewed.
    thick = ink.filter(ImageFilter.MaxFilter(3))
    upright = thick.resize((thick.width, 1), Image.Resampling.BOX)
    level = thick.resize((1, thick.height), Image.Resampling.BOX)
    return min(_line_count(upright.tobytes()), _line_count(level.tobytes())) >= _MIN_BORDERS


def _line_count(shares: bytes) -> int:
    full = [value >= _BORDER_SHARE * 255 for value in shares]
    return sum(now and not before for before, now in zip([False, *full], full, strict=False))
