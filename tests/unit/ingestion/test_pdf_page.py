"""Tests for drawing a PDF page and for the positions of its words."""

from pathlib import Path

import pypdfium2
import pytest
from PIL import Image, ImageChops

from shared.documents.page_models import PageSheet
from shared.evidence.quote_places import quote_areas
from shared.ingestion.page_pictures import RENDER_TIMEOUT_S
from shared.ingestion.parser_process import parsers
from shared.ingestion.parser_worker import RenderJob
from shared.ingestion.parsers.pdf_page import MAX_SIDE_PX, render_page
from shared.platform.errors import BadDocumentError, NotFoundError
from tests.unit.ingestion.pdf_files import PdfMaker

QUOTE = "The heron stands in shallow water."


@pytest.fixture
def source(tmp_path: Path) -> Path:
    maker = PdfMaker().page().heading("Birds").page().heading("Herons").paragraph(f"Early. {QUOTE} It waits.")
    return maker.write(tmp_path / "birds.pdf")


def ink_within(picture: Path, sheet: PageSheet, quote: str) -> tuple[float, float]:
    """Return the share of dark pixels inside and outside the rectangles of a quotation."""
    with Image.open(picture) as opened:
        image = opened.convert("L")
    inside = Image.new("L", image.size)
    for area in quote_areas(sheet.words, quote):
        left, right = int(area.left * image.width), int(area.right * image.width)
        top, bottom = int(area.top * image.height), int(area.bottom * image.height)
        inside.paste(255, (left, top, right, bottom))
    return _dark(image, inside), _dark(image, ImageChops.invert(inside))


def _dark(image: Image.Image, mask: Image.Image) -> float:
    counts = image.histogram(mask)
    return sum(counts[:128]) / max(1, sum(counts))


def test_the_rectangles_of_a_quotation_lie_on_its_ink(source: Path, tmp_path: Path) -> None:
    picture = tmp_path / "2.png"
    sheet = render_page(source, 2, picture)
    assert " ".join(word.text for word in sheet.words).startswith(f"Herons Early. {QUOTE}")
    inside, outside = ink_within(picture, sheet, QUOTE)
    assert inside > 0.05
    assert outside < 0.01
    assert ink_within(picture, sheet, "Nothing of it")[0] == 0


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_on_a_turned_page_they_lie_there_too(source: Path, tmp_path: Path, turn: int) -> None:
    with pypdfium2.PdfDocument(source) as document:
        document[1].set_rotation(turn)
        document[1].set_cropbox(20, 200, 500, 842)
        document.save(tmp_path / "turned.pdf")
    sheet = render_page(tmp_path / "turned.pdf", 2, tmp_path / "turned.png")
    inside, outside = ink_within(tmp_path / "turned.png", sheet, QUOTE)
    assert inside > 0.05
    assert outside < 0.02


def test_a_large_drawing_is_drawn_smaller(tmp_path: Path) -> None:
    document = pypdfium2.PdfDocument.new()
    document.new_page(9000, 300)
    document.save(tmp_path / "large.pdf")
    document.close()
    sheet = render_page(tmp_path / "large.pdf", 1, tmp_path / "large.png")
    assert (sheet.width_px, sheet.words) == (MAX_SIDE_PX, ())


def test_what_cannot_be_drawn_says_so(source: Path, tmp_path: Path) -> None:
    for number in (0, 3):
        with pytest.raises(NotFoundError):
            render_page(source, number, tmp_path / "x.png")
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.7 and no more")
    with pytest.raises(BadDocumentError):
        render_page(broken, 1, tmp_path / "x.png")


async def test_a_worker_draws_it_and_hands_back_what_went_wrong(source: Path, tmp_path: Path) -> None:
    target, picture = tmp_path / "2.json", tmp_path / "2.png"
    job = RenderJob(source=source, target=target, picture=picture, page_number=2)
    pool = parsers(2048).pages
    try:
        await pool.run(job, RENDER_TIMEOUT_S)
        assert PageSheet.model_validate_json(target.read_bytes()).words
        assert picture.read_bytes().startswith(b"\x89PNG")
        with pytest.raises(BadDocumentError, match="There is no page 9"):
            await pool.run(job.model_copy(update={"page_number": 9}), RENDER_TIMEOUT_S)
    finally:
        pool.close()
