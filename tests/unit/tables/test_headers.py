"""Tests for headers of several rows, and for the rows that must remain data."""

from collections.abc import Sequence

import pytest

from shared.tables.headers import (
    continues_header,
    header_unit,
    is_table_title,
    join_header,
    merged_header,
)

Rows = Sequence[Sequence[str]]


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        ([["Region", "2024", "2024"], ["Region", "Q1", "Q2"]], ["Region", "2024 Q1", "2024 Q2"]),
        ([["", "2024", "2024"], ["Region", "Q1", "Q2"]], ["Region", "2024 Q1", "2024 Q2"]),
        ([["2023", "2023", "2024", "2024"], ["H1", "H2", "H1", "H2"]],
         ["2023 H1", "2023 H2", "2024 H1", "2024 H2"]),
        ([["Region", "Sales", "Sales", "Profit"], ["Region", "2023", "2024", "2024"]],
         ["Region", "Sales 2023", "Sales 2024", "Profit 2024"]),
        ([["Region", "2024", "2024", "2024"], ["Region", "H1", "H1", "H2"], ["Region", "Q1", "Q2", "Q3"]],
         ["Region", "2024 H1 Q1", "2024 H1 Q2", "2024 H2 Q3"]),
        ([["Region", "2023", "2024"], ["", "k€", "k€"]], ["Region", "2023 k€", "2024 k€"]),
        ([["Item", "Actual", "Actual"], ["Item", "31.12.2023", "31.12.2024"]],
         ["Item", "Actual 31.12.2023", "Actual 31.12.2024"]),
    ],
)  # fmt: skip
def test_rows_below_merged_cells_belong_to_the_header(rows: Rows, labels: list[str]) -> None:
    data = [["North", "1", "2", "3"], ["South", "4", "5", "6"]]
    assert merged_header([*rows, *(row[: len(labels)] for row in data)]) == (labels, len(rows))


@pytest.mark.parametrize(
    "rows",
    [
        [["Pump", "Pump", "EUR"], ["big", "P-1", "new"], ["big", "P-2", "old"]],
        [["", "Pump", "Pump"], ["Weight", "12 kg", "13 kg"], ["Height", "3 m", "4 m"]],
        [["Region", "2024", "2024"], ["Region", "12", "13"], ["North", "1", "2"]],
        [["Region", "Sales", "Profit"], ["North", "high", "low"], ["South", "low", "low"]],
        [["Both", "Both", "Both"], ["a", "b", "c"], ["d", "e", "f"]],
        [["Region", "2024", "2024"], ["Region", "a" * 101, "b"], ["North", "c", "d"]],
        [["Region", "2024", "2024"], ["Region", "Q1", "Q2"]],
    ],
)
def test_values_below_merged_cells_are_no_header(rows: Rows) -> None:
    assert merged_header(rows) == (list(rows[0]), 1)


@pytest.mark.parametrize(
    ("row", "below", "is_title"),
    [
        (["Sales of 2024"] * 3, ["Region", "Q1", "Q2"], True),
        (["in k€"] * 2, ["Region", "Sales"], True),
        (["Action"] * 2, ["Swim", "Glide"], False),
        (["Sales"] * 3, ["more"] * 3, False),
        (["", "", ""], ["a", "b", "c"], False),
    ],
)
def test_a_cell_across_all_columns_is_a_title(row: list[str], below: list[str], is_title: bool) -> None:
    assert is_table_title(row, below) == is_title


def test_a_spreadsheet_header_of_three_lines_is_joined_with_its_units() -> None:
    header, *rows = [
        ["Region", "2024", "", "2025", ""],
        ["", "Q1", "Q2", "Q1", "Q2"],
        ["", "k€", "k€", "k€", "k€"],
    ]
    for row_count, row in enumerate(rows, start=1):
        assert continues_header(header, row, row_count)
        header = join_header(header, row)
    assert header == ["Region", "2024 Q1 k€", "2024 Q2 k€", "2025 Q1 k€", "2025 Q2 k€"]
    assert not continues_header(header, ["North", "1", "2", "3", "4"], 3)


def test_names_of_rows_are_not_joined_to_a_header_with_an_empty_cell() -> None:
    header = join_header(["", "2024", "", ""], ["Region", "Q1", "Q2", ""])
    assert not continues_header(header, ["North", "high", "low", "new"], 2)


@pytest.mark.parametrize(
    ("labels", "unit"),
    [(["in k€", "2023", "2024"], "in k€"), (["EUR", "USD"], ""), (["Region", "2023"], ""), (["€"], "€")],
)
def test_a_header_may_begin_with_the_unit(labels: list[str], unit: str) -> None:
    assert header_unit(labels) == unit
