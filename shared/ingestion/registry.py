"""The formats: one line each, from suffix to parser. A parser is imported when its first file comes."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import cast

from shared.errors import BadDocumentError
from shared.models.blocks import ParsedDocument

Parser = Callable[[Path], ParsedDocument]


@dataclass(frozen=True)
class Format:
    """What a file of one kind is called, how it begins, and what reads it.

    Attributes:
        magic: bytes within the first 1,024 of every such file; empty = text, which begins with anything.
        parser: "module:function".
    """

    name: str
    magic: bytes
    parser: str


_PARSERS = "shared.ingestion.parsers"
_PDF = Format("PDF", b"%PDF-", f"{_PARSERS}.pdf:parse_pdf")
_MARKDOWN = Format("Markdown", b"", f"{_PARSERS}.markdown:parse_markdown")
_TEXT = Format("plain text", b"", f"{_PARSERS}.text:parse_text")

FORMATS = {
    ".pdf": _PDF,
    ".md": _MARKDOWN,
    ".markdown": _MARKDOWN,
    ".txt": _TEXT,
}

# How files of other kinds begin: to say what a file with a wrong suffix really is.
_SIGNATURES = (
    (b"%PDF-", "a PDF"),
    (b"PK\x03\x04", "a ZIP archive or an Office document"),
    (b"\xd0\xcf\x11\xe0", "an Office document of before 2007, or an encrypted one"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"{\\rtf", "an RTF document"),
    (b"\x1f\x8b", "a gzip archive"),
)
MAGIC_BYTES = 1024


def format_of(filename: str) -> Format:
    """The format that the suffix names.

    Raises:
        BadDocumentError: none does; the message lists those that do.
    """
    suffix = PurePosixPath(filename).suffix.lower()
    known = FORMATS.get(suffix)
    if known is None:
        named = f"Files of type {suffix!r}" if suffix else "Files without a suffix"
        raise BadDocumentError(
            f"{named} cannot be read.", f"Supported are {', '.join(sorted(FORMATS))}: convert the file."
        )
    return known


def check_content(filename: str, beginning: bytes) -> Format:
    """The file's format, after a look at its first bytes.

    Raises:
        BadDocumentError: no such format, no content, or content of another kind than the suffix says.
    """
    found = format_of(filename)
    if not beginning:
        raise BadDocumentError("The file is empty (0 bytes).", "Drop it again; the transfer may have failed.")
    if found.magic and found.magic in beginning[:MAGIC_BYTES]:
        return found
    actual = next((name for magic, name in _SIGNATURES if beginning.startswith(magic)), None)
    if actual is None and not found.magic:
        return found
    raise BadDocumentError(
        f"The suffix says {found.name}, the content is {actual or 'something else'}.",
        "Give the file the suffix of its format, or export it again.",
    )


def parser_of(known: Format) -> Parser:
    """The function that reads files of this format; imports its library."""
    module, _, function = known.parser.partition(":")
    return cast("Parser", getattr(import_module(module), function))
