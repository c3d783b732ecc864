"""Office Open XML packages, made fit for the libraries that read them.

Libraries know the transitional dialect and the plain document types. A package in the strict dialect, with
macros, or a template is copied with other names; a package whose relationships lead nowhere, without those.
Macros are never run: they are bytes that nobody looks at.
"""

import io
import posixpath
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from shared.errors import BadDocumentError
from shared.ingestion.parsers.properties import meaningful_author, meaningful_title
from shared.ingestion.parsers.zip_guard import check_zip

Opened = TypeVar("Opened")

PART_ERRORS = (
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    IndexError,
    SyntaxError,
    BadZipFile,
    zlib.error,
)
"""What the libraries raise on a damaged part; XML errors are SyntaxErrors. One must not cost the others."""

_CONTENT_TYPES = "[Content_Types].xml"
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_STRICT_NAMES = {b"extendedProperties": b"extended-properties", b"customProperties": b"custom-properties"}
_RELATIONSHIP = re.compile(r"<(?:\w+:)?Relationship\b[^>]*?/>")
_TARGET = re.compile(r"""\bTarget\s*=\s*["']([^"']*)["']""")
_MACRO_WARNING = "The file holds macros; they were neither run nor read."


@dataclass(frozen=True)
class OfficeKind:
    """Attributes:
    main_type: the content type of the main part that the library accepts.
    variant: finds any of the kind's main types: macro-enabled, template, slide show.
    """

    name: str
    main_type: bytes
    variant: re.Pattern[bytes]


_OOXML = b"application/vnd.openxmlformats-officedocument."
WORD = OfficeKind(
    "a Word document",
    _OOXML + b"wordprocessingml.document.main+xml",
    re.compile(
        rb"application/vnd\.(?:openxmlformats-officedocument\.wordprocessingml|ms-word)\.[\w.]+\.main\+xml"
    ),
)
POWERPOINT = OfficeKind(
    "a PowerPoint presentation",
    _OOXML + b"presentationml.presentation.main+xml",
    re.compile(
        rb"application/vnd\.(?:openxmlformats-officedocument\.presentationml|ms-powerpoint)\.[\w.]+\.main\+xml"
    ),
)
EXCEL = OfficeKind(
    "an Excel workbook",
    _OOXML + b"spreadsheetml.sheet.main+xml",
    re.compile(
        rb"application/vnd\.(?:openxmlformats-officedocument\.spreadsheetml|ms-excel)\.[\w.]+\.main\+xml"
    ),
)
_KINDS = (WORD, POWERPOINT, EXCEL)


@contextmanager
def open_office(
    path: Path, kind: OfficeKind, opener: Callable[[IO[bytes]], Opened]
) -> Iterator[tuple[Opened, tuple[str, ...]]]:
    """What the library's `opener` makes of the package, and warnings.

    The file is open as long as the context is: libraries read on from it.

    Raises:
        BadDocumentError: no package, one of another kind, a bomb, or damaged.
    """
    check_zip(path)
    try:
        with ExitStack() as files:
            with ZipFile(path) as archive:
                types = _main_types(archive, kind)
                has_macros = any(name.lower().endswith("vbaproject.bin") for name in archive.namelist())
                is_plain = types == {kind.main_type} and not _is_strict(archive)
            opened = _opened(path, opener, files) if is_plain else None
            if opened is None:
                opened = opener(files.enter_context(_rewritten(path, kind)))
            yield opened, (_MACRO_WARNING,) if has_macros else ()
    except (*PART_ERRORS, EOFError) as error:
        raise BadDocumentError(
            f"The file is damaged: it cannot be read as {kind.name} ({type(error).__name__}).",
            "Open it in its program and save it again.",
        ) from error


def title_and_author(document: Any) -> tuple[str | None, str | None]:
    """From the core properties of python-docx or python-pptx; damaged ones count as none."""
    try:
        properties = document.core_properties
        return meaningful_title(properties.title), meaningful_author(properties.author)
    except PART_ERRORS:
        return None, None


def _opened(path: Path, opener: Callable[[IO[bytes]], Opened], files: ExitStack) -> Opened | None:
    """What `opener` makes of the file as it is; None when a relationship leads to a part that is missing."""
    try:
        return opener(files.enter_context(path.open("rb")))
    except KeyError:
        return None


def _main_types(archive: ZipFile, kind: OfficeKind) -> set[bytes]:
    if _CONTENT_TYPES not in archive.namelist():
        raise _another_kind(kind, "another kind of ZIP archive")
    content_types = archive.read(_CONTENT_TYPES)
    found = set(kind.variant.findall(content_types))
    if not found:
        actual = next((known.name for known in _KINDS if known.variant.search(content_types)), None)
        raise _another_kind(kind, actual or "another kind of ZIP archive")
    return found


def _another_kind(kind: OfficeKind, actual: str) -> BadDocumentError:
    return BadDocumentError(
        f"The suffix says {kind.name}, the content is {actual}.",
        "Give the file the suffix of its format, or export it again.",
    )


def _is_strict(archive: ZipFile) -> bool:
    return "_rels/.rels" in archive.namelist() and b"purl.oclc.org/ooxml" in archive.read("_rels/.rels")


def _rewritten(path: Path, kind: OfficeKind) -> IO[bytes]:
    """A copy in memory: transitional names, a plain main type, no relationships that lead nowhere."""
    copy = io.BytesIO()
    with ZipFile(path) as source, ZipFile(copy, "w", ZIP_DEFLATED, compresslevel=1) as target:
        names = set(source.namelist())
        for name in source.namelist():
            content = source.read(name)
            if name.endswith((".xml", ".rels")):
                content = _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", content)
                for strict, transitional in _STRICT_NAMES.items():
                    content = content.replace(b"/relationships/" + strict, b"/relationships/" + transitional)
            if name == _CONTENT_TYPES:
                content = kind.variant.sub(kind.main_type, content)
            if name.endswith(".rels"):
                content = _without_dangling(content, name, names)
            target.writestr(name, content)
    copy.seek(0)
    return copy


def _without_dangling(content: bytes, name: str, names: set[str]) -> bytes:
    folder = posixpath.dirname(posixpath.dirname(name))  # word/_rels/document.xml.rels speaks for word/

    def kept(match: re.Match[str]) -> str:
        target = _TARGET.search(match[0])
        if target is None or "External" in match[0] or target[1].startswith("#"):
            return match[0]
        part = posixpath.normpath(posixpath.join("/", folder, target[1])).lstrip("/")
        return match[0] if part in names else ""

    return _RELATIONSHIP.sub(kept, content.decode("utf-8", "replace")).encode()
