"""Registry of the supported file formats. A parser is imported when the first file of its format arrives."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from shared.documents.models import ParsedDocument
from shared.ingestion.models import Layout
from shared.ingestion.parsers.context import ParseContext
from shared.platform.errors import BadDocumentError

Parser = Callable[[Path, ParseContext], ParsedDocument]
LayoutParser = Callable[[Path, Layout, ParseContext], ParsedDocument | None]
"""Returns None if the layout doesn't cover the whole file."""


@dataclass(frozen=True)
class Format:
    """A supported file format.

    Attributes:
        name: name shown to users.
        parser: "module:function" of a `Parser`.
        magics: byte sequences with which such files start; in a PDF, one is within the first 1,024 bytes.
            Empty for text formats.
        layout_parser: "module:function" of a `LayoutParser` for results of a parser service; "" = none.
    """

    name: str
    suffixes: tuple[str, ...]
    parser: str
    magics: tuple[bytes, ...] = ()
    layout_parser: str = ""


_PARSERS = "shared.ingestion.parsers"
_ZIP = (b"PK\x03\x04",)
_PDF = Format(
    "PDF", (".pdf",), f"{_PARSERS}.pdf:parse_pdf", (b"%PDF-",), f"{_PARSERS}.layout:parse_pdf_layout"
)


def _picture(name: str, suffixes: tuple[str, ...], magics: tuple[bytes, ...]) -> Format:
    return Format(
        name, suffixes, f"{_PARSERS}.image:parse_image", magics, f"{_PARSERS}.layout:parse_image_layout"
    )


_FORMATS = (
    _PDF,
    Format("Markdown", (".md", ".markdown"), f"{_PARSERS}.markdown:parse_markdown"),
    Format("plain text", (".txt",), f"{_PARSERS}.text:parse_text"),
    Format("Word", (".docx", ".docm"), f"{_PARSERS}.docx:parse_docx", _ZIP),
    Format("PowerPoint", (".pptx", ".pptm"), f"{_PARSERS}.pptx:parse_pptx", _ZIP),
    Format("Excel", (".xlsx", ".xlsm"), f"{_PARSERS}.xlsx:parse_xlsx", _ZIP),
    Format("separated values", (".csv", ".tsv"), f"{_PARSERS}.tables:parse_csv"),
    Format("HTML", (".html", ".htm"), f"{_PARSERS}.html:parse_html"),
    Format("a transcript", (".vtt", ".srt"), f"{_PARSERS}.transcripts:parse_transcript"),
    Format("e-mail", (".eml",), f"{_PARSERS}.eml:parse_eml"),
    _picture("PNG", (".png",), (b"\x89PNG\r\n\x1a\n",)),
    _picture("JPEG", (".jpg", ".jpeg"), (b"\xff\xd8\xff",)),
    _picture("TIFF", (".tif", ".tiff"), (b"II*\x00", b"MM\x00*")),
    _picture("WebP", (".webp",), (b"RIFF",)),
)
FORMATS = {suffix: known for known in _FORMATS for suffix in known.suffixes}

# First bytes of encrypted Office files, and of Office files from before 2007.
_COMPOUND = b"\xd0\xcf\x11\xe0"

# First bytes of well-known formats. They are used to name the actual format of a file with the wrong suffix.
_SIGNATURES = (
    (b"%PDF-", "a PDF"),
    (b"PK\x03\x04", "a ZIP archive or an Office document"),
    (_COMPOUND, "an Office document from before 2007, or an encrypted one"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"{\\rtf", "an RTF document"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"GIF8", "a GIF picture"),
    (b"II*\x00", "a TIFF picture"),
    (b"MM\x00*", "a TIFF picture"),
)
MAGIC_BYTES = 1024


def format_of(filename: str) -> Format:
    """Return the format of a file, based on its suffix.

    Raises:
        BadDocumentError: the suffix is not supported. The hint lists the supported suffixes.
    """
    suffix = PurePosixPath(filename).suffix.lower()
    file_format = FORMATS.get(suffix)
    if file_format is None:
        description = f"Files of type {suffix!r}" if suffix else "Files without a suffix"
        raise BadDocumentError(
            f"{description} cannot be read.",
            f"Convert the file to a supported format: {', '.join(sorted(FORMATS))}.",
            failure="unsupported",
        )
    return file_format


def check_content(filename: str, beginning: bytes) -> Format:
    """Return the format of a file, whose first bytes must match its suffix.

    Raises:
        BadDocumentError: the suffix is not supported, the file is empty, or its content has another format.
    """
    file_format = format_of(filename)
    if not beginning:
        raise BadDocumentError(
            "The file is empty (0 bytes).",
            "Upload the file again: the transfer may have failed.",
            failure="empty",
        )
    if file_format is _PDF:
        is_found = any(magic in beginning[:MAGIC_BYTES] for magic in file_format.magics)
    else:
        is_found = beginning.startswith(file_format.magics)
    if is_found:
        return file_format
    actual = next((name for magic, name in _SIGNATURES if beginning.startswith(magic)), None)
    if actual is None and not file_format.magics:
        return file_format
    if file_format.magics == _ZIP and beginning.startswith(_COMPOUND):
        raise BadDocumentError(
            "The file needs a password, or has a format from before 2007.",
            "Open the file in the program that created it, remove the password, and save it in a current "
            "format.",
            failure="encrypted_or_old",
        )
    raise BadDocumentError(
        f"The suffix says {file_format.name}, but the content is {actual or 'something else'}.",
        "Give the file the suffix of its format, or export it again.",
        failure="wrong_suffix",
    )
