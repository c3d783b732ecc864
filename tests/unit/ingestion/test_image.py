"""Tests for the image parser: figures with or without text, and images that are unsafe to decode."""

from pathlib import Path

import pytest
from PIL import Image

from shared.ingestion.parser_worker import ParseJob, parse_file
from shared.ingestion.parsers.context import open_context
from shared.ingestion.parsers.image import parse_image
from shared.platform.errors import BadDocumentError
from tests.unit.ingestion.conftest import Tesseract, printing
from tests.unit.ingestion.hostile_files import png_of


@pytest.fixture
def tesseract(tesseract: Tesseract) -> None:
    tesseract(printing("Pump manual", "The pump moves water."))


def picture(tmp_path: Path, suffix: str) -> Path:
    path = tmp_path / f"a{suffix}"
    Image.new("RGB", (40, 30), "red").save(path)
    return path


@pytest.mark.usefixtures("no_tesseract")
@pytest.mark.parametrize("suffix", [".png", ".jpg", ".webp", ".tiff"])
def test_a_picture_is_a_figure_and_unread_words_are_a_warning(tmp_path: Path, suffix: str) -> None:
    document = parse_image(picture(tmp_path, suffix))
    assert [(e.kind, e.page_number) for e in document.elements] == [("figure", 1)]
    assert "not read" in document.warnings[0]


@pytest.mark.usefixtures("tesseract")
def test_recognised_words_follow_the_figure(tmp_path: Path) -> None:
    with open_context(tmp_path, max_figures=5, recognition_budget_s=30) as context:
        document = parse_image(picture(tmp_path, ".png"), context)
    assert [(e.kind, e.text, e.page_number) for e in document.elements] == [
        ("figure", "", 1),
        ("paragraph", "Pump manual", 1),
        ("paragraph", "The pump moves water.", 1),
    ]
    assert document.warnings == ()


@pytest.mark.parametrize("side", [11_000, 20_000])
def test_a_picture_of_too_many_pixels_is_refused_undecoded(tmp_path: Path, side: int) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(png_of(side, side))
    with pytest.raises(BadDocumentError, match="more than 40 million colour"):
        parse_image(path)


@pytest.mark.parametrize("size_bytes", [12, 60, 200])
def test_a_truncated_picture_is_refused(tmp_path: Path, size_bytes: int) -> None:
    path = tmp_path / "a.png"
    Image.effect_noise((100, 100), 50).save(path)
    path.write_bytes(path.read_bytes()[:size_bytes])
    with pytest.raises(BadDocumentError) as refused:
        parse_image(path)
    assert refused.value.hints


@pytest.mark.usefixtures("tesseract")
def test_each_page_of_a_tiff_has_a_figure_and_words_of_its_own(tmp_path: Path) -> None:
    pages = [Image.effect_noise((300, 200), 20 + 20 * number) for number in range(3)]
    pages[0].save(tmp_path / "a.tiff", save_all=True, append_images=pages[1:])
    (tmp_path / "figures").mkdir()
    job = ParseJob(
        source=tmp_path / "a.tiff",
        target=tmp_path / "out",
        filename="a.tiff",
        max_tokens=100,
        max_blocks=9,
        figures=tmp_path / "figures",
        max_figures=9,
        recognition_budget_s=30,
    )
    parsed = parse_file(job)
    assert parsed.page_count == 3
    assert [figure.page_number for figure in parsed.figures] == [1, 2, 3]
    assert len({figure.key for figure in parsed.figures}) == 3
    assert {chunk.page_number for chunk in parsed.chunks} == {1, 2, 3}
