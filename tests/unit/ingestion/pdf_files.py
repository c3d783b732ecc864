"""Small PDF files for tests, with exactly known content."""

from pathlib import Path
from typing import Self

from fpdf import FPDF

BODY_SIZE = 10


class PdfMaker:
    """A PDF writer that adds headings, paragraphs and rows from top to bottom."""

    def __init__(self) -> None:
        self.pdf = FPDF(format="A4")
        self.pdf.set_auto_page_break(auto=False)

    def page(self) -> Self:
        self.pdf.add_page()
        return self

    def heading(self, text: str, size: float = 18) -> Self:
        self.pdf.set_font("Helvetica", "B", size)
        self.pdf.cell(0, size / 2, text, new_x="LMARGIN", new_y="NEXT")
        self.pdf.ln(4)
        return self

    def paragraph(self, text: str) -> Self:
        self.pdf.set_font("Helvetica", "", BODY_SIZE)
        self.pdf.multi_cell(0, 5, text, align="L", new_x="LMARGIN", new_y="NEXT")
        self.pdf.ln(4)
        return self

    def rows(self, *rows: tuple[str, ...]) -> Self:
        self.pdf.set_font("Helvetica", "", BODY_SIZE)
        for row in rows:
            for cell in row:
                self.pdf.cell(40, 5, cell)
            self.pdf.ln(5)
        self.pdf.ln(4)
        return self

    def footer(self, text: str) -> Self:
        self.pdf.set_font("Helvetica", "", 8)
        self.pdf.set_y(285)
        self.pdf.cell(0, 5, text)
        return self

    def write(self, path: Path) -> Path:
        self.pdf.output(str(path))
        return path
