"""Tests for the drawings and pictures of a PDF that become figures, with their captions and positions."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from shared.documents.models import Element, Figure, ParsedDocument
from shared.ingestion.chunking import figures_of
from shared.ingestion.parsers.context import open_context
from shared.ingestion.parsers.pdf import parse_pdf
from tests.unit.ingestion.figure_files import TEXT, FigureMaker


def parsed(maker: FigureMaker, folder: Path, max_figures: int = 20) -> ParsedDocument:
    with open_context(folder, max_figures, recognition_budget_s=0) as context:
        return parse_pdf(maker.write(folder / "a.pdf"), context)


def figures(maker: FigureMaker, folder: Path) -> list[Figure]:
    return figures_of(parsed(maker, folder).elements)


def new_page(maker: FigureMaker | None = None) -> FigureMaker:
    new_maker = maker or FigureMaker()
    new_maker.page()
    new_maker.heading("Pumps")
    new_maker.paragraph(TEXT * 3)
    return new_maker


def test_a_vector_drawing_is_a_figure_with_its_caption(tmp_path: Path) -> None:
    maker = new_page().chart(caption="Figure 3: Pressure of each pump, in bar")
    maker.paragraph(TEXT)
    (figure,) = figures(maker, tmp_path)
    assert figure.label == "Figure 3: Pressure of each pump, in bar"
    assert (figure.page_number, figure.heading_path) == (1, "Pumps")
    assert "trained person" in figure.context
    with Image.open(tmp_path / f"{figure.key}.png") as image:
        assert image.size == (figure.width_px, figure.height_px)
        # 120 x 60 mm at 150 dpi, with a caption
        assert 650 < image.width < 900
        assert 350 < image.height < 550


def test_a_raster_picture_is_a_figure_on_its_page(tmp_path: Path) -> None:
    maker = new_page(new_page()).photo()
    (figure,) = figures(maker, tmp_path)
    assert figure.page_number == 2
    assert abs(figure.width_px - 490) < 30  # 80 mm at 150 dpi, with a margin


def test_panels_of_one_caption_are_one_figure(tmp_path: Path) -> None:
    maker = new_page()
    top = maker.pdf.get_y()
    maker.photo(seed=1, left=20, size=(70, 50))
    maker.pdf.set_y(top)
    maker.photo(seed=2, left=100, size=(70, 50), caption="Figure 1: Both sides of the pump, left and right")
    (figure,) = figures(maker, tmp_path)
    assert figure.width_px > 850  # 150 mm at 150 dpi


def test_two_captions_are_two_figures_in_reading_order(tmp_path: Path) -> None:
    maker = new_page().chart(height=45, caption="Figure 1: Pressure")
    maker.photo(caption="Figure 2: The pump")
    assert [figure.label for figure in figures(maker, tmp_path)] == [
        "Figure 1: Pressure",
        "Figure 2: The pump",
    ]


NO_FIGURES: dict[str, Callable[[FigureMaker], object]] = {
    "text alone": lambda maker: maker.paragraph(TEXT),
    "rows with lines under them": lambda maker: maker.ruled(),
    "a picture behind the page": lambda maker: maker.background(),
    "an icon": lambda maker: maker.photo(size=(12, 12)),
    "a banner": lambda maker: maker.photo(size=(150, 20)),
    "a small frame": lambda maker: maker.pdf.rect(30, 120, 60, 40),
}


@pytest.mark.parametrize("name", NO_FIGURES)
def test_what_says_nothing_is_no_figure(name: str, tmp_path: Path) -> None:
    maker = new_page()
    NO_FIGURES[name](maker)
    assert figures(maker, tmp_path) == []


def test_a_logo_that_comes_on_every_page_is_no_figure(tmp_path: Path) -> None:
    maker = FigureMaker()
    for _ in range(4):
        new_page(maker).logo()
    maker.photo(seed=5)
    (figure,) = figures(maker, tmp_path)
    assert figure.page_number == 4
    assert figure.width_px > 400  # the photo, not the logo


def test_a_sentence_that_begins_with_a_figure_number_is_no_caption(tmp_path: Path) -> None:
    maker = new_page().photo()
    maker.paragraph("Figure 3 shows that the pressure falls when the valve opens, as every pump does.")
    (figure,) = figures(maker, tmp_path)
    assert figure.label == ""


def test_a_few_words_below_a_picture_name_it(tmp_path: Path) -> None:
    maker = new_page().photo()
    maker.paragraph("The pump house in 1962")
    (figure,) = figures(maker, tmp_path)
    assert figure.label == "The pump house in 1962"


def test_a_grid_with_text_in_its_cells_is_no_figure(tmp_path: Path) -> None:
    maker = new_page()
    for _ in range(12):
        for text in ("Pressure", "7.2 bar", ""):
            maker.pdf.cell(50, 6, text, border=1)
        maker.pdf.ln(6)
    assert figures(maker, tmp_path) == []


def test_words_in_a_drawing_stay_in_the_text(tmp_path: Path) -> None:
    maker = new_page().chart(caption="Figure 1: Pressure")
    maker.pdf.set_font("Helvetica", "", 8)
    maker.pdf.text(60, 110, "Valve V7")
    document = parsed(maker, tmp_path)
    texts = [element.text for element in document.elements if element.kind != "figure"]
    assert any("Valve V7" in text for text in texts)
    assert any("Figure 1: Pressure" in text for text in texts)
    (figure,) = [element for element in document.elements if element.kind == "figure"]
    assert figure.picture is not None
    assert "Valve V7" in figure.picture.words


def test_a_charts_title_and_labels_are_one_paragraph_and_no_heading(tmp_path: Path) -> None:
    maker = FigureMaker().page().heading("Report").paragraph(TEXT * 3)
    top = maker.pdf.get_y()
    maker.pdf.set_font("Helvetica", "B", 12)
    maker.pdf.text(32, top, "Pressure of the pumps")
    maker.chart()
    below = maker.pdf.get_y()
    maker.pdf.set_font("Helvetica", "", 7)
    for number in range(6):
        maker.pdf.text(34 + 20 * number, top + 60, f"P-{number}00")
    maker.pdf.set_y(below + 10)
    maker.paragraph(TEXT * 3)
    elements = parse_pdf(maker.write(tmp_path / "a.pdf")).elements
    assert [element.kind for element in elements] == ["heading", "paragraph", "paragraph", "paragraph"]
    assert elements[2].text == "Pressure of the pumps\nP-000 P-100 P-200 P-300 P-400 P-500"


def test_a_figure_stands_before_its_caption(tmp_path: Path) -> None:
    maker = new_page().chart(caption="Figure 1: Pressure")
    maker.paragraph("What follows.")
    elements = parsed(maker, tmp_path).elements
    position = [element.kind for element in elements].index("figure")
    assert elements[position + 1].text == "Figure 1: Pressure"


def test_figures_over_the_limit_are_told_of_by_the_folder(tmp_path: Path) -> None:
    maker = FigureMaker()
    for seed in range(3):
        new_page(maker).photo(seed=seed)
    path = maker.write(tmp_path / "a.pdf")
    with open_context(tmp_path, 2, recognition_budget_s=0) as context:
        document = parse_pdf(path, context)
    assert sum(element.kind == "figure" for element in document.elements) == 2
    assert context.figures.is_full


def test_without_a_context_there_are_no_figures(tmp_path: Path) -> None:
    document = parse_pdf(new_page().photo().write(tmp_path / "a.pdf"))
    assert all(element.kind != "figure" for element in document.elements)


@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_a_figure_of_a_turned_page_is_upright_as_its_text(rotation: int, tmp_path: Path) -> None:
    import pypdfium2

    path = new_page().photo().write(tmp_path / "a.pdf")
    document = pypdfium2.PdfDocument(path)
    document[0].set_rotation(rotation)
    document.save(tmp_path / "turned.pdf")
    document.close()
    with open_context(tmp_path, 5, recognition_budget_s=0) as context:
        (figure,) = figures_of(parse_pdf(tmp_path / "turned.pdf", context).elements)
    assert figure.width_px > figure.height_px
    with Image.open(tmp_path / f"{figure.key}.png") as image:
        white = sum(count for count, colour in image.getcolors(1 << 24) or [] if colour == (255, 255, 255))
        assert white < 0.15 * image.width * image.height  # only the margin


def test_a_picture_that_comes_twice_is_one_figure_and_one_that_comes_thrice_none() -> None:
    def at(page_number: int, key: str) -> Element:
        from shared.documents.models import Picture

        picture = Picture(key=key, width_px=100, height_px=100)
        return Element(kind="figure", text="", page_number=page_number, picture=picture)

    elements = [at(1, "twice"), at(1, "thrice"), at(2, "twice"), at(2, "thrice"), at(3, "thrice")]
    assert [(figure.key, figure.page_number) for figure in figures_of(elements)] == [("twice", 1)]
