"""Tests for tables with ruled lines on PDF pages, and for drawings that resemble them."""

from pathlib import Path

from fpdf import FPDF

from shared.documents.models import Element
from shared.ingestion.parsers.pdf import parse_pdf
from tests.unit.ingestion.pdf_files import PdfMaker

PROSE = "The pump moves water from the basin to the tank. It runs by itself once the level is low."
ROWS = (("Type", "Pressure", "Price"), ("P-100", "16 bar", "1,200"), ("P-200", "25 bar", "1,900"))


def ruled(pdf: FPDF, rows: tuple[tuple[str, ...], ...]) -> None:
    pdf.set_font("Helvetica", "", 10)
    with pdf.table(width=120, align="L") as table:
        for cells in rows:
            table.row(cells)


def parsed(maker: PdfMaker, tmp_path: Path) -> tuple[Element, ...]:
    return parse_pdf(maker.write(tmp_path / "a.pdf")).elements


def test_a_ruled_table_stands_once_in_its_place_between_the_paragraphs(tmp_path: Path) -> None:
    maker = PdfMaker().page().paragraph(PROSE)
    ruled(maker.pdf, ROWS)
    maker.pdf.ln(5)
    maker.paragraph("After the table.")
    assert [(e.kind, e.page_number, e.text) for e in parsed(maker, tmp_path)] == [
        ("paragraph", 1, PROSE),
        (
            "table",
            1,
            "| Type | Pressure | Price |\n| --- | --- | --- |\n"
            "| P-100 | 16 bar | 1,200 |\n| P-200 | 25 bar | 1,900 |",
        ),
        ("paragraph", 1, "After the table."),
    ]


def test_spanning_cells_of_the_header_stand_in_each_column(tmp_path: Path) -> None:
    maker = PdfMaker().page()
    maker.pdf.set_font("Helvetica", "", 10)
    with maker.pdf.table(width=120, align="L") as table:
        head = table.row()
        head.cell("Type")
        head.cell("Figures", colspan=2)
        for cells in ROWS[1:]:
            table.row(cells)
    (element,) = parsed(maker, tmp_path)
    assert element.text.splitlines()[0] == "| Type | Figures | Figures |"
    assert element.text.splitlines()[2] == "| P-100 | 16 bar | 1,200 |"


def test_names_below_a_spanning_cell_of_the_header_are_joined_to_it(tmp_path: Path) -> None:
    maker = PdfMaker().page()
    maker.pdf.set_font("Helvetica", "", 10)
    with maker.pdf.table(width=120, align="L", num_heading_rows=2) as table:
        head = table.row()
        head.cell("Type", rowspan=2)
        head.cell("Figures", colspan=2)
        table.row(("Pressure", "Price"))
        for cells in ROWS[1:]:
            table.row(cells)
    (element,) = parsed(maker, tmp_path)
    assert element.text.splitlines()[::2] == [
        "| Type | Figures Pressure | Figures Price |",
        "| P-100 | 16 bar | 1,200 |",
    ]


def test_a_title_in_the_first_row_is_text_above_the_table(tmp_path: Path) -> None:
    maker = PdfMaker().page()
    maker.pdf.set_font("Helvetica", "", 10)
    with maker.pdf.table(width=120, align="L") as table:
        table.row().cell("Pumps of this year", colspan=3)
        for cells in ROWS:
            table.row(cells)
    title, element = parsed(maker, tmp_path)
    assert title.text == "Pumps of this year"
    assert element.text.splitlines()[0] == "| Type | Pressure | Price |"
    assert len(element.text.splitlines()) == 4


def test_a_frame_round_a_paragraph_is_no_table(tmp_path: Path) -> None:
    maker = PdfMaker().page()
    maker.pdf.rect(5, 5, 200, 40)
    maker.pdf.line(5, 40, 205, 40)
    maker.paragraph(PROSE)
    assert [element.kind for element in parsed(maker, tmp_path)] == ["paragraph"]


def test_a_chart_grid_with_few_words_is_no_table(tmp_path: Path) -> None:
    maker = PdfMaker().page().paragraph(PROSE)
    for step in range(6):
        maker.pdf.line(20, 60 + 10 * step, 120, 60 + 10 * step)
        maker.pdf.line(20 + 20 * step, 60, 20 + 20 * step, 110)
    maker.pdf.text(25, 65, "100")
    assert "table" not in [element.kind for element in parsed(maker, tmp_path)]


def test_a_table_whose_header_stands_above_its_lines_has_it_all_the_same(tmp_path: Path) -> None:
    maker = PdfMaker().page().rows(("Item", "2023", "2022"))
    ruled(maker.pdf, (("Sales", "3,642", "3,507"), ("Costs", "2,980", "2,862")))
    (element,) = parsed(maker, tmp_path)
    assert element.text.splitlines() == [
        "| Item | 2023 | 2022 |",
        "| --- | --- | --- |",
        "| Sales | 3,642 | 3,507 |",
        "| Costs | 2,980 | 2,862 |",
    ]
