"""Tests for tables of figures without ruling lines, and for content that resembles them."""

from pathlib import Path

import pytest
from fpdf import FPDF

from shared.documents.models import Element
from shared.ingestion.chunking import chunk_elements
from shared.ingestion.parsers.pdf import parse_pdf
from shared.platform.tokens import estimate_tokens

LABELS, FIRST, SECOND = 50.0, 400.0, 500.0  # left edge of the labels, right edges of two number columns
ROWS = (
    ("Net sales", "3,642", "3,507"),
    ("Cost of sales", "(2,980)", "(2,862)"),
    ("Gross profit", "662", "645"),
)


class Page:
    """A page written word by word from the top."""

    def __init__(self) -> None:
        self.pdf = FPDF(unit="pt")
        self.pdf.add_page()
        self.pdf.set_font("Helvetica", size=10)
        self.y = 80.0

    def text(self, text: str, left: float = LABELS) -> None:
        self.pdf.text(left, self.y, text)

    def right(self, text: str, right: float) -> None:
        self.pdf.text(right - self.pdf.get_string_width(text), self.y, text)

    def row(self, label: str, *figures: str) -> None:
        self.text(label)
        for figure, right in zip(figures, (FIRST, SECOND), strict=False):
            self.right(figure, right)
        self.y += 14

    def line(self, text: str, left: float = LABELS) -> None:
        self.text(text, left)
        self.y += 14

    def elements(self, tmp_path: Path) -> tuple[Element, ...]:
        (tmp_path / "a.pdf").write_bytes(bytes(self.pdf.output()))
        return parse_pdf(tmp_path / "a.pdf").elements


def table_of(elements: tuple[Element, ...]) -> list[str]:
    (table,) = [element for element in elements if element.kind == "table"]
    return table.text.splitlines()


def test_rows_of_figures_become_a_table_with_their_header_of_two_rows(tmp_path: Path) -> None:
    page = Page()
    page.line("The results of the quarter are summarised below.")
    page.y += 14
    page.right("Year ended June 30,", (FIRST + SECOND) / 2 + 40)
    page.y += 14
    page.row("(in millions)", "2023", "2022")
    for row in ROWS:
        page.row(*row)
    elements = page.elements(tmp_path)
    assert [element.kind for element in elements] == ["paragraph", "table"]
    assert table_of(elements) == [
        "| (in millions) | Year ended June 30, 2023 | Year ended June 30, 2022 |",
        "| --- | --- | --- |",
        "| Net sales | 3,642 | 3,507 |",
        "| Cost of sales | (2,980) | (2,862) |",
        "| Gross profit | 662 | 645 |",
    ]


@pytest.mark.parametrize("unit", ["(Millions)", "in TEUR", "en milliers d'euros"])
def test_a_unit_above_the_labels_belongs_to_the_header(tmp_path: Path, unit: str) -> None:
    page = Page()
    page.line(unit)
    page.row("Net income", "2023", "2022")
    for row in ROWS:
        page.row(*row)
    assert table_of(page.elements(tmp_path))[0] == f"| {unit} Net income | 2023 | 2022 |"


def test_names_of_columns_may_stand_left_of_their_figures(tmp_path: Path) -> None:
    page = Page()
    page.line("Twelve Months Ended June 30,", 345)
    page.text("($ million)")
    page.text("2022", 345)
    page.line("2023", 445)
    for row in ROWS:
        page.row(*row)
    assert table_of(page.elements(tmp_path))[0] == (
        "| ($ million) | Twelve Months Ended June 30, 2022 | Twelve Months Ended June 30, 2023 |"
    )


def test_currencies_and_percent_signs_stay_with_their_figures(tmp_path: Path) -> None:
    page = Page()
    page.row("", "2023", "2022")
    for label, sales, share in (("Net sales", "3,642", "41"), ("Services", "1,207", "7")):
        page.text("$", 340)
        page.text("%", SECOND + 3)
        page.row(label, sales, share)
    assert table_of(page.elements(tmp_path))[2:] == [
        "| Net sales | $ 3,642 | 41% |",
        "| Services | $ 1,207 | 7% |",
    ]


def test_a_long_table_repeats_its_header_in_each_chunk(tmp_path: Path) -> None:
    page = Page()
    page.row("In thousands", "2023", "2022")
    for number in range(80):
        page.row(f"Product number {number}", f"{number + 1},100", f"{number + 1},050")
    chunks = chunk_elements(page.elements(tmp_path), 200, estimate_tokens)
    assert len(chunks) > 2
    assert all("| In thousands | 2023 | 2022 |\n| --- |" in chunk.text for chunk in chunks)
    rows = [line for chunk in chunks for line in chunk.text.splitlines() if line.startswith("| Product")]
    assert len(rows) == len(set(rows)) == 80


def test_a_table_without_a_header_repeats_no_row_in_its_place(tmp_path: Path) -> None:
    page = Page()
    for row in ROWS:
        page.row(*row)
    assert table_of(page.elements(tmp_path))[:3] == [
        "|  |  |  |",
        "| --- | --- | --- |",
        "| Net sales | 3,642 | 3,507 |",
    ]


def test_a_label_of_two_lines_is_one_row(tmp_path: Path) -> None:
    page = Page()
    page.row("", "2023", "2022")
    page.row(*ROWS[0])
    page.line("Proceeds from the sale of property,")
    page.row("plant and equipment", "12", "8")
    assert (
        table_of(page.elements(tmp_path))[-1]
        == "| Proceeds from the sale of property, plant and equipment | 12 | 8 |"
    )


def test_names_of_sections_are_rows_and_no_header(tmp_path: Path) -> None:
    page = Page()
    page.row("", "2023", "2022")
    page.line("Current assets:")
    for row in ROWS:
        page.row(*row)
    assert table_of(page.elements(tmp_path))[:3] == [
        "|  | 2023 | 2022 |",
        "| --- | --- | --- |",
        "| Current assets: |  |  |",
    ]


def test_a_second_table_with_other_columns_is_a_table_of_its_own(tmp_path: Path) -> None:
    page = Page()
    page.row("", "2023", "2022")
    for row in ROWS:
        page.row(*row)
    page.right("Shares", 300)
    page.right("Price", 350)
    page.right("Total", 470)
    page.y += 14
    for name, shares, price, total in (
        ("March", "1,100", "20.5", "22,550"),
        ("April", "900", "21.5", "19,350"),
    ):
        page.right(shares, 300)
        page.right(price, 350)
        page.right(total, 470)
        page.line(name)
    tables = [element.text for element in page.elements(tmp_path) if element.kind == "table"]
    assert len(tables) == 2
    assert tables[1].splitlines()[0] == "|  | Shares | Price | Total |"


def test_a_tables_title_ends_the_heading_of_the_table_before(tmp_path: Path) -> None:
    page = Page()
    for title in ("Consolidated Balance Sheets", "Consolidated Statements of Cash Flows"):
        page.line(title)
        page.y += 14
        page.row("(in millions)", "2023", "2022")
        for row in ROWS:
            page.row(*row)
        page.y += 28
    chunks = chunk_elements(page.elements(tmp_path), 200, estimate_tokens)
    assert [(chunk.kind, chunk.heading_path) for chunk in chunks] == [
        ("table", "Consolidated Balance Sheets"),
        ("table", "Consolidated Statements of Cash Flows"),
    ]


def test_a_unit_behind_a_tables_title_stays_with_the_table(tmp_path: Path) -> None:
    page = Page()
    for title in ("CONSOLIDATED BALANCE SHEETS", "CONSOLIDATED STATEMENTS OF CASH FLOWS"):
        page.line(f"{title} (in millions, except per share data)")
        page.y += 14
        page.row("", "2023", "2022")
        for row in ROWS:
            page.row(*row)
        page.y += 28
    chunks = chunk_elements(page.elements(tmp_path), 200, estimate_tokens)
    assert [(chunk.kind, chunk.heading_path) for chunk in chunks] == [
        ("table", "CONSOLIDATED BALANCE SHEETS"),
        ("table", "CONSOLIDATED STATEMENTS OF CASH FLOWS"),
    ]
    assert all(chunk.text.startswith("(in millions, except per share data)\n") for chunk in chunks)


def test_running_text_beside_a_table_is_no_part_of_it(tmp_path: Path) -> None:
    page = Page()
    prose = (
        "sales rose again and the",
        "margin was higher than in",
        "the year before while the",
        "costs of freight fell by a",
        "fifth of what they were",
    )
    for part in prose:
        page.line(part)
    page.y = 80
    for label, *figures in (("Total", "59%", "47%"), ("Men", "61%", "49%"), ("Women", "57%", "45%")):
        page.text(label, 250)
        page.row("", *figures)
    elements = page.elements(tmp_path)
    assert table_of(elements)[2:] == ["| Total | 59% | 47% |", "| Men | 61% | 49% |", "| Women | 57% | 45% |"]
    assert "sales rose again and the margin was higher" in " ".join(element.text for element in elements)


def chart(page: Page) -> None:
    """Draw a bar chart with numbers above the bars and a legend of numbers below."""
    for step, height in enumerate((40, 70, 55, 90, 60, 80)):
        page.pdf.set_fill_color(20, 60, 160)
        for part in range(4):
            page.pdf.rect(100 + 60 * step + 12 * part, 200 - height, 10, height, style="F")
    page.y = 210
    for label, *figures in (("Alpha", "40", "70", "55"), ("Beta", "90", "60", "80")):
        page.text(label, 100)
        for step, figure in enumerate(figures):
            page.text(figure, 180 + 60 * step)
        page.y -= 60


def contents(page: Page) -> None:
    for title, number in (("Introduction", "3"), ("Method", "12"), ("Results", "25"), ("Sources", "40")):
        page.row(title, number)


def numbered(page: Page) -> None:
    for number in range(1, 5):
        page.line(f"{number}    In 2019 each of them opened one of the 12 valves.")


def axis(page: Page) -> None:
    for value in range(5):
        page.right(f"{20 * value}", FIRST)
        page.right(f"{30 * value}", SECOND)
        page.y += 14


@pytest.mark.parametrize("draw", [chart, contents, numbered, axis])
def test_what_only_looks_like_rows_of_figures_is_no_table(draw: object, tmp_path: Path) -> None:
    page = Page()
    assert callable(draw)
    draw(page)
    assert "table" not in [element.kind for element in page.elements(tmp_path)]


def test_two_tables_side_by_side_are_two(tmp_path: Path) -> None:
    page = Page()
    sides = (("Assets", 50, 200, 240), ("Liabilities", 300, 460, 500))
    for name, left, first, second in sides:
        page.y = 80.0
        page.text(name, left)
        for year, right in (("2025", first), ("2024", second)):
            page.right(year, right)
        for number in range(1, 5):
            page.y += 14
            page.text(f"{name} of kind {'ABCD'[number - 1]}", left)
            page.right(f"{number},204", first)
            page.right(f"{number},310", second)
    tables = [element.text.splitlines() for element in page.elements(tmp_path) if element.kind == "table"]
    assert [(table[0], table[-1]) for table in tables] == [
        ("| Assets | 2025 | 2024 |", "| Assets of kind D | 4,204 | 4,310 |"),
        ("| Liabilities | 2025 | 2024 |", "| Liabilities of kind D | 4,204 | 4,310 |"),
    ]


def test_a_table_that_goes_on_overleaf_keeps_its_header(tmp_path: Path) -> None:
    page = Page()
    page.row("(in millions)", "2023", "2022")
    for row in ROWS:
        page.row(*row)
    page.pdf.add_page()
    page.y = 80.0
    for label in ("Research", "Sales costs", "Taxes"):
        page.row(label, "1,204", "1,310")
    tables = [element.text.splitlines() for element in page.elements(tmp_path) if element.kind == "table"]
    assert [table[0] for table in tables] == ["| (in millions) | 2023 | 2022 |"] * 2
    assert tables[1][2:] == [f"| {label} | 1,204 | 1,310 |" for label in ("Research", "Sales costs", "Taxes")]


def test_an_address_above_a_table_is_no_part_of_its_header(tmp_path: Path) -> None:
    page = Page()
    for address in ("Lindqvist Consulting", "Hafenweg 11", "20457 Hamburg"):
        page.text(address)
        page.text(f"{address} archive", 300)
        page.y += 12
    page.y += 8
    page.row("Item", "Quantity", "Amount")
    for row in (("Paper", "12", "262.80"), ("Toner", "3", "267.00"), ("Delivery", "1", "35.00")):
        page.row(*row)
    assert table_of(page.elements(tmp_path))[0] == "| Item | Quantity | Amount |"
