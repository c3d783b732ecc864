"""Tests for deriving grids from ruling lines and rows from grids, without a PDF."""

import pytest

from shared.ingestion.parsers.pdf_content import Rule
from shared.ingestion.parsers.pdf_tables import Grid, find_grids, is_figure, join_rules, table_rows


def grid(columns: list[float], rows: list[float]) -> Grid:
    horizontal = [Rule(y, columns[0], columns[-1]) for y in rows]
    vertical = [Rule(x, rows[0], rows[-1]) for x in columns]
    (only_grid,) = find_grids(horizontal, vertical)
    return only_grid


def rows_of(texts: list[list[str]], shape: Grid) -> tuple[tuple[str, ...], ...] | None:
    lines = {
        box: text.split("\n") if text else []
        for boxes, row in zip(shape.cells, texts, strict=True)
        for box, text in zip(boxes, row, strict=True)
    }
    return table_rows(shape, lines)


def test_dashes_and_both_edges_of_a_bar_are_one_rule() -> None:
    pieces = [Rule(10.0, 0, 20), Rule(10.8, 22, 40), Rule(10.4, 40, 60), Rule(30.0, 0, 60)]
    (first, second) = join_rules(pieces)
    assert (first.start, first.end, second.at) == (0, 60, 30.0)


def test_a_missing_line_merges_cells() -> None:
    horizontal = [Rule(y, 0, 90) for y in (0, 20, 40)]
    vertical = [Rule(0, 0, 40), Rule(90, 0, 40), Rule(45, 0, 20)]
    (only_grid,) = find_grids(horizontal, vertical)
    assert only_grid.cells[0][0] == only_grid.cells[0][1]
    assert only_grid.cells[1][0] != only_grid.cells[1][1]


def test_lines_that_do_not_cross_make_no_grid() -> None:
    assert find_grids([Rule(y, 0, 90) for y in (0, 20, 40)], [Rule(200, 0, 40)]) == []


def test_signs_join_their_figures() -> None:
    shape = grid([0, 50, 60, 100, 110], [0, 20, 40, 60])
    texts = [["Item", "2023", "2023", "2023"], ["Sales", "$", "3,642", "%"], ["Costs", "$", "(2,980)", "%"]]
    assert rows_of(texts, shape) == (("Item", "2023"), ("Sales", "$ 3,642%"), ("Costs", "$ (2,980)%"))


def test_rows_that_nobody_parted_are_parted_by_their_lines() -> None:
    shape = grid([0, 50, 100], [0, 50, 60])
    assert rows_of([["Year", "Farms"], ["1850\n1860\n1870", "12\nNA\n1,597"]], shape) == (
        ("Year", "Farms"),
        ("1850", "12"),
        ("1860", "NA"),
        ("1870", "1,597"),
    )


@pytest.mark.parametrize(
    ("header", "possible"),
    [
        (["Name", "Age"], True),
        (["Item", "2023"], True),
        (["Sales", "3,642"], False),
        (["", ""], False),
        (["words " * 30, "b"], False),
    ],
)
def test_the_first_row_must_read_like_a_header(header: list[str], possible: bool) -> None:
    rows = rows_of([header, ["Anna", "3,642"], ["Ben", "2,980"]], grid([0, 50, 100], [0, 20, 40, 60]))
    assert (rows is not None) is possible


@pytest.mark.parametrize(
    ("text", "figure"),
    [("1,200", True), ("(2,980)", True), ("$ 5", True), ("23.6%", True), ("2023", False), ("P-1", False)],
)
def test_figures_are_told_from_names(text: str, figure: bool) -> None:
    assert is_figure(text) is figure
