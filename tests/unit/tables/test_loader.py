"""Tests for loading users' files as tables or refusing them with a reason."""

import csv
import io
import random
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from shared.ingestion.parser_worker import ParseJob, parse_file
from shared.platform.errors import BadDocumentError
from shared.tables import loader
from shared.tables.cards import card
from shared.tables.loader import MAX_COLUMNS, MAX_TEXT_CHARS, TableFile
from shared.tables.models import CATALOG, DATABASE, Table, TableCatalog

Loaded = tuple[Table, list[tuple[Any, ...]]]


def loaded(path: Path, folder: Path) -> list[Loaded]:
    """Load a file and return each of its tables with the rows of its visible columns."""
    folder.mkdir()
    job = ParseJob(
        source=path,
        target=folder / "parsed.json",
        filename=path.name,
        max_tokens=500,
        max_blocks=20_000,
        tables=folder,
    )
    parse_file(job)
    if not (folder / CATALOG).exists():
        return []
    catalog = TableCatalog.from_stored((folder / CATALOG).read_bytes())
    with sqlite3.connect(folder / DATABASE) as connection:
        return [
            (table, connection.execute(f"SELECT {names(table)} FROM {table.stored_name}").fetchall())
            for table in catalog.tables
        ]


def names(table: Table) -> str:
    return ", ".join(f'"{column.name}"' for column in table.columns)


def csv_file(folder: Path, text: str | bytes, name: str = "sales.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def xlsx_file(folder: Path, *sheets: Sequence[Any]) -> Path:
    book = Workbook()
    book.remove(book.worksheets[0])
    for number, rows in enumerate(sheets, start=1):
        sheet = book.create_sheet(f"Sheet {number}")
        for row in rows:
            sheet.append(list(row))
    path = folder / "book.xlsx"
    book.save(path)
    return path


def only(path: Path, folder: Path) -> Loaded:
    (table,) = loaded(path, folder)
    return table


def test_a_csv_file_is_a_table_with_types(tmp_path: Path) -> None:
    text = "Region,Revenue,Share\nNorth,120,10%\nSouth,80.5,n/a\n"
    table, rows = only(csv_file(tmp_path, text), tmp_path / "out")
    assert [(column.name, column.kind) for column in table.columns] == [
        ("region", "text"),
        ("revenue", "number"),
        ("share", "percent"),
    ]
    assert rows == [("North", 120.0, 0.1), ("South", 80.5, None)]
    assert table.columns[0].samples == ("North", "South")
    assert (table.columns[1].lowest, table.columns[1].highest) == ("80.5", "120")


def test_lines_and_cells_as_written_are_kept(tmp_path: Path) -> None:
    only(csv_file(tmp_path, "a,b\nx,10%\n\ny,20%\n"), tmp_path / "out")
    with sqlite3.connect(tmp_path / "out" / DATABASE) as connection:
        assert connection.execute("SELECT _row, b, b__raw FROM t1").fetchall() == [
            (2, 0.1, "10%"),
            (4, 0.2, "20%"),
        ]


def test_german_dates_are_kept_as_written(tmp_path: Path) -> None:
    only(csv_file(tmp_path, "a;Bezahlt am\nx;26.02.2025\ny;\n"), tmp_path / "out")
    with sqlite3.connect(tmp_path / "out" / DATABASE) as connection:
        cells = connection.execute("SELECT bezahlt_am, bezahlt_am__raw FROM t1").fetchall()
    assert cells[0] == ("2025-02-26", "26.02.2025")


def test_a_german_file_is_read_as_one(tmp_path: Path) -> None:
    text = "Monat;Umsatz;Stück\nJan;1.234,50;1.000\nFeb;99,00;2.000\n".encode("cp1252")
    table, rows = only(csv_file(tmp_path, text), tmp_path / "out")
    assert rows == [("Jan", 1234.5, 1000), ("Feb", 99.0, 2000)]
    assert table.columns[2].name == "stück"


def test_a_header_of_two_lines_becomes_one(tmp_path: Path) -> None:
    rows = [["", "2023", "", "2024", ""], ["Region", "Q1", "Q2", "Q1", "Q2"], ["North", 1, 2, 3, 4]]
    table, loaded_rows = only(xlsx_file(tmp_path, rows), tmp_path / "out")
    assert [column.label for column in table.columns] == [
        "Region",
        "2023 Q1",
        "2023 Q2",
        "2024 Q1",
        "2024 Q2",
    ]
    assert loaded_rows == [("North", 1, 2, 3, 4)]


def test_titles_totals_and_notes_are_no_rows(tmp_path: Path) -> None:
    rows = [
        ["Revenue by region"],
        [],
        ["Region", "EUR"],
        ["North", 1],
        ["South", 2],
        ["Total", 3],
        [],
        ["Source: controlling"],
    ]
    table, loaded_rows = only(xlsx_file(tmp_path, rows), tmp_path / "out")
    assert (table.title, loaded_rows) == ("Revenue by region", [("North", 1), ("South", 2)])
    assert [(total.line, total.label) for total in table.totals] == [(6, "Total")]


@pytest.mark.parametrize(
    "line", ["in thousand EUR", "(in Mio. €)", "Angaben in TEUR", "en milliers d'euros", "Mio. €", "in k€"]
)
def test_a_line_with_the_unit_is_no_title(tmp_path: Path, line: str) -> None:
    rows = [["Revenue by region"], [line], ["Region", "2024"], ["North", 1], ["South", 2]]
    table, _ = only(xlsx_file(tmp_path, rows), tmp_path / "out")
    assert (table.title, table.unit) == ("Revenue by region", line.strip("()"))
    assert f"Unit: {table.unit}" in card(table, 500, lambda texts: [9] * len(texts))


@pytest.mark.parametrize(
    "rows",
    [
        [["Revenue (in k€)"], ["Region", "2023", "2024"]],
        [["Revenue"], ["in k€", "2023", "2024"]],
        [["Revenue"], ["Region", "2023", "2024"], ["in k€"]],
    ],
)
def test_the_unit_may_stand_in_the_title_or_the_table(tmp_path: Path, rows: list[list[str]]) -> None:
    table, loaded_rows = only(xlsx_file(tmp_path, [*rows, ["North", 1, 2]]), tmp_path / "out")
    assert (table.title, table.unit, loaded_rows) == ("Revenue", "in k€", [("North", 1, 2)])


def test_a_row_of_units_belongs_to_the_header(tmp_path: Path) -> None:
    rows = [["Region", "2023", "2024"], ["", "Mio. €", "%"], ["North", 1, 2], ["South", 3, 4]]
    table, loaded_rows = only(xlsx_file(tmp_path, rows), tmp_path / "out")
    assert [column.label for column in table.columns] == ["Region", "2023 Mio. €", "2024 %"]
    assert loaded_rows == [("North", 1, 2), ("South", 3, 4)]


@pytest.mark.parametrize(
    ("number_format", "unit"),
    [
        ('#,##0.00 "€"', "EUR"),
        ("[$€-407]#,##0.00", "EUR"),
        ("_($* #,##0.00_);_($* (#,##0.00)", "USD"),
        ("[$USD] #,##0", "USD"),
        ("[$-409]#,##0", ""),
    ],
)
def test_a_currency_format_makes_a_column_of_money(tmp_path: Path, number_format: str, unit: str) -> None:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (["Region", "Revenue"], ["North", 1200.5], ["South", -80], ["East", 0]):
        sheet.append(row)
    for place in ("B2", "B3"):
        sheet[place].number_format = number_format
    path = tmp_path / "a.xlsx"
    book.save(path)
    table, loaded_rows = only(path, tmp_path / "out")
    assert (table.columns[1].unit, [value for _, value in loaded_rows]) == (unit, [1200.5, -80, 0])


REGIONS = """Region,Revenue
Germany,100
France,50
Total EMEA,150
USA,70
Total Americas,70
Total assets,220
Gesamtsumme,220
"""


def test_a_sum_counts_no_subtotal(tmp_path: Path) -> None:
    table, loaded_rows = only(csv_file(tmp_path, REGIONS), tmp_path / "out")
    assert sum(value for _, value in loaded_rows) == 220
    assert [total.label for total in table.totals] == [
        "Total EMEA",
        "Total Americas",
        "Total assets",
        "Gesamtsumme",
    ]
    assert table.row_count == 3


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Land,Umsatz\nBayern,1\nHessen,2\nSumme Inland,3\nPolen,4\nSumme Ausland,4\nInsgesamt,7\n", 7),
        ("Item,2023,2024\nCash,10.1,20.2\nDebt,5.1,6.1\nCurrent assets total,15.2,26.3\n", 15.2),
        ("Item,EUR m\nA,1.4\nB,2.4\nC,3.4\nTotal A to C,7.3\n", 7.2),  # rounded
        ("Item,EUR\nA,10\nB,20\nC,30\n,60\n", 60),  # a total without a label
        ("Region,Country,EUR\nEMEA,Germany,10\nEMEA,France,20\nEMEA,Total,30\n", 30),
        ("Item,EUR\nTotal,60\nA,10\nB,20\nC,30\n", 60),  # the total comes first
        ("Company,EUR\nShell,10\nTotal SE,25\nTotalEnergies SE,5\nBP,30\n", 70),
        ("Item,EUR\nA,10\nB,20\nThird,30\n", 60),  # two numbers that add up to a third by chance
        ("Year,Births\n2001,1\n2002,2\n2003,3\n2004,6\n", 12),
        ("Child,Toys\nAnna,1\nBen,1\nCara,1\nDora,3\n", 6),
        # a total without any of the known words for totals
        ("Land,2023,2024\nA,10,1\nB,20,2\nC,30,4\nKonzern,60,7\n", 60),
        ("Year,Sales,Costs\n2020-01-01,10,4\n2021-01-01,20,5\n2022-01-01,35,6\nAll years,65,15\n", 65),
    ],
    ids=[
        "German",
        "at the end",
        "rounded",
        "unnamed",
        "second column",
        "first",
        "company",
        "chance",
        "years",
        "small numbers",
        "two columns",
        "below dates",
    ],
)
def test_totals_are_told_by_their_words_and_by_arithmetic(tmp_path: Path, text: str, left: float) -> None:
    table, loaded_rows = only(csv_file(tmp_path, text), tmp_path / "out")
    column = next(
        place for place, one in enumerate(table.columns) if one.kind != "text" and one.name != "year"
    )
    assert round(sum(row[column] for row in loaded_rows), 6) == left


def test_the_card_names_the_totals(tmp_path: Path) -> None:
    table, _ = only(csv_file(tmp_path, REGIONS), tmp_path / "out")
    text = card(table, 500, lambda texts: [9] * len(texts))
    assert "Totals of other rows, left out: Total EMEA (line 4)" in text


def test_a_second_header_below_a_blank_line_begins_a_table(tmp_path: Path) -> None:
    rows = [["Region", "EUR"], ["North", 1], [], ["Product", "Pieces"], ["Bolt", 7]]
    first, second = loaded(xlsx_file(tmp_path, rows), tmp_path / "out")
    assert (first[1], second[1]) == ([("North", 1)], [("Bolt", 7)])


def test_each_sheet_is_a_table_with_its_page(tmp_path: Path) -> None:
    rows = [["a", "b"], [1, 2]]
    tables = loaded(xlsx_file(tmp_path, rows, rows), tmp_path / "out")
    assert [(table.sheet, table.page_number) for table, _ in tables] == [("Sheet 1", 1), ("Sheet 2", 2)]


def test_equal_and_missing_labels_get_different_names(tmp_path: Path) -> None:
    table, _ = only(csv_file(tmp_path, "x,x,,2024\n1,2,3,4\n"), tmp_path / "out")
    assert [column.name for column in table.columns] == ["x", "x_2", "column_3", "c_2024"]


def test_a_table_that_is_too_wide_is_left_out_with_its_reason(tmp_path: Path) -> None:
    file = TableFile(tmp_path, "wide.csv")
    wide = [str(number) for number in range(MAX_COLUMNS + 1)]
    assert list(file.load_rows([wide, wide])) == [wide, wide]
    assert file.close() == ()
    assert "401 columns" in file.notes[0]


def test_the_card_is_a_piece_of_the_document_that_names_the_columns(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "Region,Revenue\nNorth,120\n")
    (tmp_path / "tables").mkdir()
    job = ParseJob(
        source=path,
        target=tmp_path / "parsed.json",
        filename=path.name,
        max_tokens=60,
        max_blocks=9,
        tables=tmp_path / "tables",
    )
    *passages, card = parse_file(job).chunks
    assert [chunk.kind for chunk in passages] == ["table"]
    assert card.kind == "card"
    assert "- revenue: whole number, from 120 to 120" in card.text


def messy_rows(chance: random.Random) -> list[list[str]]:
    """Return a sheet with titles, gaps, mixed column types and uneven widths, as found in real files."""
    cells = [
        "",
        "7",
        "1.234,5",
        "1,234.5",
        "5%",
        "€ 3",
        "n/a",
        "31.12.2024",
        "2024-02-30",
        "x" * 300,
        "=1+",
        "'",
        '"q"',
    ]
    width = chance.randint(1, 12)
    rows = [[chance.choice(cells) for _ in range(max(0, width + chance.randint(-2, 2)))] for _ in range(30)]
    for _ in range(chance.randint(0, 4)):
        rows.insert(
            chance.randint(0, len(rows)),
            chance.choice([[], ["Title"], ["Total", "9"], ["", "2023", "", "2024"]]),
        )
    return rows


@pytest.mark.parametrize("seed", range(5))
def test_messy_files_load_or_fail_with_a_reason(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    for number in range(100):
        rows = messy_rows(chance)
        if number % 10 == 0:
            path = xlsx_file(tmp_path, rows)
        else:
            buffer = io.StringIO()
            csv.writer(buffer, delimiter=chance.choice(",;\t|")).writerows(rows)
            encoding = chance.choice(["utf-8", "utf-8-sig", "utf-16", "cp1252"])
            path = csv_file(tmp_path, buffer.getvalue().encode(encoding, "replace"))
        with suppress(BadDocumentError):  # refused with a reason
            for table, loaded_rows in loaded(path, tmp_path / f"out-{number}"):
                assert len(loaded_rows) == table.row_count


def test_a_large_table_is_kept_whole_and_its_first_rows_become_passages(tmp_path: Path) -> None:
    words = "x" * 9_000
    rows = "".join(f"{number},{words}\n" for number in range(400))
    source, folder = csv_file(tmp_path, f"Number,Words\n{rows}"), tmp_path / "out"
    folder.mkdir()
    job = ParseJob(
        source=source,
        target=folder / "parsed.json",
        filename=source.name,
        max_tokens=500,
        max_blocks=20_000,
        tables=folder,
    )
    parsed = parse_file(job)
    catalog = TableCatalog.from_stored((folder / CATALOG).read_bytes())
    assert catalog.tables[0].row_count == 400
    assert catalog.size_bytes == (folder / DATABASE).stat().st_size
    passage_chars = sum(chunk.text.count("x") for chunk in parsed.chunks if chunk.kind != "card")
    assert MAX_TEXT_CHARS <= passage_chars < MAX_TEXT_CHARS + 10_000
    assert any("of the 401 rows of 'sales'" in warning for warning in parsed.warnings)


def test_a_large_table_that_cannot_be_kept_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "MAX_TEXT_CHARS", 1_000)
    monkeypatch.setattr(loader, "MAX_TABLE_CHARS", 5_000)
    with pytest.raises(BadDocumentError, match="more than 5,000 characters"):
        loaded(csv_file(tmp_path, "Number,Words\n" + "1,some words\n" * 1_000), tmp_path / "out")


def test_rows_under_a_merged_label_are_added_up_by_it(tmp_path: Path) -> None:
    book = Workbook()
    sheet = book.worksheets[0]
    rows: list[list[Any]] = [
        ["Area", "Project", "Budget"],
        ["IT", "Portal", 420],
        [None, "Data lake", 260],
        [None, "Phones", 90],
    ]
    for row in [*rows, ["Subtotal IT", None, 770], ["Plant", "Line", 1850], [None, "Roof", 340]]:
        sheet.append(row)
    sheet.merge_cells("A2:A4")
    sheet.merge_cells("A6:A7")
    book.save(tmp_path / "book.xlsx")
    only(tmp_path / "book.xlsx", tmp_path / "out")
    with sqlite3.connect(tmp_path / "out" / DATABASE) as connection:
        sums = connection.execute("SELECT area, SUM(budget) FROM t1 GROUP BY 1").fetchall()
    assert sums == [("IT", 770), ("Plant", 2190)]


def test_tables_side_by_side_are_separate_with_their_lines(tmp_path: Path) -> None:
    rows = [
        ["Figures"],
        [],
        ["Region", "Sales", None, None, "Product", "Units"],
        ["North", 120, None, None, "P1", 1000],
        ["South", 95, None, None, "P2", 650],
    ]
    (_, sales), (_, units) = loaded(xlsx_file(tmp_path, rows), tmp_path / "out")
    assert (sales, units) == ([("North", 120), ("South", 95)], [("P1", 1000), ("P2", 650)])
    with sqlite3.connect(tmp_path / "out" / DATABASE) as connection:
        assert connection.execute("SELECT _row FROM t2").fetchall() == [(4,), (5,)]
