"""Tests for text recognition: scans become text, unread pages are reported, and the time is limited.

A stand-in for the engine says what the tests need; some tests ask the real one.
"""

import subprocess
import sys
from pathlib import Path

import pypdfium2
import pytest
from PIL import Image, ImageDraw, ImageFont

from shared.documents.models import ParsedDocument
from shared.ingestion.parsers import ocr
from shared.ingestion.parsers.context import open_context
from shared.ingestion.parsers.ocr import read_table
from shared.ingestion.parsers.pdf import parse_pdf
from shared.ingestion.parsers.tesseract import is_installed, open_engines
from tests.unit.ingestion.conftest import NO_MEMORY, Tesseract, printing
from tests.unit.ingestion.figure_files import TEXT, FigureMaker

needs_tesseract = pytest.mark.skipif(not is_installed(), reason="tesserocr has no wheel for this Python")
UNREAD = "hold no text (scanned?) and cannot be searched."
WORDS = printing("The relief valve opens at 7.2 bar.")


def scan(lines: list[str], size: tuple[int, int] = (1240, 1754)) -> Image.Image:
    """Return an image of a page with these lines, as scanned at 150 dpi."""
    page = Image.new("L", size, 250)
    draw = ImageDraw.Draw(page)
    for number, line in enumerate(lines):
        draw.text((120, 150 + 70 * number), line, fill=20, font=ImageFont.load_default(34))
    return page


def scanned_pdf(path: Path, *pages: list[str]) -> Path:
    """Write a PDF with a page of text followed by scanned pages."""
    maker = FigureMaker().page().paragraph(TEXT)
    for lines in pages:
        maker.page().background(scan(lines))
    return maker.write(path)


def read(path: Path, folder: Path, budget_s: float = 60) -> ParsedDocument:
    with open_context(folder, max_figures=5, recognition_budget_s=budget_s) as context:
        return parse_pdf(path, context)


def texts_of(document: ParsedDocument, page_number: int) -> list[str]:
    return [element.text for element in document.elements if element.page_number == page_number]


def test_a_scanned_page_becomes_paragraphs_of_its_page(tmp_path: Path, tesseract: Tesseract) -> None:
    tesseract(WORDS)
    document = read(scanned_pdf(tmp_path / "a.pdf", ["…"], ["…"]), tmp_path)
    assert texts_of(document, 2) == texts_of(document, 3) == ["The relief valve opens at 7.2 bar."]
    assert document.warnings == ()
    # scanned pages are not stored as figures
    assert all(element.kind != "figure" for element in document.elements)


def test_a_scan_with_a_stamp_is_read_too(tmp_path: Path, tesseract: Tesseract) -> None:
    tesseract(WORDS)
    maker = FigureMaker().page().background(scan(["…"]))
    maker.paragraph("Case 1:20-cv-00042  Document 12  Page 1 of 1")
    document = read(maker.write(tmp_path / "a.pdf"), tmp_path)
    assert "The relief valve opens at 7.2 bar." in texts_of(document, 1)
    assert any("Document 12" in text for text in texts_of(document, 1))


STAMP = "Case 1:20-cv-00042  Document 12  Page 1 of 1"


def stamped_pdf(path: Path, stamp: str = STAMP) -> Path:
    """Write two scans, the second of which has a stamp."""
    maker = FigureMaker().page().background(scan(["…"]))
    maker.page().background(scan(["…"])).paragraph(stamp)
    return maker.write(path)


def test_a_stamp_that_is_recognised_as_well_comes_once(tmp_path: Path, tesseract: Tesseract) -> None:
    misread = STAMP.replace("00042", "OO042")
    tesseract(printing(misread, "The relief valve opens at 7.2 bar."))
    document = read(stamped_pdf(tmp_path / "a.pdf"), tmp_path)
    text = " ".join(texts_of(document, 2))
    assert text.count("Document 12") == 1
    assert "OO042" not in text
    assert "7.2 bar" in text


@pytest.mark.usefixtures("no_tesseract")
def test_without_the_program_a_scan_with_a_stamp_is_named_too(tmp_path: Path) -> None:
    document = read(stamped_pdf(tmp_path / "a.pdf"), tmp_path)
    assert [warning[: len("Pages 1-2 ") + len(UNREAD)] for warning in document.warnings] == [
        f"Pages 1-2 {UNREAD}"
    ]
    assert any("Document 12" in text for text in texts_of(document, 2))


def test_a_page_that_shows_a_picture_and_no_words_is_a_figure(tmp_path: Path, tesseract: Tesseract) -> None:
    tesseract("")
    document = read(FigureMaker().page().background().write(tmp_path / "a.pdf"), tmp_path)
    assert [(element.kind, element.page_number) for element in document.elements] == [("figure", 1)]


@pytest.mark.parametrize(
    ("lines", "budget_s", "reason"),
    [
        ("sys.exit(1)", 60.0, "recognition failed. Scan"),
        ("time.sleep(30)", 0.5, "raise OCR_TIMEOUT_S"),
        (f"sys.exit({NO_MEMORY})", 60.0, "300 dpi"),
        (WORDS, 0.0, "OCR_TIMEOUT_S=0"),
    ],
    ids=["fails", "takes too long", "takes too much memory", "is switched off"],
)
def test_pages_that_were_not_read_are_named_with_the_reason(
    tmp_path: Path, tesseract: Tesseract, lines: str, budget_s: float, reason: str
) -> None:
    tesseract(lines)
    document = read(scanned_pdf(tmp_path / "a.pdf", ["…"], ["…"], ["…"]), tmp_path, budget_s)
    (warning,) = document.warnings
    assert warning.startswith(f"Pages 2-4 {UNREAD} ")
    assert reason in warning


@pytest.mark.usefixtures("no_tesseract")
def test_without_the_program_pages_are_named(tmp_path: Path) -> None:
    document = read(scanned_pdf(tmp_path / "a.pdf", ["…"]), tmp_path)
    (warning,) = document.warnings
    assert warning.startswith("Page 2 holds no text (scanned?) and cannot be searched. ")
    assert "tesserocr" in warning


def test_words_in_a_picture_are_text_and_belong_to_the_figure(tmp_path: Path, tesseract: Tesseract) -> None:
    tesseract(WORDS)
    document = read(FigureMaker().page().paragraph(TEXT * 3).photo().write(tmp_path / "a.pdf"), tmp_path)
    (figure,) = [element for element in document.elements if element.kind == "figure"]
    assert figure.picture is not None
    assert figure.picture.words == "The relief valve opens at 7.2 bar."
    assert figure.picture.words in texts_of(document, 1)


@needs_tesseract
def test_further_languages_come_from_a_folder(tmp_path: Path) -> None:
    installed = open_engines()
    assert installed.languages == "eng+deu"
    for name in ("deu", "osd"):
        (tmp_path / f"{name}.traineddata").symlink_to(installed.folder / f"{name}.traineddata")
    assert open_engines(tmp_path).languages == "deu"
    assert not is_installed(tmp_path / "missing")


@needs_tesseract
def test_a_page_that_takes_too_long_is_given_up() -> None:
    engines, page = open_engines(), scan(["The relief valve opens at 7.2 bar."] * 20)
    assert engines.read(page, 0.01) == ("", "time")
    assert engines.read(page, 60)[1] is None
    engines.close()


@needs_tesseract
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_page_that_takes_too_much_memory_is_left_unread() -> None:
    script = (
        "import resource; from PIL import Image\n"
        "from shared.ingestion.parsers.tesseract import open_engines\n"
        "engines = open_engines(); page = Image.new('L', (4000, 4000), 255)\n"
        "engines.read(page.resize((50, 50)), 60)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (250 << 20, 250 << 20))\n"
        "print(engines.read(page, 60)[1], engines.read(page.resize((400, 400)), 60)[1])"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["memory", "None"]


def test_lines_that_are_not_sure_are_left_out_and_paragraphs_kept() -> None:
    rows = [
        "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext",
        *(f"5\t1\t1\t1\t1\t{n}\t0\t0\t9\t9\t90.1\t{word}" for n, word in enumerate(["Oil", "is"])),
        "5\t1\t1\t1\t2\t1\t0\t0\t9\t9\t88\tchanged.",
        "5\t1\t1\t2\t1\t1\t0\t0\t9\t9\t12\t~|;.x",
        "5\t1\t2\t1\t1\t1\t0\t0\t9\t9\t95\tThen",
        "4\t1\t2\t1\t1\t0\t0\t0\t9\t9\t-1\t",
        "5\t1\t3\t1\t1\t1\t0\t0\t9\t9\t95\t|",
    ]
    recognised = read_table("\n".join(rows), (100, 100))
    assert recognised.text == "Oil is\nchanged.\n\nThen"
    assert [line.text for line in recognised.lines] == ["Oil is", "changed.", "Then"]
    assert len(recognised.words) == 6  # uncertain words also exclude a figure


def test_labels_of_a_drawing_that_stand_apart_are_apart() -> None:
    words = [
        *((1, 0, 20, "Requests"), (1, 55, 20, "for"), (1, 200, 20, "Returns"), (1, 255, 20, "of")),
        *((2, 0, 35, "data"), (2, 200, 35, "data")),
        *((3, 0, 90, "Oil"), (3, 400, 90, "15")),
    ]
    rows = [f"5\t1\t1\t1\t{row}\t1\t{left}\t{top}\t50\t12\t96\t{word}" for row, left, top, word in words]
    drawn = "5\t1\t1\t1\t2\t1\t60\t0\t40\t60\t70\tOle]"  # an icon misread as a word
    recognised = read_table("\n".join(["level", *rows[:4], drawn, *rows[4:]]), (500, 100))
    assert recognised.labels == "Requests for\ndata\n\nReturns of\ndata\n\nOil 15"


@needs_tesseract
def test_the_real_program_reads_a_scan(tmp_path: Path) -> None:
    lines = ["The relief valve opens at 7.2 bar.", "It is checked every year by a trained person."]
    document = read(scanned_pdf(tmp_path / "a.pdf", lines), tmp_path)
    text = " ".join(" ".join(texts_of(document, 2)).split())
    assert "The relief valve opens at 7.2 bar." in text
    assert "checked every year" in text


@needs_tesseract
def test_a_figure_on_a_recognised_page_is_cut_out(tmp_path: Path) -> None:
    original = (
        FigureMaker().page().paragraph(TEXT * 3).chart(caption="Figure 3: Pressure of each pump, in bar")
    )
    path = original.write(tmp_path / "original.pdf")
    document = pypdfium2.PdfDocument(path)
    page = document[0].render(scale=2).to_pil()
    document.close()
    parsed = read(FigureMaker().page().background(page).write(tmp_path / "scan.pdf"), tmp_path)
    (figure,) = [element for element in parsed.elements if element.kind == "figure"]
    assert "Pressure of each pump" in figure.text
    assert figure.picture is not None
    assert figure.picture.width_px < 900  # the chart, not the page (1,240)


@needs_tesseract
@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_a_page_is_read_whichever_way_up_it_lies(quarters: int) -> None:
    lines = ["The relief valve opens at 7.2 bar.", "It is checked every year by a trained person."]
    upright = scan(lines)
    recognition = ocr.TextRecognition(60)
    expected = recognition.submit(upright).result()
    actual = recognition.submit(upright.rotate(90 * quarters, expand=True)).result()
    recognition.close()
    assert expected is not None
    assert actual is not None
    assert "The relief valve opens at 7.2 bar." in actual.text
    back = actual.in_original_picture(quarters)
    assert back.size == expected.size
    for line, where in zip(back.lines, expected.lines, strict=True):
        assert all(abs(one - other) < 10 for one, other in zip(line.box, where.box, strict=True))
