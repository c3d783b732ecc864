"""Detection of ruled tables on a PDF page, and placement of tables among lines of text.

Each word of a table belongs to one of its cells and is removed from its line of text.
"""

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from operator import neg

from shared.ingestion.parsers.pdf_content import PageContent, Rule, Word
from shared.ingestion.parsers.pdf_geometry import Region
from shared.ingestion.parsers.pdf_lines import Line, is_row, with_words
from shared.tables.headers import merged_header

# Maximum number of rules on a page. A page with more contains a drawing, which would take too long to
# analyse.
_MOST_RULES = 12_000
# Vertical tolerance for words on one line, relative to the height of a word.
_SAME_LINE = 0.5
# Parallel lines that are closer than this many points are merged, and lines that miss each other by less
# count as crossing.
_SAME = 3.0
# Tolerance between the sides of a table and its continuation on the next page, in points.
_SAME_SIDE = 12.0
# Maximum number of rules in one direction, after merging. More suggest a drawing.
_MAX_RULES = 250
# Minimum width and height of a cell, in points.
_MIN_CELL = 5.0
# Minimum width and height of a grid in points, about two rows of small print.
_MIN_GRID = 14.0
# Minimum share of cells with text. The grid of a chart is mostly empty.
_MIN_FILLED = 0.6
# Minimum share of columns with a header. If fewer have one, the header of the table is above the grid.
_MIN_HEADED = 0.5
_MIN_TEXTS = 4
# Minimum number of distinct cells per grid position. Fewer suggest the boxes of a diagram.
_MIN_BOXES = 0.4
# Maximum length of a cell that contains most of the table's text. A longer one suggests a page layout.
_MAX_CELL_CHARS = 600
_MAX_BOXES = 5000
# Maximum length of a header cell. Longer text is a paragraph in a frame.
_MAX_HEADER_CHARS = 120
# Minimum share of rows below the header that have two or more filled cells.
_MIN_FULL_ROWS = 0.5
_MIN_UNRULED_ROWS = 3
# Minimum number of rows in a table whose first row is a title, and the minimum share of the width that the
# title spans.
_MIN_TITLED_ROWS, _TITLE_SHARE = 2, 0.9
_SIGNS_BEFORE, _SIGNS_AFTER = frozenset("$€£"), frozenset(("%", ")", ")%"))
_FIGURE = re.compile(r"[-+−–—(]?\s*(?:[$€£]\s*)?\d[\d.,]*\s*[)%]*\Z")
_LEADING_FIGURE = re.compile(r"[-+−–—(]?\s*(?:[$€£]\s*)?\d|(?:nil|n/?a|[-–—])\b|[-–—]\Z", re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)\d\d\Z")
_CUT_SENTENCE = re.compile(r"[,.;](?:\s|\Z)")


def page_rules(page: PageContent) -> tuple[list[Rule], list[Rule]]:
    """Return the horizontal and vertical rules of a page. If there are so many that they must be a drawing,
    both lists are empty.
    """
    rules = [rule for drawn in page.drawn for rule in drawn.rules]
    if len(rules) > _MOST_RULES:
        return [], []
    return [rule for rule in rules if not rule.is_vertical], [rule for rule in rules if rule.is_vertical]


@dataclass(frozen=True)
class Grid:
    """Geometry of a table: its cells and their borders.

    Attributes:
        cells: box of the cell at each position, row by row from the top; merged cells are repeated.
        xs, ys: column borders in ascending order, and row borders in descending order.
    """

    box: Region
    cells: tuple[tuple[Region, ...], ...]
    xs: Sequence[float]
    ys: Sequence[float]

    def cell_at(self, x: float, y: float) -> Region:
        """Return the bounds of the cell that contains the point (x, y)."""
        column = min(max(bisect(self.xs, x) - 1, 0), len(self.xs) - 2)
        row = min(max(bisect(self.ys, -y, key=neg) - 1, 0), len(self.ys) - 2)
        return self.cells[row][column]


def find_grids(horizontal: Sequence[Rule], vertical: Sequence[Rule]) -> list[Grid]:
    """Return the grids with at least two rows and two columns, from the top of the page."""
    rows, columns = join_rules(horizontal), join_rules(vertical)
    if len(rows) < 2 or not columns or max(len(rows), len(columns)) > _MAX_RULES:
        return []
    grids = (_grid(group_rows, group_columns) for group_rows, group_columns in _groups(rows, columns))
    large = [grid for grid in grids if len(grid.cells) >= 2 and len(grid.cells[0]) >= 2]
    return sorted(large, key=lambda grid: -grid.box.top)


def join_rules(rules: Sequence[Rule]) -> list[Rule]:
    """Merge rules that are parts of one line, such as dashes, borders of adjacent cells, and both edges of a
    thin bar.
    """
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
    """Yield groups of horizontal and vertical rules that are connected, because they cross each other
    directly or through other rules.
    """
    nodes = Groups(len(rows) + len(columns))
    for column_number, column in enumerate(columns):
        for row_number, row in enumerate(rows):
            if _spans(row, column.at) and _spans(column, row.at):
                nodes.unite(row_number, len(rows) + column_number)
    for members in nodes.all():
        group_rows = [rows[node] for node in members if node < len(rows)]
        group_columns = [columns[node - len(rows)] for node in members if node >= len(rows)]
        if len(group_rows) >= 2 and group_columns and _has_room(group_rows, group_columns):
            yield group_rows, group_columns


def _has_room(rows: Sequence[Rule], columns: Sequence[Rule]) -> bool:
    """Return whether two rows and two columns of text fit between the lines. If they don't, the lines are
    underlines or frames.
    """
    ys = [rule.at for rule in rows] + [end for rule in columns for end in (rule.start, rule.end)]
    xs = [rule.at for rule in columns] + [end for rule in rows for end in (rule.start, rule.end)]
    return min(max(ys) - min(ys), max(xs) - min(xs)) >= _MIN_GRID


def _spans(rule: Rule, position: float) -> bool:
    return rule.start - _SAME <= position <= rule.end + _SAME


def _grid(rows: Sequence[Rule], columns: Sequence[Rule]) -> Grid:
    xs = _places(columns, rows)
    # Positions of the row borders, from the top.
    ys = _places(rows, columns)[::-1]
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
    return Grid(Region(xs[0], ys[-1], xs[-1], ys[0]), cells, xs, ys)


def _places(rules: Sequence[Rule], crossing: Sequence[Rule]) -> list[float]:
    """Return the positions of the borders along one axis, ascending.

    The outermost ends of crossing lines are included, for tables without outer borders.
    """
    ends = (min(rule.start for rule in crossing), max(rule.end for rule in crossing))
    places: list[float] = []
    for place in sorted([*(rule.at for rule in rules), *ends]):
        if not places or place - places[-1] > _MIN_CELL:
            places.append(place)
    return places


def _parted(rules: Sequence[Rule], at: float, middle: float) -> bool:
    return any(abs(rule.at - at) <= _MIN_CELL and rule.start <= middle <= rule.end for rule in rules)


class Groups:
    """Union-find structure for the numbers from 0 to `size - 1`."""

    def __init__(self, size: int) -> None:
        self._parents = list(range(size))

    def unite(self, first: int, second: int) -> None:
        self._parents[self._root(second)] = self._root(first)

    def all(self) -> list[list[int]]:
        """Return all groups. Each group is sorted, and the groups are ordered by their first members."""
        groups: dict[int, list[int]] = {}
        for node in range(len(self._parents)):
            groups.setdefault(self._root(node), []).append(node)
        return list(groups.values())

    def _root(self, node: int) -> int:
        while self._parents[node] != node:
            self._parents[node] = self._parents[self._parents[node]]
            node = self._parents[node]
        return node


def table_rows(grid: Grid, lines: Mapping[Region, Sequence[str]]) -> tuple[tuple[str, ...], ...] | None:
    """Return the texts of a table as rows from the top, with the header first. Return None if the grid isn't
    a table of text.

    `lines` are the lines of each cell. If all cells of a row have the same number of lines, and one cell has
    numbers, each line becomes a row, because the rules between rows are missing.

    A cell across rows is repeated in each row. A cell across columns is only repeated in the header, whose
    rows are joined. Columns of currency and percent signs are joined to their numbers.
    """
    texts = {box: " ".join(table) for box, table in lines.items()}
    if not _could_be_header([texts[box] for box in grid.cells[0]]) or not _is_table(grid, texts):
        return None
    header_rows = [[texts[box] for box in row] for row in grid.cells]
    header, row_count = merged_header(header_rows)
    body = [row for boxes in grid.cells[row_count:] for row in _body_rows(boxes, lines)]
    rows = [header, *(row for row in body if any(row))]
    _join_signs(rows)
    used = [
        column
        for column in range(len(header))
        if any(row[column] for row in rows[1:])
        or any(_has_own_name(row, column) for row in header_rows[:row_count])
    ]
    table = tuple(tuple(row[column] for column in used) for row in rows)
    full = sum(sum(map(bool, row)) > 1 for row in table[1:])
    return table if len(used) > 1 and full > _MIN_FULL_ROWS * (len(table) - 1) else None


def is_figure(text: str) -> bool:
    """Return whether a cell is a number, possibly with a sign, currency or percent sign. Years don't count as
    numbers.
    """
    return _FIGURE.match(text) is not None and _YEAR.match(text) is None


def _could_be_header(texts: Sequence[str]) -> bool:
    named_count = sum(map(bool, texts))
    return named_count >= _MIN_HEADED * len(texts) and all(
        len(text) <= _MAX_HEADER_CHARS and not is_figure(text) for text in texts
    )


def _is_table(grid: Grid, texts: Mapping[Region, str]) -> bool:
    # Ignore the space between a table and the frame around it, which contains no text.
    places = [box for row in grid.cells for box in row if box.intersect(grid.box) != grid.box]
    filled = [text for text in texts.values() if text]
    longest = max(filled, key=len, default="")
    return (
        len(filled) >= _MIN_TEXTS
        and len({box for row in grid.cells for box in row}) >= _MIN_BOXES * len(grid.cells) * len(grid.xs[1:])
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
    return [_spread_texts(boxes, row) for row in texts]


def _spread_texts(boxes: Sequence[Region], texts: Mapping[Region, str]) -> list[str]:
    """Return the texts of a row, one per column. In a cell across several columns, a number is assigned to
    the last column and other text to the first; the remaining columns are "".
    """
    row: list[str] = []
    for box, places in groupby(boxes):
        width = len(list(places))
        blanks = [""] * (width - 1)
        row += [*blanks, texts[box]] if is_figure(texts[box]) else [texts[box], *blanks]
    return row


def _join_signs(rows: Sequence[list[str]]) -> None:
    """Move currency and percent signs in separate columns to the numbers that they belong to. The rows are
    changed in place, and the columns of signs become empty.
    """
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


def _has_own_name(header: Sequence[str], column: int) -> bool:
    """Return whether a row of the header names a column with a cell that doesn't also span a neighbouring
    column.
    """
    neighbours = (header[max(column - 1, 0)], header[min(column + 1, len(header) - 1)])
    return bool(header[column]) and header[column] not in neighbours


@dataclass(frozen=True)
class Table:
    """A table with its texts, words and bounds on the page.

    Attributes:
        rows: texts of the cells from the top, header first.
        words: words in the cells.
    """

    box: Region
    rows: tuple[tuple[str, ...], ...]
    words: frozenset[Word]

    def continue_from(self, before: "Table") -> "Table":
        """Return this table with the header of `before`, the last table of the previous page. A table that
        has a header, or columns that don't match, is returned unchanged.
        """
        sides = zip(self._sides(), before._sides(), strict=True)
        is_aligned = all(abs(side - other) <= _SAME_SIDE for side, other in sides)
        if any(self.rows[0]) or len(self.rows[0]) != len(before.rows[0]) or not is_aligned:
            return self
        return replace(self, rows=(before.rows[0], *self.rows[1:]))

    def _sides(self) -> tuple[float, float]:
        """Return the left and right edge of the table's words. The box of a ruled table is wider."""
        return min(word.left for word in self.words), max(word.right for word in self.words)


def ruled_tables(page: PageContent, lines: Sequence[Line]) -> list[Table]:
    """Return the tables with ruling lines on a page.

    Args:
        lines: lines of the page with their words.
    """
    tables = []
    for grid in find_grids(*page_rules(page)):
        inside = [word for line in lines for word in line.words if grid.box.holds(*_centre(word))]
        if (table := _table(grid, inside)) is not None:
            tables.append(table)
    return tables


def place_tables(lines: Sequence[Line], tables: Sequence[Table]) -> Iterator[list[Line] | Table]:
    """Yield runs of lines, and each table at the position of the first line that contains its words.

    Words outside tables are kept, so a line that is partly in a table is shortened.
    """
    owners = {word: table for table in tables for word in table.words}
    seen: list[Table] = []
    run: list[Line] = []
    for line in lines:
        for table, group in groupby(line.words, key=owners.get):
            if table is None:
                words = tuple(group)
                run.append(line if len(words) == len(line.words) else with_words(line, words))
            elif table not in seen:
                if run:
                    yield run
                run = []
                seen.append(table)
                yield table
        if not line.words:
            run.append(line)
    if run:
        yield run


def _centre(word: Word) -> tuple[float, float]:
    return (word.left + word.right) / 2, word.middle


def _table(grid: Grid, words: Sequence[Word]) -> Table | None:
    """Return the grid with the texts of its cells as a table, or None if it isn't a table of text.

    A title in the first row remains in the text above the table.
    """
    boxes = dict.fromkeys(box for row in grid.cells for box in row)
    if len(boxes) > _MAX_BOXES:
        return None
    cells: dict[Region, list[Word]] = {box: [] for box in boxes}
    for word in words:
        cells[grid.cell_at(*_centre(word))].append(word)
    first = [box for box in dict.fromkeys(grid.cells[0]) if cells[box]]
    if (
        len(first) == 1
        and first[0].width > _TITLE_SHARE * grid.box.width
        and len(grid.cells) > _MIN_TITLED_ROWS
    ):
        title = cells.pop(first[0])
        words = [word for word in words if word not in title]
        grid = Grid(replace(grid.box, top=grid.ys[1]), grid.cells[1:], grid.xs, grid.ys[1:])
        cells.setdefault(first[0], [])
    lines = {box: _cell_lines(cell_words) for box, cell_words in cells.items()}
    rows = table_rows(grid, lines)
    if rows is None or any(_contains_rows(cell_words) for cell_words in lines.values()):
        return None
    return Table(grid.box, rows, frozenset(words))


def _contains_rows(lines: Sequence[str]) -> bool:
    """Return whether a cell contains several rows of a table without ruling lines. Such a grid isn't
    converted to a table.
    """
    count = sum(map(is_row, lines))
    return count > 1 and 2 * count > len(lines)


def _cell_lines(words: Sequence[Word]) -> list[str]:
    """Return the words of a cell as lines of text, from the top."""
    lines: list[list[Word]] = []
    for word in sorted(words, key=lambda word: -word.middle):
        before = lines[-1][0] if lines else None
        if before is None or before.middle - word.middle > _SAME_LINE * max(word.height, before.height):
            lines.append([])
        lines[-1].append(word)
    return [" ".join([word.text for word in sorted(line, key=lambda word: word.left)]) for line in lines]
