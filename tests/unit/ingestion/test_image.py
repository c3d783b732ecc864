"""Pictures: figures with or without words, and those that must not be decoded."""

import struct
import sys
import zlib
from pathlib import Path

import pytest
from PIL import Image

from shared.ingestion.parser_worker import ParseJob, parse_file
from shared.ingestion.parsers import ocr
from shared.ingestion.parsers.context import open_context
from shared.ingestion.parsers.image import parse_image
from shared.platform.errors import BadDocumentError

STAND_IN = f"""#!{sys.executable}
import sys
sys.stdin.buffer.read()
if "--list-langs" not in sys.argv:
    print("level\\tand eleven more")
    for paragraph, text in enumerate(["Pump manual", "The pump moves water."], start=1):
        for number, word in enumerate(text.split(), start=1):
            print(5, 1, 1, paragraph, 1, number, 0, 0, 9, 9, 96.5, word, sep="\\t")
"""


@pytest.fixture
def no_tesseract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr, "_PROGRAM", "no-such-program")
    ocr.tesseract_path.cache_clear()


@pytest.fixture
def tesseract(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "tesseract"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    monkeypatch.setattr(ocr, "_PROGRAM", str(program))
    ocr.tesseract_path.cache_clear()


@pytest.fixture(autouse=True)
def fresh_path() -> object:
    yield
    ocr.tesseract_path.cache_clear()


def picture(tmp_path: Path, suffix: str, **options: object) -> Path:
    path = tmp_path / f"a{suffix}"
    Image.new("RGB", (40, 30), "red").save(path, **options)  # type: ignore[arg-type]
    return path


@pytest.mark.usefixtures("no_tesseract")
@pytest.mark.parametrize("suffix", [".png", ".jpg", ".webp", ".tiff"])
def test_a_picture_is_a_figure_and_unread_words_are_a_warning(tmp_path: Path, suffix: str) -> None:
    document = parse_image(picture(tmp_path, suffix))
    assert [(e.kind, e.page_number) for e in document.elements] == [("figure", 1)]
    assert "Tesseract" in document.warnings[0]


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


@pytest.mark.usefixtures("no_tesseract")
def test_each_page_of_a_tiff_is_a_page(tmp_path: Path) -> None:
    more = [Image.new("RGB", (40, 30), "blue")]
    document = parse_image(picture(tmp_path, ".tiff", save_all=True, append_images=more))
    assert [element.page_number for element in document.elements] == [1, 2]
    assert document.page_count == 2


def png(width: int, height: int) -> bytes:
    """A PNG that says its size, and holds next to nothing."""

    def part(name: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + part(b"IHDR", header)
        + part(b"IDAT", zlib.compress(bytes(100)))
        + part(b"IEND", b"")
    )


@pytest.mark.parametrize("side", [11_000, 20_000])
def test_a_picture_of_too_many_pixels_is_refused_undecoded(tmp_path: Path, side: int) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(png(side, side))
    with pytest.raises(BadDocumentError, match="more than 100 million pixels"):
        parse_image(path)


@pytest.mark.parametrize("kept", [12, 60, 200])
def test_a_truncated_picture_is_refused(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "a.png"
    Image.effect_noise((100, 100), 50).save(path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(BadDocumentError) as refused:
        parse_image(path)
    assert refused.value.hints


@pytest.mark.usefixtures("no_tesseract")
def test_a_picture_without_words_makes_no_empty_chunk(tmp_path: Path) -> None:
    source = picture(tmp_path, ".png")
    parsed = parse_file(ParseJob(source=source, target=tmp_path / "o", filename="a.png", max_tokens=100))
    assert parsed.chunks == ()


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
        figures=tmp_path / "figures",
        max_figures=9,
        recognition_budget_s=30,
    )
    parsed = parse_file(job)
    assert [figure.page_number for figure in parsed.figures] == [1, 2, 3]
    assert len({figure.key for figure in parsed.figures}) == 3
    assert {chunk.page_number for chunk in parsed.chunks} == {1, 2, 3}
