"""Tests for the Excel parser with generated workbooks."""

import io
from datetime import datetime

import pytest
import xlsxwriter  # type: ignore[import-untyped]
from openpyxl import Workbook

from shared.ingestion.parsers.tables import MAX_ROWS
from shared.ingestion.parsers.xlsx import cell_text, sheet_elements
from tests.unit.ingestion.conftest import Parse


def test_a_sheet_is_a_page_with_its_name_as_heading(parse: Parse) -> None:
    workbook = Workbook()
    workbook.active.title = "Prices"  # type: ignore[union-attr]
    for row in (["Type", "Price"], ["P-100", 1200], ["P-200", 1900.5]):
        workbook.active.append(row)  # type: ignore[union-attr]
    workbook.create_sheet("Empty")
    workbook.create_sheet("Contacts").append(["Ada", "ada@example.org"])
    document = parse(workbook, ".xlsx")
    assert [(e.kind, e.page_number, e.text) for e in document.elements] == [
        ("heading", 1, "Prices"),
        ("table", 1, "| Type | Price |\n| --- | --- |\n| P-100 | 1200 |\n| P-200 | 1900.5 |"),
        ("heading", 3, "Contacts"),
        ("table", 3, "| Ada | ada@example.org |\n| --- | --- |"),
    ]
    assert document.page_count == 3


def test_formulas_are_read_by_their_stored_value(parse: Parse) -> None:
    content = io.BytesIO()
    with xlsxwriter.Workbook(content) as workbook:
        sheet = workbook.add_worksheet()
        sheet.write_row(0, 0, ["Sum", "Share"])
        sheet.write_formula(1, 0, "=40+2", value=42)
        sheet.write_number(1, 1, 0.075, workbook.add_format({"num_format": "0.0%"}))
    document = parse(content.getvalue(), ".xlsx")
    assert document.elements[1].text.splitlines()[-1] == "| 42 | 7.5% |"
    assert document.warnings == ()


def test_formulas_without_a_stored_value_are_named(parse: Parse) -> None:
    workbook = Workbook()
    workbook.active.append(["a", "=1+1"])  # type: ignore[union-attr]
    (warning,) = parse(workbook, ".xlsx").warnings
    assert "no stored value" in warning


def test_hidden_sheets_are_left_out_and_named(parse: Parse) -> None:
    workbook = Workbook()
    workbook.active.append(["shown", "too"])  # type: ignore[union-attr]
    hidden = workbook.create_sheet("Lists")
    hidden.append(["secret", "list"])
    hidden.sheet_state = "hidden"
    document = parse(workbook, ".xlsx")
    assert not any("secret" in element.text for element in document.elements)
    assert document.warnings == ("Sheet 'Lists' is hidden and was left out.",)


@pytest.mark.parametrize(
    ("value", "number_format", "text"),
    [
        (0.1 + 0.2, "General", "0.3"),
        (1e6, "General", "1000000"),
        (0.255, '0.0%"x"', "25.5%"),
        (3, '"100%"0', "3"),
        (True, "General", "TRUE"),
        (datetime(2024, 3, 1), "dd/mm/yy", "2024-03-01"),  # noqa: DTZ001 - Excel knows no zones
        (datetime(2024, 3, 1, 8, 30), "General", "2024-03-01T08:30:00"),  # noqa: DTZ001
        ("text", "@", "text"),
    ],
)
def test_values_are_written_as_people_do(value: object, number_format: str, text: str) -> None:
    assert cell_text(value, number_format) == text


def test_titles_above_a_table_are_paragraphs_and_blank_rows_part_tables() -> None:
    rows = [
        ["", "Report"],
        [],
        ["", "Name", "Age"],
        ["", "Ada", "36"],
        [],
        ["Town", "Country"],
        ["Bonn", "DE"],
    ]
    assert [(e.kind, e.text) for e in sheet_elements(rows, 1)] == [
        ("paragraph", "Report"),
        ("table", "| Name | Age |\n| --- | --- |\n| Ada | 36 |"),
        ("table", "| Town | Country |\n| --- | --- |\n| Bonn | DE |"),
    ]


def test_figures_after_a_blank_row_go_on_under_the_header() -> None:
    rows = [["Name", "Age"], ["Ada", "36"], [], ["Bob", "41"]]
    _, second = sheet_elements(rows, 1)
    assert second.text == "| Name | Age |\n| --- | --- |\n| Bob | 41 |"


def test_long_tables_come_in_parts_under_their_header() -> None:
    rows = ([f"name {number}", str(number)] for number in range(2 * MAX_ROWS))
    parts = list(sheet_elements([["Name", "Number"], *rows], 1))
    assert [len(part.text.splitlines()) for part in parts] == [MAX_ROWS + 2, MAX_ROWS + 2]
    assert all(part.text.startswith("| Name | Number |\n| --- | --- |\n") for part in parts)


def test_a_header_of_two_rows_is_one_in_passages_too() -> None:
    rows = [["Region", "2023", ""], ["", "Units", "Revenue"], ["North", "5", "120"]]
    (table,) = sheet_elements(rows, 1)
    header = table.text.splitlines()[0]
    assert header == "| Region | 2023 Units | 2023 Revenue |"
