"""Tests for parsing a file into chunks and for every reason to refuse a file."""

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


def job(
    tmp_path: Path, filename: str, content: bytes, max_tokens: int = 100, max_blocks: int = 1000
) -> ParseJob:
    source = tmp_path / "blob"
    source.write_bytes(content)
    return ParseJob(
        source=source,
        target=tmp_path / "out",
        filename=filename,
        max_tokens=max_tokens,
        max_blocks=max_blocks,
    )


def pdf(tmp_path: Path) -> bytes:
    maker = (
        PdfMaker().page().heading("Pump manual").paragraph("The pump moves water. It is checked every year.")
    )
    return maker.write(tmp_path / "made.pdf").read_bytes()


def test_a_pdf_becomes_chunks_with_page_and_heading(tmp_path: Path) -> None:
    parsed = parse_file(job(tmp_path, "Manual.PDF", pdf(tmp_path)))
    (chunk,) = parsed.chunks
    assert (chunk.page_number, chunk.heading_path) == (1, "Pump manual")
    assert chunk.text.endswith("The pump moves water. It is checked every year.")
    assert (parsed.page_count, parsed.first_heading) == (1, "Pump manual")


def test_the_default_name_of_a_sheet_is_no_heading(tmp_path: Path) -> None:
    workbook = Workbook()
    sheets = [workbook.active, workbook.create_sheet("Prices")]
    for sheet in sheets:
        sheet.append(["Part", "EUR"])
        sheet.append(["valve", 12])
    workbook.save(tmp_path / "made.xlsx")
    parsed = parse_file(job(tmp_path, "a.xlsx", (tmp_path / "made.xlsx").read_bytes()))
    assert [sheet.title for sheet in sheets] == ["Sheet", "Prices"]
    assert parsed.first_heading == "Prices"


def test_the_opening_is_bounded(tmp_path: Path) -> None:
    parsed = parse_file(job(tmp_path, "a.txt", b"A sentence of text.\n\n" * 5000))
    assert OPENING_CHARS - 100 < len(parsed.opening) <= OPENING_CHARS


def test_warnings_are_as_few_and_short_as_a_state_can_hold(tmp_path: Path) -> None:
    workbook = Workbook()
    for number in range(60):
        workbook.create_sheet(f"Sheet {number}").sheet_state = "hidden"
    workbook.save(tmp_path / "made.xlsx")
    warnings = parse_file(job(tmp_path, "a.xlsx", (tmp_path / "made.xlsx").read_bytes())).warnings
    assert warnings[-1] == f"{60 - MAX_WARNINGS} more warnings."
    assert len(warnings) == MAX_WARNINGS + 1
    mail = EmailMessage()
    mail["Subject"] = "Many files"
    for number in range(300):
        mail.add_attachment(b"", maintype="image", subtype="png", filename=f"picture-{number}.png")
    (warning,) = parse_file(job(tmp_path, "a.eml", bytes(mail))).warnings
    assert len(warning) < MAX_WARNING_CHARS + 10


def test_a_file_without_text_is_ready_with_a_warning(tmp_path: Path) -> None:
    parsed = parse_file(job(tmp_path, "a.txt", b"  \n \n"))
    assert parsed.chunks == ()
    assert "contains no text" in parsed.warnings[0]


@pytest.mark.parametrize(
    ("filename", "content", "reason", "hint"),
    [
        ("a.pdf", b"", "empty", "Upload the file again"),
        ("a.pdf", b"PK\x03\x04rest", "content is a ZIP archive", "suffix of its format"),
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


def test_a_document_of_too_many_blocks_is_refused(tmp_path: Path) -> None:
    text = b"".join(b"# Part %d\n\nA sentence.\n\n" % number for number in range(1001))
    with pytest.raises(BadDocumentError, match=r"1,001 blocks; the limit is 1,000") as refused:
        parse_file(job(tmp_path, "a.md", text))
    assert refused.value.hints


SPANNED = b"<table>" + b"<tr><td colspan=100 rowspan=1000>x</td><td>y</td></tr>" * 60 + b"</table>"


def test_a_small_page_does_not_unfold_to_thousands_of_blocks(tmp_path: Path) -> None:
    with pytest.raises(BadDocumentError, match="repeat too much text"):
        parse_file(job(tmp_path, "a.html", b"<body><p>x</p>" + SPANNED))
    usual = b"<table><tr><th colspan=9>Prices</th></tr>" + b"<tr><td rowspan=2>A</td><td>1</td></tr>" * 400
    assert parse_file(job(tmp_path, "b.html", usual + b"</table>")).chunks


@pytest.mark.timeout(120)  # quadratic algorithms take many minutes
@pytest.mark.parametrize(
    ("filename", "content"),
    [
        ("comments.md", b"# x\n\n" + b"<!--" * 250_000),
        ("scripts.md", b"# x\n\n" + b"<script>" * 125_000),
        ("angles.md", b"# x\n\n<div>" + b"<![CDATA[" * 110_000),
        ("nested.html", b"<div>" * 200_000 + b"The end."),
        ("unknown.html", b"<x>" * 100_000 + b"<div></div>" * 50_000 + b"The end."),
    ],
)
def test_a_hostile_text_takes_no_longer_than_its_size(tmp_path: Path, filename: str, content: bytes) -> None:
    parsed = parse_file(job(tmp_path, filename, content, max_blocks=20_000))
    assert filename.endswith(".md") or parsed.chunks[-1].text.endswith("The end.")


def test_cells_that_stand_far_apart_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.ingestion.parsers.xlsx._MAX_PLACES", 100_000)
    workbook = Workbook(write_only=True)
    sheet = workbook.create_sheet("Wide")
    for _ in range(7):
        sheet.append(["left", *[None] * 16_382, "right"])
    workbook.save(tmp_path / "made.xlsx")
    with pytest.raises(BadDocumentError, match="are spread over"):
        parse_file(job(tmp_path, "a.xlsx", (tmp_path / "made.xlsx").read_bytes()))
