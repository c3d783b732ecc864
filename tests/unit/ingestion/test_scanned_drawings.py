"""Tests for figures on scanned pages with hidden recognised text."""

from pathlib import Path

import pypdfium2
from fpdf import FPDF
from fpdf.enums import TextMode

from shared.documents.models import Figure
from shared.ingestion.chunking import figures_of
from shared.ingestion.parsers.context import open_context
from shared.ingestion.parsers.pdf import parse_pdf
from shared.ingestion.parsers.pdf_lines import page_lines
from shared.ingestion.parsers.pdfium_text import text_lines
from tests.unit.ingestion.figure_files import TEXT, FigureMaker

_SCAN_DPI = 150


def scanned(original: Path, scan: Path, *, hidden: bool = True) -> Path:
    """Write the pages of a PDF as images, with their words as hidden or visible text."""
    document = pypdfium2.PdfDocument(original)
    copy = FPDF(unit="pt")
    copy.set_auto_page_break(auto=False)
    for number, page in enumerate(document, start=1):
        width, height = page.get_size()
        copy.add_page(format=(width, height))
        picture = page.render(scale=_SCAN_DPI / 72, grayscale=True).to_pil()
        copy.image(picture, 0, 0, width, height)
        copy.text_mode = TextMode.INVISIBLE if hidden else TextMode.FILL
        for line in page_lines(text_lines(page), number):
            copy.set_font("Helvetica", "", line.size)
            copy.text(line.left, height - line.bottom, line.text)
    document.close()
    copy.output(str(scan))
    return scan


def figures(maker: FigureMaker, folder: Path, *, hidden: bool = True) -> list[Figure]:
    path = scanned(maker.write(folder / "original.pdf"), folder / "scan.pdf", hidden=hidden)
    with open_context(folder, 20, recognition_budget_s=0) as context:
        return figures_of(parse_pdf(path, context).elements)


def new_page() -> FigureMaker:
    maker = FigureMaker()
    maker.page()
    maker.heading("Pumps")
    maker.paragraph(TEXT * 3)
    return maker


def test_a_drawing_on_a_scanned_page_is_a_figure_with_its_caption(tmp_path: Path) -> None:
    maker = new_page().chart(caption="Figure 3: Pressure of each pump, in bar")
    maker.paragraph(TEXT)
    (figure,) = figures(maker, tmp_path)
    assert figure.label == "Figure 3: Pressure of each pump, in bar"
    assert 600 < figure.width_px < 900  # the chart, not the page (1,240)
    assert 300 < figure.height_px < 600


def test_a_photo_on_a_scanned_page_is_a_figure(tmp_path: Path) -> None:
    (figure,) = figures(new_page().photo(), tmp_path)
    assert figure.width_px < 700


def test_scanned_text_is_no_figure(tmp_path: Path) -> None:
    maker = new_page()
    maker.paragraph(TEXT * 5)
    assert figures(maker, tmp_path) == []


def test_a_scanned_table_is_no_figure(tmp_path: Path) -> None:
    maker = new_page()
    maker.pdf.set_font("Helvetica", "", 10)
    for row in range(6):
        for column in range(4):
            maker.pdf.cell(40, 10, f"{row * 7}.{column}", border=1)
        maker.pdf.ln(10)
    assert figures(maker, tmp_path) == []


def test_a_page_on_a_coloured_ground_is_no_scan(tmp_path: Path) -> None:
    assert figures(new_page().chart(caption=""), tmp_path, hidden=False) == []
