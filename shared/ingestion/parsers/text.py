"""Plain text: the encoding is found out, paragraphs are separated by blank lines."""

import codecs
import re
from collections.abc import Iterator
from pathlib import Path

from shared.documents.models import Element, ParsedDocument
from shared.platform.errors import BadDocumentError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MAX_CONTROL_SHARE = 0.01
MAX_TEXT_BYTES = 50_000_000  # 72,000 blocks; takes 440 MB to parse and chunk, and an hour to embed


def read_text(path: Path) -> str:
    """The file's text with line feeds as line ends.

    By byte order mark; else UTF-8 if it is valid; else Windows-1252, in which western files of before
    Unicode are written.

    Raises:
        BadDocumentError: the content is binary, or more than 50 MB.
    """
    size_bytes = path.stat().st_size
    if size_bytes > MAX_TEXT_BYTES:
        raise BadDocumentError(
            f"The file holds {size_bytes // 1_000_000:,} MB of text; at most "
            f"{MAX_TEXT_BYTES // 1_000_000} MB are read.",
            "Split the file.",
        )
    content = path.read_bytes()
    encoding = next((name for mark, name in _MARKS if content.startswith(mark)), None)
    try:
        text = content.decode(encoding or "utf-8")
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
    if len(_CONTROL.findall(text)) > _MAX_CONTROL_SHARE * len(text):
        raise BadDocumentError(
            "The file is not text, although its suffix says so.", "Give the file the suffix of its format."
        )
    return _CONTROL.sub("", text).replace("\r\n", "\n").replace("\r", "\n")


def parse_text(path: Path) -> ParsedDocument:
    """Paragraphs; lines inside one stay lines.

    Raises:
        BadDocumentError: the content is binary.
    """
    return ParsedDocument(elements=tuple(text_paragraphs(read_text(path))))


def text_paragraphs(text: str) -> Iterator[Element]:
    """The paragraphs of a text, which blank lines part."""
    paragraphs = (part.strip("\n").rstrip() for part in _BLANK_LINES.split(text))
    return (Element(kind="paragraph", text=paragraph) for paragraph in paragraphs if paragraph.strip())
