"""Plain text in the encodings that people have."""

import codecs
from pathlib import Path

import pytest

from shared.ingestion.parsers.text import page_ranges, parse_text, read_text
from shared.platform.errors import BadDocumentError

GERMAN = "Größe: 5 µm – geprüft"


@pytest.mark.parametrize(
    "content",
    [
        GERMAN.encode(),
        codecs.BOM_UTF8 + GERMAN.encode(),
        GERMAN.encode("utf-16"),
        codecs.BOM_UTF16_BE + GERMAN.encode("utf-16-be"),
        GERMAN.encode("utf-32"),
        GERMAN.encode("cp1252"),
    ],
    ids=["utf-8", "utf-8 mark", "utf-16", "utf-16 be", "utf-32", "cp1252"],
)
def test_the_encoding_is_found_out(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    assert read_text(tmp_path / "a.txt") == GERMAN


def test_binary_content_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(bytes(range(256)) * 4)
    with pytest.raises(BadDocumentError, match="not text"):
        parse_text(tmp_path / "a.txt")


def test_blank_lines_part_paragraphs_and_lines_stay(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\r\n \r\n\r\nthree\r\n")
    assert [element.text for element in parse_text(tmp_path / "a.txt").elements] == ["one\ntwo", "three"]


def test_pages_are_named_as_ranges() -> None:
    assert page_ranges([5, 1, 2, 3, 9, 8]) == ["1-3", "5", "8-9"]
