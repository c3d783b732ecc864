"""Tests for cells of workbooks that are merged over several rows."""

import io
from collections.abc import Sequence
from string import ascii_uppercase

import pytest
from openpyxl import Workbook

from shared.ingestion.parsers import xlsx
from shared.ingestion.parsers.xlsx_merges import Merge, vertical_merges
from shared.platform.errors import BadDocumentError
from tests.unit.ingestion.conftest import Parse

Rows = Sequence[Sequence[object]]


def workbook(rows: Rows, *merged: str) -> Workbook:
    book = Workbook()
    sheet = book.worksheets[0]
    for row in rows:
        sheet.append(list(row))
    for cells in merged:
        sheet.merge_cells(cells)
    return book


PORTFOLIO: Rows = [
    ["Project portfolio 2026, amounts in thousand EUR"],
    [],
    ["Area", "Project", "Budget"],
    ["IT", "Portal", 420],
    [None, "Data lake", 260],
    [None, "Phones", 90],
    ["Subtotal IT", None, 770],
    ["Plant", "New line", 1850],
    [None, "Roof", 340],
]


def test_the_label_of_several_rows_is_that_of_each(parse: Parse) -> None:
    document = parse(workbook(PORTFOLIO, "A4:A6", "A8:A9", "A1:C1"), ".xlsx")
    assert document.elements[-1].text.splitlines()[2:] == [
        "| IT | Portal | 420 |",
        "| IT | Data lake | 260 |",
        "| IT | Phones | 90 |",
        "| Subtotal IT |  | 770 |",
        "| Plant | New line | 1850 |",
        "| Plant | Roof | 340 |",
    ]


def test_a_header_of_two_lines_keeps_its_names(parse: Parse) -> None:
    rows: Rows = [
        ["Part", "Stock", None, "Note"],
        [None, "Lyon", "Gent", None],
        ["BR-1", 140, 60, "x"],
        ["BR-2", 5, 6],
    ]
    document = parse(workbook(rows, "A1:A2", "B1:C1", "D1:D2", "D3:D4"), ".xlsx")
    assert document.elements[1].text.splitlines() == [
        "| Part | Stock Lyon | Stock Gent | Note |",
        "| --- | --- | --- | --- |",
        "| BR-1 | 140 | 60 | x |",
        "| BR-2 | 5 | 6 | x |",
    ]


def test_a_number_of_several_rows_is_not_added_up_several_times(parse: Parse) -> None:
    rows: Rows = [["No.", "Item", "Price"], [1, "Pump", 1850], [None, "Hose"], [2, "Valve", 20]]
    document = parse(workbook(rows, "A2:A3", "C2:C3"), ".xlsx")
    assert document.elements[1].text.splitlines()[2:] == [
        "| 1 | Pump | 1850 |",
        "| 1 | Hose |  |",
        "| 2 | Valve | 20 |",
    ]


def test_a_number_beside_a_label_of_several_rows_is_not_added_up_several_times(parse: Parse) -> None:
    rows: Rows = [
        ["Area", "Budget", "Project"],
        ["North", 5, "P1"],
        [None, 6, "P2"],
        [None, 500, "P3"],
        [None, None, "P4"],
    ]
    document = parse(workbook(rows, "A2:A5", "B4:B5"), ".xlsx")
    assert document.elements[1].text.splitlines()[4:] == ["| North | 500 | P3 |", "| North |  | P4 |"]


def test_blank_rows_stay_blank_and_groups_after_them_are_completed(parse: Parse) -> None:
    rows: Rows = [["Area", "Item", "Price"], ["IT", "a", 10], [], ["Plant", "b", 20], [None, "c", 30]]
    document = parse(workbook(rows, "A2:A3", "A4:A5"), ".xlsx")
    assert "| Plant | c | 30 |" in document.elements[-1].text
    assert "\n| IT |  |" not in "\n".join(element.text for element in document.elements)


def test_merges_are_found_across_the_parts_that_are_read() -> None:
    cells = b'<mergeCells count="2"><mergeCell ref="A1:B1"/><mergeCell ref="AB12:AC14"/></mergeCells>'
    for padding in range(0, 120, 7):
        source = io.BytesIO(b" " * ((1 << 20) - padding) + cells)
        assert vertical_merges(source) == [Merge(27, 12, 14)]


def test_the_repeated_text_of_a_workbook_is_limited(parse: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xlsx, "_MAX_REPEATED_CHARS", 100)
    rows: Rows = [["Area", "Item"], *(["A" * 20, n] for n in range(10))]
    with pytest.raises(BadDocumentError, match="merged cells"):
        parse(workbook(rows, "A2:A11"), ".xlsx")


def test_cells_that_merged_cells_add_to_rows_are_counted(
    parse: Parse, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = workbook([["Area", "Item"], *([f"A{n}", n] for n in range(20))], "CV2:CV21")
    book.worksheets[0]["CV2"] = "remark"
    monkeypatch.setattr(xlsx, "_MAX_PLACES", 1000)
    with pytest.raises(BadDocumentError, match="positions"):
        parse(book, ".xlsx")


def test_merged_cells_that_continue_in_blank_rows_are_counted(
    parse: Parse, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [["Area", "Item"], ["x"] * 26, *[[]] * 38, ["y"]]
    monkeypatch.setattr(xlsx, "_MAX_PLACES", 1000)
    with pytest.raises(BadDocumentError, match="positions"):
        parse(workbook(rows, *(f"{column}2:{column}40" for column in ascii_uppercase)), ".xlsx")
