"""The formats: one line each, from suffix to parser. A parser is imported when its first file comes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import cast

from shared.documents.models import ParsedDocument
from shared.ingestion.models import Layout
from shared.ingestion.parsers.context import ParseContext
from shared.platform.errors import BadDocumentError

TextParser = Callable[[Path], ParsedDocument]
PictureParser = Callable[[Path, ParseContext], ParsedDocument]
LayoutParser = Callable[[Path, Layout, ParseContext], ParsedDocument | None]


@dataclass(frozen=True)
class Format:
    """What a file of one kind is called, how it begins, and what reads it.

    Attributes:
        magics: each such file begins with one of them (a PDF holds it within the first 1,024 bytes); empty =
            text, which begins with anything.
        parser: "module:function".
        has_pictures: the function takes a ParseContext, too.
        layout_parser: "module:function" that takes a parser service's layout; "" = none does.
    """

    name: str
    magics: tuple[bytes, ...]
    parser: str
    has_pictures: bool = False
    layout_parser: str = ""


_PARSERS = "shared.ingestion.parsers"
_ZIP = (b"PK\x03\x04",)
_PDF = Format(
    "PDF",
    (b"%PDF-",),
    f"{_PARSERS}.pdf:parse_pdf",
    has_pictures=True,
    layout_parser=f"{_PARSERS}.layout:parse_pdf_layout",
)
_MARKDOWN = Format("Markdown", (), f"{_PARSERS}.markdown:parse_markdown")
_TEXT = Format("plain text", (), f"{_PARSERS}.text:parse_text")
_WORD = Format("Word", _ZIP, f"{_PARSERS}.docx:parse_docx", has_pictures=True)
_POWERPOINT = Format("PowerPoint", _ZIP, f"{_PARSERS}.pptx:parse_pptx", has_pictures=True)
_EXCEL = Format("Excel", _ZIP, f"{_PARSERS}.xlsx:parse_xlsx")
_SEPARATED = Format("separated values", (), f"{_PARSERS}.tables:parse_csv")
_HTML = Format("HTML", (), f"{_PARSERS}.html:parse_html", has_pictures=True)
_TRANSCRIPT = Format("a transcript", (), f"{_PARSERS}.transcripts:parse_transcript")
_MAIL = Format("e-mail", (), f"{_PARSERS}.eml:parse_eml")
_PICTURE = Format(
    "a picture",
    (),
    f"{_PARSERS}.image:parse_image",
    has_pictures=True,
    layout_parser=f"{_PARSERS}.layout:parse_image_layout",
)
_PNG = replace(_PICTURE, name="PNG", magics=(b"\x89PNG\r\n\x1a\n",))
_JPEG = replace(_PICTURE, name="JPEG", magics=(b"\xff\xd8\xff",))
_TIFF = replace(_PICTURE, name="TIFF", magics=(b"II*\x00", b"MM\x00*"))
_WEBP = replace(_PICTURE, name="WebP", magics=(b"RIFF",))

FORMATS = {
    ".pdf": _PDF,
    ".md": _MARKDOWN,
    ".markdown": _MARKDOWN,
    ".txt": _TEXT,
    ".docx": _WORD,
    ".docm": _WORD,
    ".pptx": _POWERPOINT,
    ".pptm": _POWERPOINT,
    ".xlsx": _EXCEL,
    ".xlsm": _EXCEL,
    ".csv": _SEPARATED,
    ".tsv": _SEPARATED,
    ".html": _HTML,
    ".htm": _HTML,
    ".vtt": _TRANSCRIPT,
    ".srt": _TRANSCRIPT,
    ".eml": _MAIL,
    ".png": _PNG,
    ".jpg": _JPEG,
    ".jpeg": _JPEG,
    ".tif": _TIFF,
    ".tiff": _TIFF,
    ".webp": _WEBP,
}

_COMPOUND = b"\xd0\xcf\x11\xe0"  # what Office wraps a file in that has a password, and wrote before 2007

# How files of other kinds begin: to say what a file with a wrong suffix really is.
_SIGNATURES = (
    (b"%PDF-", "a PDF"),
    (b"PK\x03\x04", "a ZIP archive or an Office document"),
    (_COMPOUND, "an Office document of before 2007, or an encrypted one"),
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
    if found is _PDF:
        is_found = any(magic in beginning[:MAGIC_BYTES] for magic in found.magics)
    else:
        is_found = beginning.startswith(found.magics)
    if is_found:
        return found
    actual = next((name for magic, name in _SIGNATURES if beginning.startswith(magic)), None)
    if actual is None and not found.magics:
        return found
    if found.magics == _ZIP and beginning.startswith(_COMPOUND):
        raise BadDocumentError(
            "The file needs a password, or is of a format of before 2007.",
            "Open it in its program, remove the password, and save it in today's format.",
        )
    raise BadDocumentError(
        f"The suffix says {found.name}, the content is {actual or 'something else'}.",
        "Give the file the suffix of its format, or export it again.",
    )


def parse_with(known: Format, path: Path, context: ParseContext) -> ParsedDocument:
    """What the format's parser makes of the file.

    Raises:
        BadDocumentError: the file cannot be read.
    """
    parser = function_of(known.parser)
    if known.has_pictures:
        return cast("PictureParser", parser)(path, context)
    return cast("TextParser", parser)(path)


def parse_with_layout(
    known: Format, path: Path, layout: Layout, context: ParseContext
) -> ParsedDocument | None:
    """What the file is by a parser service's layout; None when the layout is not all of it.

    Raises:
        BadDocumentError: the file cannot be read.
        ValueError: the format takes no layouts.
    """
    return cast("LayoutParser", function_of(known.layout_parser))(path, layout, context)


def function_of(name: str) -> object:
    """The function "module:function"; imports its module."""
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)
