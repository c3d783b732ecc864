"""Plain text in the encodings that people have."""

import codecs

import pytest

from shared.ingestion.parsers.text import page_ranges
from shared.platform.errors import BadDocumentError
from tests.unit.ingestion.conftest import Parse

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
def test_the_encoding_is_found_out(parse: Parse, content: bytes) -> None:
    assert [element.text for element in parse(content, ".txt").elements] == [GERMAN]


def test_binary_content_is_refused(parse: Parse) -> None:
    with pytest.raises(BadDocumentError, match="not text"):
        parse(bytes(range(256)) * 4, ".txt")


def test_blank_lines_separate_paragraphs_and_lines_stay(parse: Parse) -> None:
    document = parse(b"one\r\ntwo\r\n \r\n\r\nthree\r\n", ".txt")
    assert [element.text for element in document.elements] == ["one\ntwo", "three"]


def test_pages_are_named_as_ranges() -> None:
    assert page_ranges([5, 1, 2, 3, 9, 8]) == ["1-3", "5", "8-9"]
