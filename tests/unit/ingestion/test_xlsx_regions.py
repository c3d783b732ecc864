"""Tests for tables that stand side by side in a sheet."""

from collections.abc import Sequence

import pytest
from openpyxl import Workbook

from shared.ingestion.parsers.xlsx_regions import regions
from tests.unit.ingestion.conftest import Parse

SALES = [["Region", "Sales"], ["North", "120"], ["South", "95"], ["West", "143"]]
UNITS = [["Product", "Units"], ["P1", "1000"], ["P2", "650"], ["P3", "87"]]


def beside(left: Sequence[Sequence[str]], right: Sequence[Sequence[str]], gap: int) -> list[list[str]]:
    return [[*one, *[""] * gap, *other] for one, other in zip(left, right, strict=True)]


def divided(rows: Sequence[Sequence[str]]) -> list[tuple[int, list[Sequence[str]]]]:
    return [(region.first_line, list(region.rows)) for region in regions(rows)]


@pytest.mark.parametrize("gap", [1, 2, 3])
def test_tables_side_by_side_are_divided_at_empty_columns(gap: int) -> None:
    rows = [["Figures"], [], *beside(SALES, UNITS, gap), [], ["Source: controlling"]]
    assert divided(rows) == [
        (1, [["Figures"], []]),
        (3, [*SALES, []]),
        (3, [*UNITS, []]),
        (8, [["Source: controlling"]]),
    ]


def test_tables_of_different_length_are_divided() -> None:
    rows = beside([*SALES, ["", ""]], [*UNITS, ["P4", "5"]], 2)
    assert divided(rows) == [(1, [*SALES, ["", ""]]), (1, [*UNITS, ["P4", "5"]])]


@pytest.mark.parametrize(
    "rows",
    [
        beside(SALES, [["2024", "2025"], ["1", "2"], ["3", "4"], ["5", "6"]], 2),
        beside(SALES, [["Comment", "Owner"], ["new", "Ada"], ["new", "Ben"], ["", "Cy"]], 1),
        beside(SALES, [["Email", "City"], ["a@x.de", "Rome"], ["b@x.de", "Bern"], ["c@x.de", "Oslo"]], 1),
        beside(SALES, [["Comment", "Owner"], ["new", "Ada"], ["new", "Ben"], ["", "Cy"]], 2),
        beside(SALES, [["Comment"], ["new"], ["old"], ["none"]], 2),
        [["Name:", "", "", "Ada Lovelace"], ["Team:", "", "", "Engines"]],
        [["A", "B"], ["1", "2"], [], ["x", "", "y"]],
    ],
)
def test_groups_of_columns_of_one_table_stay_together(rows: list[list[str]]) -> None:
    assert divided(rows) == [(1, rows)]


def test_tables_of_texts_with_a_common_header_are_divided() -> None:
    left = [["Name", "City"], ["Ann", "Rome"], ["Ben", "Bern"]]
    right = [["Name", "Role"], ["Cy", "Chef"], ["Di", "Cook"]]
    assert divided(beside(left, right, 1)) == [(1, left), (1, right)]


def test_tables_with_titles_of_their_own_are_divided() -> None:
    left, right = [["Sales", ""], *SALES], [["Units", ""], *UNITS]
    assert divided(beside(left, right, 1)) == [(1, left), (1, right)]


def test_tables_side_by_side_continue_after_blank_rows() -> None:
    rows = [*beside(SALES, UNITS, 1), [], [], *beside([["East", "99"]], [["P4", "12"]], 1), ["Source: x"]]
    more = [[], [], ["East", "99"], ["Source: x"]]
    assert divided([*rows, [], ["2026"]]) == [
        (1, [*SALES, *more, []]),
        (1, [*UNITS, [], [], ["P4", "12"], [], []]),
        (10, [["2026"]]),
    ]


def test_tables_below_tables_side_by_side_are_not_joined_to_them() -> None:
    rows = [*beside(SALES, UNITS, 1), []]
    assert divided([*rows, *rows]) == [
        (1, [*SALES, []]),
        (1, [*UNITS, []]),
        (6, [*SALES, []]),
        (6, [*UNITS, []]),
    ]


def test_sheets_of_many_groups_are_one_region() -> None:
    rows = [[f"{row}", "1", ""] * 12 for row in "abc"]
    assert divided(rows) == [(1, rows)]


def test_long_sheets_are_one_region() -> None:
    rows = beside([["Region", "Sales"], *[[f"R{n}", "1"] for n in range(5000)]], [["P", "U"]] * 5001, 2)
    assert divided(rows) == [(1, rows)]


def test_no_row_of_a_passage_belongs_to_two_tables(parse: Parse) -> None:
    workbook = Workbook()
    for row in beside(SALES, UNITS, 2):
        workbook.worksheets[0].append(row)
    elements = parse(workbook, ".xlsx").elements
    assert [element.text.splitlines()[2] for element in elements if element.kind == "table"] == [
        "| North | 120 |",
        "| P1 | 1000 |",
    ]
