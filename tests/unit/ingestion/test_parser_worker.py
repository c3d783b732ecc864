"""One file into chunks, and every way in which a file can be refused."""

from email.message import EmailMessage
from pathlib import Path

import pytest
from openpyxl import Workbook

from shared.ingestion.parser_worker import (
    MAX_WARNING_CHARS,
    MAX_WARNINGS,
    OPENING_CHARS,
    ParseJob,
    parse_file,
)
from shared.ingestion.registry import FORMATS, format_of
from shared.platform.errors import BadDocumentError
from tests.unit.ingestion.pdf_files import PdfMaker


def job(tmp_path: Path, filename: str, content: bytes, max_tokens: int = 100) -> ParseJob:
    source = tmp_path / "blob"
    source.write_bytes(content)
    return ParseJob(source=source, target=tmp_path / "out", filename=filename, max_tokens=max_tokens)


def pdf(tmp_path: Path) -> bytes:
    made = (
        PdfMaker().page().heading("Pump manual").paragraph("The pump moves water. It is checked every year.")
    )
    return made.write(tmp_path / "made.pdf").read_bytes()


def test_a_pdf_becomes_chunks_with_page_and_heading(tmp_path: Path) -> None:
    parsed = parse_file(job(tmp_path, "Manual.PDF", pdf(tmp_path)))
    (chunk,) = parsed.chunks
    assert (chunk.page_number, chunk.heading_path) == (1, "Pump manual")
    assert chunk.text.endswith("The pump moves water. It is checked every year.")
    assert (parsed.page_count, parsed.first_heading) == (1, "Pump manual")


def test_the_opening_is_bounded(tmp_path: Path) -> None:
    parsed = parse_file(job(tmp_path, "a.txt", b"A sentence of text.\n\n" * 5000))
    assert OPENING_CHARS - 100 < len(parsed.opening) <= OPENING_CHARS


def test_warnings_are_as_few_and_short_as_a_state_can_hold(tmp_path: Path) -> None:
    workbook = Workbook()
    for number in range(60):
        workbook.create_sheet(f"Sheet {number}").sheet_state = "hidden"
    workbook.save(tmp_path / "made.xlsx")
    told = parse_file(job(tmp_path, "a.xlsx", (tmp_path / "made.xlsx").read_bytes())).warnings
    assert told[-1] == f"{60 - MAX_WARNINGS} more warnings."
    assert len(told) == MAX_WARNINGS + 1
    mail = EmailMessage()
    mail["Subject"] = "Many files"
    for number in range(300):
        mail.add_attachment(b"", maintype="image", subtype="png", filename=f"picture-{number}.png")
    (named,) = parse_file(job(tmp_path, "a.eml", bytes(mail))).warnings
    assert len(named) < MAX_WARNING_CHARS + 10


def test_a_file_without_text_is_ready_with_a_warning(tmp_path: Path) -> None:
    parsed = parse_file(job(tmp_path, "a.txt", b"  \n \n"))
    assert parsed.chunks == ()
    assert "holds no text" in parsed.warnings[0]


@pytest.mark.parametrize(
    ("filename", "content", "reason", "hint"),
    [
        ("a.pdf", b"", "empty", "Drop it again"),
        ("a.pdf", b"PK\x03\x04rest", "content is a ZIP archive", "suffix of its format"),
        ("a.pdf", b"just words", "content is something else", "suffix of its format"),
        ("a.md", b"%PDF-1.7 rest", "content is a PDF", "suffix of its format"),
        ("a.txt", b"\x89PNG\r\n\x1a\n", "content is a PNG", "suffix of its format"),
        ("a.pdf", b"%PDF-1.7\nand nothing more", "damaged or incomplete", "export it again"),
        ("a.xyz", b"words", "'.xyz' cannot be read", ".pdf"),
        ("README", b"words", "without a suffix", ".md"),
    ],
)
def test_a_refusal_gives_reason_and_hint(
    tmp_path: Path, filename: str, content: bytes, reason: str, hint: str
) -> None:
    with pytest.raises(BadDocumentError) as refused:
        parse_file(job(tmp_path, filename, content))
    assert reason in refused.value.detail
    assert hint in " ".join(refused.value.hints)


def test_the_refusal_of_a_suffix_lists_every_format() -> None:
    with pytest.raises(BadDocumentError) as refused:
        format_of("a.exe")
    assert all(suffix in refused.value.hints[0] for suffix in FORMATS)
