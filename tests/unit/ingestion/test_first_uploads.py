"""Tests for typical first uploads: the passages, cells and warnings expected for each file."""

from collections.abc import Callable, Sequence
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import pypdfium2
import pytest
from docx import Document
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from fpdf import FPDF
from openpyxl import Workbook
from openpyxl.worksheet.worksheet import Worksheet
from pptx import Presentation
from pptx.util import Inches

from shared.ingestion.parser_worker import ParseJob, parse_file
from shared.ingestion.uploads import clean_filename
from shared.platform.errors import BadDocumentError

PROSE = (
    "The pump is drained before the first frost.",
    "Valve B is closed by hand.",
    "The filter is stored in a dry place.",
    "A trained person signs the log.",
    "Oil is changed every 500 hours.",
)
JAPANESE = (
    "最初の霜の前にポンプの水を抜く。",
    "弁Bは手で閉める。",
    "フィルターは乾いた場所に保管する。",
    "訓練を受けた人が記録に署名する。",
    "油は500時間ごとに交換する。",
)
LEFT = ("The depot opened in May with", "four halls, of which two are", "heated all through winter.")
ROWS = (
    ("Part", "Hours", "Price"),
    ("Filter", "500", "12.90"),
    ("Seal", "1,200", "3.40"),
    ("Oil", "250", "8.15"),
)
CELLS = ("| Filter | 500 | 12.90 |", "| Seal | 1,200 | 3.40 |", "| Oil | 250 | 8.15 |")


class Upload(NamedTuple):
    """A file, with the content expected from it or the reason for its refusal."""

    suffix: str
    content: Callable[[], bytes]
    passages: Sequence[str] = PROSE
    cells: Sequence[str] = CELLS
    warning: str = ""
    absent: Sequence[str] = ()
    failure: str = ""
    reads_scans: bool = False
    name: str = "upload"


def _pdf(draw: Callable[[FPDF], None]) -> bytes:
    pdf = FPDF(unit="pt")
    pdf.add_page()
    pdf.set_font("Helvetica", size=10)
    draw(pdf)
    return bytes(pdf.output())


def _prose(pdf: FPDF, left: float = 50, top: float = 80, size: float = 10) -> None:
    for number, sentence in enumerate(PROSE):
        pdf.text(left, top + 2.5 * size * number, sentence)


def _unruled(pdf: FPDF) -> None:
    _prose(pdf)
    for number, row in enumerate(ROWS):
        pdf.text(50, 300 + 14 * number, row[0])
        for cell, right in zip(row[1:], (250, 350), strict=True):
            pdf.text(right - pdf.get_string_width(cell), 300 + 14 * number, cell)


def _ruled(pdf: FPDF) -> None:
    _prose(pdf)
    pdf.set_y(300)
    for row in ROWS:
        for cell in row:
            pdf.cell(100, 16, cell, border=1)
        pdf.ln(16)


def _turned(rotation: int) -> bytes:
    """Return a page of landscape text whose letters run upwards, rotated by `rotation` degrees."""

    def draw(pdf: FPDF) -> None:
        with pdf.rotation(90, 297, 297):
            _unruled(pdf)

    return _saved(_open(_pdf(draw), rotation))


def _open(content: bytes, rotation: int) -> pypdfium2.PdfDocument:
    document = pypdfium2.PdfDocument(content)
    document[0].set_rotation(rotation)
    return document


def _turned_lines() -> bytes:
    """Return a PDF with a ruled table that a viewer shows turned onto its side by the page rotation."""

    def draw(pdf: FPDF) -> None:
        with pdf.rotation(90, 297, 297):
            _ruled(pdf)

    return _saved(_open(_pdf(draw), 90))


def _columns(pdf: FPDF) -> None:
    words = " ".join(PROSE).split()
    right = [" ".join(words[place : place + 4]) for place in range(0, len(words), 4)]
    for number, line in enumerate(right):  # line by line across both columns, as some programs write
        pdf.text(50, 80 + 12 * number, LEFT[number % len(LEFT)])
        pdf.text(320, 80 + 12 * number, line)


def _picture(pdf: FPDF) -> None:
    from PIL import Image

    pdf.image(Image.new("L", (1000, 1400), 220), 0, 0, 595, 842)


def _scan() -> bytes:
    with closing(pypdfium2.PdfDocument(_pdf(_unruled))) as document:
        page = document[0].render(scale=200 / 72, grayscale=True).to_pil()

    def draw(pdf: FPDF) -> None:
        pdf.image(page, 0, 0, pdf.w, pdf.h)

    return _pdf(draw)


def _encrypted() -> bytes:
    def draw(pdf: FPDF) -> None:
        _prose(pdf)
        pdf.set_encryption(owner_password="owner", user_password="user")

    return _pdf(draw)


def _vtt() -> bytes:
    cues = (
        f"00:00:{5 * number:02}.000 --> 00:00:{5 * number + 4:02}.000\n<v Mara>{sentence}\n"
        for number, sentence in enumerate(PROSE)
    )
    return "\n".join(["WEBVTT\n", *cues]).encode()


def _docx() -> bytes:
    document = Document()
    for sentence in PROSE:
        document.add_paragraph(sentence)
    changed = document.add_paragraph("The fee is ")
    names = nsdecls("w")
    changed._p.append(parse_xml(f"<w:del {names}><w:r><w:delText>45 euros</w:delText></w:r></w:del>"))
    changed._p.append(parse_xml(f"<w:ins {names}><w:r><w:t>58 euros</w:t></w:r></w:ins>"))
    table = document.add_table(rows=0, cols=3)
    for row in ROWS:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    return _saved(document)


def _pptx() -> bytes:
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = PROSE[0]
    box = slide.shapes.add_textbox(Inches(1), Inches(2), Inches(5), Inches(2)).text_frame
    box.text = PROSE[1]
    for sentence in PROSE[2:4]:
        box.add_paragraph().text = sentence
    slide.notes_slide.notes_text_frame.text = PROSE[4]
    table = slide.shapes.add_table(len(ROWS), 3, Inches(1), Inches(4), Inches(6), Inches(2)).table
    for number, row in enumerate(ROWS):
        for column, text in enumerate(row):
            table.cell(number, column).text = text
    return _saved(deck)


def _xlsx() -> bytes:
    book = Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    sheet.append(("Region", "H1", None))
    sheet.append((None, "units", "revenue"))
    for row in (("North", 500, 12.9), ("South", 1200, 3.4), ("East", 250, 8.15)):
        sheet.append(row)
    sheet.merge_cells("B1:C1")
    book.create_sheet("Secret").sheet_state = "hidden"
    book["Secret"].append(("hidden word",))
    return _saved(book)


def _saved(document: object) -> bytes:
    stream = BytesIO()
    document.save(stream)  # type: ignore[attr-defined]
    return stream.getvalue()


def _csv() -> bytes:
    return "Größe;Betrag\nStraße;12.345,67\nTür;8,50\nMüll;1,00\n".encode("cp1252")


def _html() -> bytes:
    rows = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in ROWS)
    prose = "".join(f"<p>{sentence}</p>" for sentence in PROSE)
    banner = "<div class='cookie-banner'><p>We use cookies</p></div>"
    page = f"{banner}<nav>Home</nav><main>{prose}<table>{rows}</table></main><footer>Imprint</footer>"
    return page.encode()


UPLOADS = {
    "PDF, table without lines": Upload(".pdf", lambda: _pdf(_unruled)),
    "PDF, table with lines": Upload(".pdf", lambda: _pdf(_ruled)),
    "PDF, landscape table": Upload(".pdf", lambda: _turned(0)),
    "PDF, landscape table that viewers turn": Upload(".pdf", lambda: _turned(90)),
    "PDF, landscape table with lines": Upload(".pdf", _turned_lines),
    "PDF, two columns": Upload(
        ".pdf",
        lambda: _pdf(_columns),
        passages=(
            "The depot opened in May with four halls, of which two are heated all through winter.",
            *PROSE,
        ),
        cells=(),
    ),
    "scan, without text recognition": Upload(
        ".pdf", lambda: _pdf(_picture), passages=(), cells=(), warning="Page 1 holds no text (scanned?)"
    ),
    "DOCX with tracked changes": Upload(
        ".docx", _docx, (*PROSE, "The fee is 58 euros"), absent=("45 euros",)
    ),
    "PPTX with notes": Upload(".pptx", _pptx),
    "XLSX, merged header of two rows": Upload(
        ".xlsx",
        _xlsx,
        passages=("H1 units", "H1 revenue", "Region"),
        cells=("| North | 500 | 12.9 |", "| South | 1200 | 3.4 |", "| East | 250 | 8.15 |"),
        warning="hidden",
        absent=("hidden word",),
    ),
    "CSV, semicolons, cp1252": Upload(
        ".csv", _csv, ("Größe",), ("| Straße | 12.345,67 |", "| Tür | 8,50 |", "| Müll | 1,00 |")
    ),
    "saved web page": Upload(".html", _html, absent=("cookies", "Imprint", "Home")),
    "Markdown": Upload(".md", "\n\n".join(PROSE).encode, cells=()),
    "mail": Upload(
        ".eml",
        ("From: a@example.org\nSubject: Pump\n\n" + "\n\n".join(PROSE)).encode,
        passages=("Pump", *PROSE),
        cells=(),
    ),
    "scan": Upload(".pdf", _scan, reads_scans=True),
    "transcript": Upload(".vtt", _vtt, passages=("Mara", *PROSE), cells=()),
    "Japanese text": Upload(".txt", "\n\n".join(JAPANESE).encode, passages=JAPANESE, cells=()),
    "Japanese text, Shift JIS": Upload(
        ".txt", lambda: "\n\n".join(JAPANESE).encode("shift_jis"), passages=JAPANESE, cells=()
    ),
    "name of 200 characters": Upload(
        ".md", "\n\n".join(PROSE).encode, passages=PROSE, cells=(), name="pump" * 50
    ),
    "blank text": Upload(".txt", lambda: b" \n\n ", (), (), warning="The document contains no text"),
    "blank page": Upload(
        ".pdf", lambda: _pdf(lambda pdf: None), (), (), warning="The document contains no text"
    ),
    "encrypted PDF": Upload(".pdf", _encrypted, (), (), "needs a password", failure="encrypted"),
    "truncated PDF": Upload(
        ".pdf", lambda: _pdf(_prose)[:700], (), (), "damaged or incomplete", failure="damaged"
    ),
    "PDF named as Word": Upload(
        ".docx", lambda: _pdf(_prose), (), (), "the content is a PDF", failure="wrong_suffix"
    ),
    "0 bytes": Upload(".pdf", bytes, (), (), "The file is empty (0 bytes).", failure="empty"),
    "archive": Upload(".zip", lambda: b"PK", (), (), "'.zip' cannot be read", failure="unsupported"),
    "Word of before 2007": Upload(
        ".doc", lambda: b"x", (), (), "'.doc' cannot be read", failure="unsupported"
    ),
}


@pytest.mark.parametrize("upload", UPLOADS.values(), ids=UPLOADS)
def test_what_a_file_says_is_read(upload: Upload, tmp_path: Path) -> None:
    filename = clean_filename(f"{upload.name}{upload.suffix}")
    assert filename.endswith(upload.suffix)
    source = tmp_path / "blob"
    source.write_bytes(upload.content())
    job = ParseJob(
        source=source,
        target=tmp_path / "target",
        filename=filename,
        max_tokens=400,
        max_blocks=100,
        figures=tmp_path,
        recognition_budget_s=120 if upload.reads_scans else 0,
    )
    if upload.failure:
        with pytest.raises(BadDocumentError) as refused:
            parse_file(job)
        assert refused.value.failure == upload.failure
        assert upload.warning in refused.value.detail
        assert refused.value.hints
        return
    parsed = parse_file(job)
    text = " ".join("\n".join(chunk.text for chunk in parsed.chunks).split())
    assert [passage for passage in upload.passages if passage not in text] == []
    assert [cell for cell in upload.cells if cell not in text] == []
    assert [word for word in upload.absent if word in text] == []
    assert upload.warning in " ".join(parsed.warnings)
    assert bool(parsed.warnings) == bool(upload.warning)
