"""Ruling lines into grids of cells. Pure geometry: knows lines, not text.

Lines that cross belong to one grid. Its rows and columns are where lines run; places that no line parts are
one merged cell.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from shared.ingestion.parsers.pdf_rules import Rule

_SAME = 3.0  # points: lines nearer than this are one, and lines that miss each other by less do cross
_MAX_RULES = 250  # in each direction, after joining; more is a drawing
_MIN_CELL = 5.0  # points


@dataclass(frozen=True)
class Box:
    """A rectangle in points; y grows upwards."""

    left: float
    bottom: float
    right: float
    top: float

    def holds(self, x: float, y: float) -> bool:
        return self.left <= x <= self.right and self.bottom <= y <= self.top


@dataclass(frozen=True)
class Grid:
    """A table's shape.

    Attributes:
        cells: row by row from the top, the box of the cell that covers each place; merged ones repeat.
    """

    box: Box
    cells: tuple[tuple[Box, ...], ...]


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
        box = Box(xs[min(across)], ys[max(down) + 1], xs[max(across) + 1], ys[min(down)])
        boxes.update(dict.fromkeys(members, box))
    cells = tuple(tuple(boxes[row * width + column] for column in range(width)) for row in range(height))
    return Grid(Box(xs[0], ys[-1], xs[-1], ys[0]), cells)


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
