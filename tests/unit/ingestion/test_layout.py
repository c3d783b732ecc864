"""Tests for layouts of parser services: figures are cropped from the file, and tables are kept whole."""

from contextlib import closing
from pathlib import Path

import pypdfium2
import pytest
from fpdf import FPDF

from shared.evidence.models import PageArea
from shared.ingestion.models import Layout, LayoutPiece
from shared.ingestion.parsers.context import ParseContext, ServicePages, open_context
from shared.ingestion.parsers.layout import cut_figure, layout_elements, parse_image_layout, parse_pdf_layout
from shared.ingestion.parsers.pdf import open_pdf
from tests.unit.ingestion.figure_files import picture


def red_corner(folder: Path, rotation: int = 0) -> Path:
    """Return a PDF page whose upper left quarter is red, rotated clockwise by `rotation` degrees."""
    pdf = FPDF(format="A4")
    pdf.add_page()
    pdf.set_fill_color(255, 0, 0)
    pdf.rect(0, 0, 105, 148.5, style="F")
    pdf.output(str(folder / "made.pdf"))
    document = pypdfium2.PdfDocument(folder / "made.pdf")
    document[0].set_rotation(rotation)
    document.save(folder / "turned.pdf")
    document.close()
    return folder / "turned.pdf"


def figure(left: float, top: float, right: float, bottom: float, page_number: int = 1) -> LayoutPiece:
    area = PageArea(left=left, top=top, right=right, bottom=bottom)
    return LayoutPiece(kind="figure", text="Figure 1", page_number=page_number, area=area)


@pytest.mark.parametrize(
    ("rotation", "red", "white"),
    [(0, (0.1, 0.1), (0.6, 0.1)), (90, (0.6, 0.1), (0.1, 0.1)), (180, (0.6, 0.6), (0.1, 0.1))],
)
def test_an_area_is_cut_as_the_page_is_seen(
    tmp_path: Path, rotation: int, red: tuple[float, float], white: tuple[float, float]
) -> None:
    with closing(open_pdf(red_corner(tmp_path, rotation))) as document:
        for (left, top), colour in ((red, (255, 0, 0)), (white, (255, 255, 255))):
            image = cut_figure(document, figure(left, top, left + 0.3, top + 0.3))
            assert image is not None
            assert image.getpixel((image.width // 2, image.height // 2)) == colour
            assert min(image.size) > 300


@pytest.mark.parametrize("piece", [figure(0, 0, 1, 1, 7), figure(0.5, 0.5, 0.5, 0.5), figure(3, 3, 4, 4)])
def test_an_area_that_is_none_gives_no_picture(tmp_path: Path, piece: LayoutPiece) -> None:
    with closing(open_pdf(red_corner(tmp_path))) as document:
        assert cut_figure(document, piece) is None


def test_marks_of_lists_make_list_items_and_tables_stay_whole() -> None:
    pieces = [
        LayoutPiece(kind="paragraph", text="• Close the valve", page_number=1),
        LayoutPiece(kind="table", rows=(("a", "b"), ("1|2", "3")), page_number=2),
    ]
    item, table = layout_elements(pieces, lambda _: None, ParseContext())
    assert (item.kind, item.text) == ("list_item", "- Close the valve")
    assert (table.kind, table.page_number) == ("table", 2)
    assert table.text == "| a | b |\n| --- | --- |\n| 1\\|2 | 3 |"


def test_of_a_picture_the_whole_page_is_the_figure(tmp_path: Path) -> None:
    picture(seed=1).save(tmp_path / "a.png")
    pieces = (figure(0, 0, 0.5, 0.5), LayoutPiece(kind="heading", text="Flow", page_number=1, level=1))
    layout = Layout(pieces=pieces, page_count=1, service="it")
    with open_context(tmp_path, max_figures=3, recognition_budget_s=0) as context:
        document = parse_image_layout(tmp_path / "a.png", layout, context)
    assert document is not None
    assert [(element.kind, element.text) for element in document.elements] == [
        ("figure", ""),
        ("heading", "Flow"),
    ]
    assert document.elements[0].picture is not None
    assert document.warnings == ()


def test_a_layout_of_too_few_pages_is_none(tmp_path: Path) -> None:
    layout = Layout(pieces=(), page_count=0, service="it")
    assert parse_pdf_layout(red_corner(tmp_path), layout, ParseContext()) is None
    picture(seed=1).save(tmp_path / "a.png")
    assert parse_image_layout(tmp_path / "a.png", layout, ParseContext()) is None


def test_pages_that_a_service_did_not_read_are_noted() -> None:
    elsewhere = ServicePages({2: "words"})
    assert (elsewhere.text_of(2), elsewhere.text_of(3)) == ("words", None)
    assert elsewhere.unread == [3]
