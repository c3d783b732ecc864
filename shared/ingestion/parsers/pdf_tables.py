"""Tables with ruling lines on a PDF page. Others stay lines of text: nothing local reads them well.

A table replaces the lines of text within it, and only if it holds their words: none is lost or doubled.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ctypes import c_float, c_int
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from shared.ingestion.parsers.pdf_geometry import (
    IDENTITY,
    Matrix,
    Region,
    object_matrix,
    page_objects,
    product,
)
from shared.ingestion.parsers.pdf_lines import HYPHEN_MARK, Line, clean_text, is_row

_MAX_OBJECTS = 3000  # a page with more is a drawing; looking at it would cost more than its tables are worth
_MAX_SEGMENTS = 2000  # of one path: above, a map or a plot
_MAX_FORM_DEPTH = 3
_STRAIGHT = 1.0  # points that a line may lean
_MIN_LENGTH = 3.0  # points; shorter are the ends of thin rectangles
_SAME = 3.0  # points: lines nearer than this are one, and lines that miss each other by less do cross
_MAX_RULES = 250  # in each direction, after joining; more is a drawing
_MIN_CELL = 5.0  # points
_MIN_FILLED = 0.6  # of the places: a chart's grid is mostly empty
_MIN_HEADED = 0.5  # of the columns: otherwise the header stands above the lines, and is lost to the table
_MIN_TEXTS = 4
_MIN_BOXES = 0.4  # per place: fewer are boxes of a diagram, not cells
_MAX_CELL_CHARS = 600  # in a cell that holds most of the text: a page's layout
_MAX_BOXES = 5000
_MAX_HEADER_CHARS = 120  # of a cell: longer is a paragraph in a frame
_MIN_FULL_ROWS = 0.5  # of the rows below the header fill two cells or more
_MIN_UNRULED_ROWS = 3
_SIGNS_BEFORE, _SIGNS_AFTER = frozenset("$€£"), frozenset(("%", ")", ")%"))
_FIGURE = re.compile(r"[-+−–—(]?\s*(?:[$€£]\s*)?\d[\d.,]*\s*[)%]*\Z")
_LEADING_FIGURE = re.compile(r"[-+−–—(]?\s*(?:[$€£]\s*)?\d|(?:nil|n/?a|[-–—])\b|[-–—]\Z", re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)\d\d\Z")
_CUT_SENTENCE = re.compile(r"[,.;](?:\s|\Z)")
_MIN_WORDS_KEPT = 0.97  # of the lines that the table replaces; a word cut by a line counts as lost
_INSET = 1.0  # points: a letter that touches the line belongs to one side of it only
_MAX_WORDS_ADDED = 1.03
_WORD = re.compile(r"\w+")


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
    objects = list(page_objects(page))
    if len(objects) <= _MAX_OBJECTS:
        edges.read(objects)
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

    def read(self, drawn: Iterable[Any], outer: Matrix = IDENTITY, depth: int = 0) -> None:
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
                self.read(parts, product(object_matrix(one), outer), depth + 1)

    def _path(self, path: Any, outer: Matrix) -> None:
        if not self._pdfium.FPDFPath_GetDrawMode(path, self._fill, self._stroke):
            return
        is_drawn = self._fill.value or self._stroke.value
        if not is_drawn or self._pdfium.FPDFPath_CountSegments(path) > _MAX_SEGMENTS:
            return
        for x0, y0, x1, y1 in self._lines(path, product(object_matrix(path), outer)):
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


@dataclass(frozen=True)
class Grid:
    """A table's shape.

    Attributes:
        cells: row by row from the top, the box of the cell that covers each place; merged ones repeat.
    """

    box: Region
    cells: tuple[tuple[Region, ...], ...]


def find_grids(horizontal: Sequence[Rule], vertical: Sequence[Rule]) -> list[Grid]:
    """The grids of at least two rows and two columns, from the top of the page."""
    rows, columns = joined_rules(horizontal), joined_rules(vertical)
    if len(rows) < 2 or not columns or max(len(rows), len(columns)) > _MAX_RULES:
        return []
    grids = (_grid(group_rows, group_columns) for group_rows, group_columns in _groups(rows, columns))
    found = [grid for grid in grids if len(grid.cells) >= 2 and len(grid.cells[0]) >= 2]
    return sorted(found, key=lambda grid: -grid.box.top)


def joined_rules(rules: Sequence[Rule]) -> list[Rule]:
    """Pieces of one line as one: dashes, the borders of neighbouring cells, both edges of a thin bar."""
    joined: list[Rule] = []
    for group in _near(sorted(rules, key=lambda rule: rule.at)):
        at = sum(rule.at for rule in group) / len(group)
        start, end = None, 0.0
        for rule in sorted(group, key=lambda rule: rule.start):
            if start is None:
                start, end = rule.start, rule.end
            elif rule.start <= end + _SAME:
                end = max(end, rule.end)
            else:
                joined.append(Rule(at, start, end))
                start, end = rule.start, rule.end
        if start is not None:
            joined.append(Rule(at, start, end))
    return joined


def _near(rules: Iterable[Rule]) -> Iterator[list[Rule]]:
    group: list[Rule] = []
    for rule in rules:
        if group and rule.at - group[0].at > _SAME:
            yield group
            group = []
        group.append(rule)
    if group:
        yield group


def _groups(rows: Sequence[Rule], columns: Sequence[Rule]) -> Iterator[tuple[list[Rule], list[Rule]]]:
    """Lines that cross each other, directly or by way of others."""
    nodes = Groups(len(rows) + len(columns))
    for column_number, column in enumerate(columns):
        for row_number, row in enumerate(rows):
            if _spans(row, column.at) and _spans(column, row.at):
                nodes.unite(row_number, len(rows) + column_number)
    for members in nodes.all():
        group_rows = [rows[node] for node in members if node < len(rows)]
        group_columns = [columns[node - len(rows)] for node in members if node >= len(rows)]
        if len(group_rows) >= 2 and group_columns:
            yield group_rows, group_columns


def _spans(rule: Rule, position: float) -> bool:
    return rule.start - _SAME <= position <= rule.end + _SAME


def _grid(rows: Sequence[Rule], columns: Sequence[Rule]) -> Grid:
    xs = _places(columns, rows)
    ys = _places(rows, columns)[::-1]  # from the top
    width, height = len(xs) - 1, len(ys) - 1
    places = Groups(width * height)
    for row, (top, bottom) in enumerate(pairwise(ys)):
        for column, (left, right) in enumerate(pairwise(xs)):
            place = row * width + column
            if column + 1 < width and not _parted(columns, right, (top + bottom) / 2):
                places.unite(place, place + 1)
            if row + 1 < height and not _parted(rows, bottom, (left + right) / 2):
                places.unite(place, place + width)
    boxes = {}
    for members in places.all():
        across, down = [place % width for place in members], [place // width for place in members]
        box = Region(xs[min(across)], ys[max(down) + 1], xs[max(across) + 1], ys[min(down)])
        boxes.update(dict.fromkeys(members, box))
    cells = tuple(tuple(boxes[row * width + column] for column in range(width)) for row in range(height))
    return Grid(Region(xs[0], ys[-1], xs[-1], ys[0]), cells)


def _places(rules: Sequence[Rule], crossing: Sequence[Rule]) -> list[float]:
    """Where lines run, ascending; and where the crossing ones end, for tables without outer borders."""
    ends = (min(rule.start for rule in crossing), max(rule.end for rule in crossing))
    places: list[float] = []
    for place in sorted([*(rule.at for rule in rules), *ends]):
        if not places or place - places[-1] > _MIN_CELL:
            places.append(place)
    return places


def _parted(rules: Sequence[Rule], at: float, middle: float) -> bool:
    return any(abs(rule.at - at) <= _MIN_CELL and rule.start <= middle <= rule.end for rule in rules)


class Groups:
    """Union-find over 0..size-1."""

    def __init__(self, size: int) -> None:
        self._parents = list(range(size))

    def unite(self, first: int, second: int) -> None:
        self._parents[self._root(second)] = self._root(first)

    def all(self) -> list[list[int]]:
        """The groups, each ascending, ordered by their first member."""
        groups: dict[int, list[int]] = {}
        for node in range(len(self._parents)):
            groups.setdefault(self._root(node), []).append(node)
        return list(groups.values())

    def _root(self, node: int) -> int:
        while self._parents[node] != node:
            self._parents[node] = self._parents[self._parents[node]]
            node = self._parents[node]
        return node


def could_be_table(grid: Grid, header: Sequence[str]) -> bool:
    """By its shape and the texts of its first row: whether the others are worth reading."""
    places = len(grid.cells) * len(grid.cells[0])
    boxes = {box for row in grid.cells for box in row}
    return (
        len(boxes) <= _MAX_BOXES
        and len(boxes) >= _MIN_BOXES * places
        and sum(map(bool, header)) >= _MIN_HEADED * len(header)
        and all(len(text) <= _MAX_HEADER_CHARS and not is_figure(text) for text in header)
    )


def table_rows(grid: Grid, lines: Mapping[Region, Sequence[str]]) -> tuple[tuple[str, ...], ...] | None:
    """The rows from the top, the first one the header; None when the grid is no table of words.

    `lines` are those of each cell. Where all cells of a row hold the same number of them, and one holds
    figures, each is a row: nobody drew the lines between.

    A cell that spans rows stands in each of them; one that spans columns in each of the header's, but once
    in other rows. Columns of currency and per cent signs are joined to their figures.
    """
    texts = {box: " ".join(found) for box, found in lines.items()}
    if not _is_table(grid, texts):
        return None
    header = [texts[box] for box in grid.cells[0]]
    body = [row for boxes in grid.cells[1:] for row in _body_rows(boxes, lines)]
    rows = [header, *(row for row in body if any(row))]
    _join_signs(rows)
    used = [column for column in range(len(header)) if _is_used(rows, column)]
    found = tuple(tuple(row[column] for column in used) for row in rows)
    full = sum(sum(map(bool, row)) > 1 for row in found[1:])
    return found if len(used) > 1 and full > _MIN_FULL_ROWS * (len(found) - 1) else None


def is_figure(text: str) -> bool:
    """Whether a cell is a number, with its sign, currency or per cent; a year is a name."""
    return _FIGURE.match(text) is not None and _YEAR.match(text) is None


def _is_table(grid: Grid, texts: Mapping[Region, str]) -> bool:
    places = [box for row in grid.cells for box in row]
    filled = [text for text in texts.values() if text]
    longest = max(filled, key=len, default="")
    return (
        len(filled) >= _MIN_TEXTS
        and sum(bool(texts[box]) for box in places) >= _MIN_FILLED * len(places)
        and not (len(longest) > _MAX_CELL_CHARS and 2 * len(longest) > sum(map(len, filled)))
        and not any(_CUT_SENTENCE.match(text) for text in filled)
    )


def _body_rows(boxes: Sequence[Region], lines: Mapping[Region, Sequence[str]]) -> list[list[str]]:
    cells = [lines[box] for box in dict.fromkeys(boxes) if lines[box]]
    counts = {len(cell) for cell in cells}
    height = counts.pop() if len(counts) == 1 else 1
    has_figures = any(all(_LEADING_FIGURE.match(line) for line in cell) for cell in cells)
    if height >= _MIN_UNRULED_ROWS and has_figures:
        texts = [{box: lines[box][row] if lines[box] else "" for box in boxes} for row in range(height)]
    else:
        texts = [{box: " ".join(lines[box]) for box in boxes}]
    return [_spread(boxes, row) for row in texts]


def _spread(boxes: Sequence[Region], texts: Mapping[Region, str]) -> list[str]:
    """A row's texts, each once: figures at the right end of the places that they cover, words at the left."""
    row: list[str] = []
    for box, places in groupby(boxes):
        width = len(list(places))
        blanks = [""] * (width - 1)
        row += [*blanks, texts[box]] if is_figure(texts[box]) else [texts[box], *blanks]
    return row


def _join_signs(rows: Sequence[list[str]]) -> None:
    """Move each column of signs to its figures, in place."""
    for column in range(len(rows[0])):
        signs = {row[column] for row in rows[1:]} - {""}
        if signs and signs <= _SIGNS_BEFORE and column + 1 < len(rows[0]):
            for row in rows[1:]:
                row[column + 1] = f"{row[column]} {row[column + 1]}".strip()
                row[column] = ""
        elif signs and signs <= _SIGNS_AFTER and column:
            for row in rows[1:]:
                row[column - 1] += row[column]
                row[column] = ""


def _is_used(rows: Sequence[Sequence[str]], column: int) -> bool:
    """Whether it has a text of its own: a column of a spanning header only may be room beside a figure."""
    if any(row[column] for row in rows[1:]):
        return True
    header = rows[0]
    neighbours = (header[max(column - 1, 0)], header[min(column + 1, len(header) - 1)])
    return bool(header[column]) and header[column] not in neighbours


@dataclass(frozen=True)
class Table:
    """A table where it stands.

    Attributes:
        rows: texts from the top, the header first.
        word_count: of its cells, each counted once.
    """

    box: Region
    rows: tuple[tuple[str, ...], ...]
    word_count: int


def ruled_tables(page: Any) -> list[Table]:
    """The tables of a pypdfium2 page that are drawn with lines.

    Raises:
        pypdfium2.PdfiumError: the page's text cannot be read.
    """
    grids = find_grids(*page_rules(page))
    if not grids:
        return []
    text_page = page.get_textpage()
    try:
        tables = [_table(grid, text_page) for grid in grids]
    finally:
        text_page.close()
    return [table for table in tables if table is not None]


def place_tables(lines: Sequence[Line], tables: Sequence[Table]) -> Iterator[list[Line] | Table]:
    """Runs of a page's lines, and each table in place of the first of the lines that it holds."""
    owners = _owners(lines, tables)
    seen: list[Table] = []
    run: list[Line] = []
    for line, owner in zip(lines, owners, strict=True):
        if owner is None:
            run.append(line)
        elif owner not in seen:
            if run:
                yield run
            run = []
            seen.append(owner)
            yield owner
    if run:
        yield run


def _owners(lines: Sequence[Line], tables: Sequence[Table]) -> list[Table | None]:
    """The table that holds each line, if one does."""
    owners: list[Table | None] = [None] * len(lines)
    for table in tables:
        inside = [
            position
            for position, line in enumerate(lines)
            if owners[position] is None and table.box.holds(*_middle(line))
        ]
        if _holds_words(table, [lines[position] for position in inside]):
            for position in inside:
                owners[position] = table
    return owners


def _table(grid: Grid, text_page: Any) -> Table | None:
    """The grid with its texts; None when it is no table of words."""
    lines = {box: _cell_lines(text_page, box) for box in grid.cells[0]}
    if not could_be_table(grid, [" ".join(lines[box]) for box in grid.cells[0]]):
        return None
    lines |= {box: _cell_lines(text_page, box) for row in grid.cells[1:] for box in row if box not in lines}
    rows = table_rows(grid, lines)
    if rows is None or any(sum(map(is_row, found)) > 1 for found in lines.values()):
        return None  # or rows without lines between them in one cell: as lines of text they stay apart
    return Table(grid.box, rows, sum(_words(found).total() for found in lines.values()))


def _cell_lines(text_page: Any, box: Region) -> list[str]:
    raw: str = text_page.get_text_bounded(
        box.left + _INSET, box.bottom + _INSET, box.right - _INSET, box.top - _INSET
    )
    return [text for line in raw.splitlines() if (text := clean_text(line))]


def _middle(line: Line) -> tuple[float, float]:
    return (line.left + line.right) / 2, (line.top + line.bottom) / 2


def _holds_words(table: Table, lines: Sequence[Line]) -> bool:
    """Whether the table says what the lines say, and no more: a word cut by a border is in two cells."""
    wanted = _words(line.text for line in lines)
    held = _words(cell for row in table.rows for cell in row)
    is_whole = (wanted & held).total() >= _MIN_WORDS_KEPT * wanted.total()
    return bool(wanted) and is_whole and table.word_count <= _MAX_WORDS_ADDED * wanted.total() + 1


def _words(texts: Iterable[str]) -> Counter[str]:
    return Counter(word for text in texts for word in _WORD.findall(text.replace(HYPHEN_MARK, "")))
