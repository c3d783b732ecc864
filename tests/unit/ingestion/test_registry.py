"""Tests for the parser registry: every format has an importable parser, and content must match the suffix."""

from pkgutil import resolve_name

import pytest

from shared.ingestion.registry import FORMATS, check_content
from shared.platform.errors import BadDocumentError

BEGINNINGS = {
    "PNG": b"\x89PNG\r\n\x1a\n....",
    "JPEG": b"\xff\xd8\xff\xe0....",
    "TIFF": b"II*\x00....",
    "WebP": b"RIFF....WEBP",
    "Word": b"PK\x03\x04....",
    "PowerPoint": b"PK\x03\x04....",
    "Excel": b"PK\x03\x04....",
    "PDF": b"....%PDF-1.7",
}


@pytest.mark.parametrize("suffix", sorted(FORMATS))
def test_each_suffix_has_a_parser_and_accepts_its_content(suffix: str) -> None:
    file_format = FORMATS[suffix]
    assert (
        check_content(f"Folder/A{suffix.upper()}", BEGINNINGS.get(file_format.name, b"words")) is file_format
    )
    assert callable(resolve_name(file_format.parser))
    assert not file_format.layout_parser or callable(resolve_name(file_format.layout_parser))


@pytest.mark.parametrize(
    ("filename", "beginning", "actual"),
    [
        ("a.md", b"\xd0\xcf\x11\xe0....", "from before 2007, or an encrypted one"),
        ("a.png", b"\xff\xd8\xff\xe0", "a JPEG picture"),
        ("a.pdf", b"just words", "something else"),
        ("a.txt", b"\x89PNG\r\n\x1a\n", "a PNG picture"),
        ("a.jpg", b"....\xff\xd8\xff", "something else"),
        ("a.html", b"PK\x03\x04", "a ZIP archive"),
        ("a.csv", b"%PDF-1.7", "a PDF"),
        ("a.eml", b"GIF89a", "a GIF picture"),
        ("a.tif", b"\x89PNG", "a PNG picture"),
    ],
)
def test_content_of_another_kind_is_refused_by_its_name(filename: str, beginning: bytes, actual: str) -> None:
    with pytest.raises(BadDocumentError, match=actual):
        check_content(filename, beginning)


@pytest.mark.parametrize("filename", ["plan.docx", "plan.xlsx", "plan.pptx"])
def test_of_an_office_file_with_a_password_people_hear_what_to_do(filename: str) -> None:
    with pytest.raises(BadDocumentError, match="needs a password") as refused:
        check_content(filename, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500))
    assert "remove the password" in " ".join(refused.value.hints)
