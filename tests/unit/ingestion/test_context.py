"""Tests for pictures in Word, PowerPoint and HTML files: named figures are kept, decorations are skipped."""

import base64
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from docx import Document
from docx.shared import Cm
from PIL import Image
from pptx import Presentation
from pptx.util import Cm as SlideCm

from shared.ingestion.chunking import figures_of
from shared.ingestion.parsers.context import ParseContext, embedded_figures, open_context
from shared.ingestion.parsers.docx import parse_docx
from shared.ingestion.parsers.html import parse_html
from shared.ingestion.parsers.image import parse_image
from shared.ingestion.parsers.pptx import parse_pptx
from tests.unit.ingestion.figure_files import picture


@pytest.fixture
def context(tmp_path: Path) -> Iterator[ParseContext]:
    folder = tmp_path / "figures"
    folder.mkdir()
    with open_context(folder, max_figures=10, recognition_budget_s=0) as parse_context:
        yield parse_context


def png(image: Image.Image) -> io.BytesIO:
    content = io.BytesIO()
    image.save(content, "PNG")
    content.seek(0)
    return content


def is_stored(context: ParseContext, key: str) -> bool:
    return (context.figures.path / f"{key}.png").is_file()


@pytest.mark.parametrize(
    ("description", "label"),
    [
        ("downtime chart v2.png", ""),
        (r"C:\Users\ann\Logo.JPG", ""),
        ("Picture 3", ""),
        ("A graph of a bar chart\n\nAI-generated content may be incorrect.", "A graph of a bar chart"),
        ("Ein Bild, das Text enthält.\n\nAutomatisch generierte Beschreibung", "Ein Bild, das Text enthält."),
        ("Revenue of 2.5 million", "Revenue of 2.5 million"),
    ],
)
def test_a_label_is_what_a_person_would_read(context: ParseContext, description: str, label: str) -> None:
    (figure,) = embedded_figures(png(picture(1)).getvalue(), description, context)
    assert figure.text == label


def test_a_word_picture_is_a_figure_under_its_heading(tmp_path: Path, context: ParseContext) -> None:
    document = Document()
    document.add_heading("Pump", 1)
    document.add_paragraph("The pump moves water.")
    shape = document.add_picture(png(picture(1)), width=Cm(8))
    shape._inline.docPr.set("descr", "The pump seen from the left")
    document.add_paragraph("Figure 1: The pump")
    document.add_picture(png(picture(2, (16, 16))))
    document.save(str(tmp_path / "a.docx"))
    parsed = parse_docx(tmp_path / "a.docx", context)
    (figure,) = figures_of(parsed.elements)
    assert figure.label == "The pump seen from the left"
    assert (figure.heading_path, figure.page_number) == ("Pump", None)
    assert "The pump moves water.\nFigure 1: The pump" in figure.context
    assert (figure.width_px, figure.height_px) == (320, 200)
    assert is_stored(context, figure.key)
    assert [element.kind for element in parsed.elements] == ["heading", "paragraph", "figure", "paragraph"]


def test_a_slides_picture_is_a_figure_of_its_page_and_a_logo_on_each_is_none(
    tmp_path: Path, context: ParseContext
) -> None:
    presentation = Presentation()
    for number in range(1, 5):
        slide = presentation.slides.add_slide(presentation.slide_layouts[5])
        slide.shapes.title.text = f"Slide {number}"
        slide.shapes.add_picture(png(picture(99)), SlideCm(1), SlideCm(15), SlideCm(3))
    group = slide.shapes.add_group_shape()
    group.shapes.add_picture(png(picture(3)), SlideCm(2), SlideCm(5), SlideCm(8))
    presentation.save(str(tmp_path / "a.pptx"))
    (figure,) = figures_of(parse_pptx(tmp_path / "a.pptx", context).elements)
    assert (figure.page_number, figure.heading_path) == (4, "Slide 4")
    assert figure.label == ""  # names such as "picture 3.png" are file names


def test_a_picture_in_a_web_page_is_a_figure_and_linked_ones_are_not_fetched(
    tmp_path: Path, context: ParseContext
) -> None:
    uri = f"data:image/png;base64,{base64.b64encode(png(picture(1)).getvalue()).decode()}"
    html = f"""<body><h1>Pump</h1><p>Water.</p><p>See <img src="{uri}" alt="Cut through the pump"> here.</p>
        <img src="http://127.0.0.1:9/a.png"><img src="data:image/png;base64,!!!"></body>"""
    (tmp_path / "a.html").write_text(html)
    parsed = parse_html(tmp_path / "a.html", context)
    (figure,) = figures_of(parsed.elements)
    assert (figure.label, figure.heading_path) == ("Cut through the pump", "Pump")
    assert "Water." in figure.context


def test_a_picture_file_is_a_figure(tmp_path: Path, context: ParseContext) -> None:
    picture(1, (3000, 2400)).save(tmp_path / "a.jpg")
    (figure,) = figures_of(parse_image(tmp_path / "a.jpg", context).elements)
    assert (figure.page_number, figure.width_px, figure.height_px) == (1, 2000, 1600)


def test_a_transparent_picture_is_shown_on_white(context: ParseContext) -> None:
    drawing = picture(1).convert("RGBA")
    drawing.paste((0, 0, 0, 0), (0, 0, 100, 200))
    figure = context.figures.add(drawing)
    assert figure is not None
    with Image.open(context.figures.path / f"{figure.key}.png") as image:
        assert image.mode == "RGB"
        assert image.getpixel((10, 10)) == (255, 255, 255)


@pytest.mark.parametrize(
    "image",
    [picture(1, (60, 60)), picture(1, (1800, 100)), Image.new("RGB", (300, 300), "blue")],
    ids=["icon", "rule", "plain"],
)
def test_decorations_are_not_kept(image: Image.Image, context: ParseContext) -> None:
    assert context.figures.add(image) is None
    assert list(context.figures.path.iterdir()) == []


def test_a_damaged_picture_costs_only_itself(tmp_path: Path, context: ParseContext) -> None:
    uri = base64.b64encode(png(picture(1)).getvalue()[:2000]).decode()
    (tmp_path / "a.html").write_text(f'<p>Water.</p><img src="data:image/png;base64,{uri}">')
    assert [element.text for element in parse_html(tmp_path / "a.html", context).elements] == ["Water."]
