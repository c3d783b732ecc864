"""Tests for the reading order of PDF pages, which follows text positions instead of the order of writing."""

from pathlib import Path

from fpdf import FPDF

from shared.ingestion.parsers.pdf import parse_pdf


class Page:
    """A page on which text can be written anywhere, in any order."""

    def __init__(self) -> None:
        self._pdf = FPDF(unit="pt")
        self._pdf.add_page()
        self._pdf.set_font("Helvetica", size=10)

    def text(self, left: float, top: float, *lines: str, size: float = 10) -> None:
        self._pdf.set_font("Helvetica", size=size)
        for number, line in enumerate(lines):
            self._pdf.text(left, top + 1.2 * size * number, line)

    def read(self, folder: Path) -> list[str]:
        path = folder / "page.pdf"
        self._pdf.output(str(path))
        return [element.text for element in parse_pdf(path).elements]


def test_a_heading_written_last_is_read_first(tmp_path: Path) -> None:
    page = Page()
    page.text(50, 140, "The first sentence of the page stands here,", "and it ends in the second line.")
    page.text(50, 100, "Annual report", size=20)
    assert page.read(tmp_path) == [
        "Annual report",
        "The first sentence of the page stands here, and it ends in the second line.",
    ]


def test_the_left_column_is_read_first_though_the_right_one_was_written_first(tmp_path: Path) -> None:
    page = Page()
    page.text(320, 100, "Third comes the top", "of the right column.")
    page.text(320, 160, "Fourth comes the end", "of the right column.")
    page.text(50, 100, "First comes the top", "of the left column.")
    page.text(50, 160, "Second comes the end", "of the left column.")
    assert [text.split()[0] for text in page.read(tmp_path)] == ["First", "Second", "Third", "Fourth"]


def test_cards_that_were_written_row_by_row_stay_in_rows(tmp_path: Path) -> None:
    page = Page()
    for row, top in enumerate((100, 200)):
        for column, left in enumerate((50, 320)):
            page.text(left, top, f"Card {2 * row + column + 1} of four, with a name", "and a second line.")
    assert [text[:6] for text in page.read(tmp_path)] == ["Card 1", "Card 2", "Card 3", "Card 4"]


def test_text_below_a_sidebar_is_read_after_it(tmp_path: Path) -> None:
    page = Page()
    page.text(50, 100, "The narrow text beside the box", "is read before the box.")
    page.text(50, 300, "Below both of them runs a sentence over the whole width of the page.")
    page.text(300, 100, "The box tells something else", "in a few words of its own.")
    assert [text.split()[1] for text in page.read(tmp_path)] == ["narrow", "box", "both"]
