"""Safe opening of Office packages, and extraction of charts, diagrams and pictures from Word and PowerPoint
files.

Pictures become elements at the position where they are placed. Linked pictures are never fetched.
"""

import io
import posixpath
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

from docx.oxml.parser import parse_xml

from shared.documents.models import Element
from shared.ingestion.parsers.context import ParseContext, embedded_figures
from shared.ingestion.parsers.tables import table_elements
from shared.ingestion.parsers.text import meaningful_author, meaningful_title
from shared.platform.errors import BadDocumentError

MAX_ENTRIES = 20_000
MAX_UNPACKED_BYTES = 1 << 30
# Maximum compression ratio of an archive as a whole. A sheet of identical rows reaches about 60.
MAX_RATIO = 200
# An archive that unpacks to less than this is harmless, whatever its compression ratio.
_RATIO_COUNTS_FROM_BYTES = 50 << 20
# Bit 0 of an entry's flags marks encryption. Source: APPNOTE.TXT 4.4.4.
_ENCRYPTED = 1
_PROLOGUE_BYTES = 4096

# ECMA-376 part 2, 8.1.4 forbids document type declarations, which could define entities that expand without
# limit.
_DOCTYPES = tuple("<!DOCTYPE".encode(encoding) for encoding in ("ascii", "utf-16-le", "utf-16-be"))

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
"""Errors of the libraries for a damaged part (XML errors are SyntaxErrors). Other parts are still read."""

_CONTENT_TYPES = "[Content_Types].xml"
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_STRICT_NAMES = {b"extendedProperties": b"extended-properties", b"customProperties": b"custom-properties"}
_RELATIONSHIP = re.compile(r"<(?:\w+:)?Relationship\b[^<>]*?/>")
_TARGET = re.compile(r"""\bTarget\s*=\s*["']([^"']*)["']""")
_MACRO_WARNING = "The file contains macros, which were neither run nor read."


@dataclass(frozen=True)
class OfficeKind:
    """A kind of Office package, such as Word, PowerPoint or Excel.

    Attributes:
        name: name for use in messages, with the article.
        main_type: content type of the main part that the library accepts.
        variant: pattern for all main types of the kind: macro-enabled, template, slide show.
    """

    name: str
    main_type: bytes
    variant: re.Pattern[bytes]


def _kind(name: str, markup: str, main: str, program: str) -> OfficeKind:
    own = f"application/vnd.openxmlformats-officedocument.{markup}.{main}.main+xml"
    any_of = rf"application/vnd\.(?:openxmlformats-officedocument\.{markup}|ms-{program})\.[\w.]+\.main\+xml"
    return OfficeKind(name, own.encode(), re.compile(any_of.encode()))


WORD = _kind("a Word document", "wordprocessingml", "document", "word")
POWERPOINT = _kind("a PowerPoint presentation", "presentationml", "presentation", "powerpoint")
EXCEL = _kind("an Excel workbook", "spreadsheetml", "sheet", "excel")


@contextmanager
def open_office(
    path: Path, kind: OfficeKind, opener: Callable[[IO[bytes]], Opened]
) -> Iterator[tuple[Opened, tuple[str, ...]]]:
    """Check an Office package, and open it with `opener`, a function of the parsing library. Yield the result
    of `opener`, and warnings for the user.

    The file stays open until the context exits, since the libraries read it lazily.

    Raises:
        BadDocumentError: the file is not a package of this kind, encrypted, damaged, or a decompression bomb.
    """
    check_zip(path)
    try:
        with ExitStack() as files:
            with ZipFile(path) as archive:
                names = archive.namelist()
                has_macros = any(name.lower().endswith("vbaproject.bin") for name in names)
                types = _main_types(archive, kind)
                is_strict = "_rels/.rels" in names and b"purl.oclc.org/ooxml" in archive.read("_rels/.rels")
            is_plain = types == {kind.main_type} and not is_strict
            try:
                opened = opener(
                    files.enter_context(path.open("rb") if is_plain else _rewrite_package(path, kind))
                )
            except KeyError:
                # The library fails if a relationship has no target, so open a repaired copy.
                opened = opener(files.enter_context(_rewrite_package(path, kind)))
            yield opened, (_MACRO_WARNING,) if has_macros else ()
    except (*PART_ERRORS, EOFError) as error:
        raise BadDocumentError(
            f"The file is damaged: it cannot be read as {kind.name} ({type(error).__name__}).",
            "Open the file in the program that created it, and save it again.",
        ) from error


def check_zip(path: Path) -> None:
    """Reject ZIP archives that are damaged, encrypted or harmful.

    Raises:
        BadDocumentError: the archive is damaged, encrypted, a decompression bomb, or declares XML entities.
    """
    try:
        with ZipFile(path) as archive:
            _check_sizes(archive.infolist(), path.stat().st_size)
            for entry in archive.infolist():
                if entry.filename.endswith((".xml", ".rels")):
                    with archive.open(entry) as part:
                        _check_prologue(part.read(_PROLOGUE_BYTES))
    except (BadZipFile, EOFError, NotImplementedError, OSError, zlib.error) as error:
        raise BadDocumentError(
            "The file is damaged or incomplete.",
            "Check that the file opens in the program that created it, then copy or export it again.",
        ) from error


def _check_sizes(entries: list[ZipInfo], packed_bytes: int) -> None:
    unpacked_bytes = sum(entry.file_size for entry in entries)
    if any(entry.flag_bits & _ENCRYPTED for entry in entries):
        raise BadDocumentError(
            "The file is encrypted.", "Remove the password and upload the file again.", failure="encrypted"
        )
    is_bomb = unpacked_bytes > _RATIO_COUNTS_FROM_BYTES and unpacked_bytes > MAX_RATIO * packed_bytes
    if len(entries) > MAX_ENTRIES or unpacked_bytes > MAX_UNPACKED_BYTES or is_bomb:
        raise BadDocumentError(
            f"The file unpacks to {unpacked_bytes >> 20} MiB in {len(entries)} parts, too much for a "
            f"document of {packed_bytes >> 10} KiB (possibly a decompression bomb).",
            "Split the file, or export its content in another format.",
            failure="too_large",
        )


def _check_prologue(prologue: bytes) -> None:
    if any(mark in prologue for mark in _DOCTYPES):
        raise BadDocumentError(
            "The file declares XML entities, which no Office program writes.",
            "Open the file in the program that created it, and save it again.",
        )


def title_and_author(document: Any) -> tuple[str | None, str | None]:
    """Return the title and author of a python-docx or python-pptx document. Each is None if it is missing or
    meaningless.
    """
    try:
        properties = document.core_properties
        return meaningful_title(properties.title), meaningful_author(properties.author)
    except PART_ERRORS:
        return None, None


def _main_types(archive: ZipFile, kind: OfficeKind) -> set[bytes]:
    """Return the content types of the package's main part, or raise `BadDocumentError` if it is of another
    kind.
    """
    types = archive.read(_CONTENT_TYPES) if _CONTENT_TYPES in archive.namelist() else b""
    if types_of_kind := set(kind.variant.findall(types)):
        return types_of_kind
    others = (other.name for other in (WORD, POWERPOINT, EXCEL) if other.variant.search(types))
    raise BadDocumentError(
        f"The suffix says {kind.name}, but the content is {next(others, 'another kind of ZIP archive')}.",
        "Give the file the suffix of its format, or export it again.",
        failure="wrong_suffix",
    )


def _rewrite_package(path: Path, kind: OfficeKind) -> IO[bytes]:
    """Return a copy of the package in memory that the parsing libraries accept.

    The copy has transitional XML names, the plain content type and no dangling relationships.
    """
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
    # Targets in word/_rels/document.xml.rels are relative to word/.
    folder = posixpath.dirname(posixpath.dirname(name))

    def replacement(match: re.Match[str]) -> str:
        target = _TARGET.search(match[0])
        if target is None or "External" in match[0] or target[1].startswith("#"):
            return match[0]
        part = posixpath.normpath(posixpath.join("/", folder, target[1])).lstrip("/")
        return match[0] if part in names else ""

    return _RELATIONSHIP.sub(replacement, content.decode("utf-8", "replace")).encode()


CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_RELATIONSHIPS = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
# Elements that contain the alternative text of a drawing.
_NAMED = ("docPr", "cNvPr")
# Maximum number of points per series. Larger charts are scatter plots, which are useless as tables.
_MAX_POINTS = 10_000


def drawn_elements(
    drawing: Any, part: Any, context: ParseContext, page_number: int | None = None
) -> Iterator[Element]:
    """Yield the title and table of each chart, the words of each diagram, and each picture followed by its
    text.

    Args:
        drawing: lxml element with references to charts, diagrams and pictures.
        part: python-docx or python-pptx part that resolves the references.
    """
    for root in _roots(drawing, part, f"{CHART}chart", "id"):
        yield from _chart(root, page_number)
    for root in _roots(drawing, part, f"{DIAGRAM}relIds", "dm"):
        for point in root.iter(f"{DIAGRAM}pt"):
            if text := _words(point):
                yield Element(kind="list_item", text=f"- {text}", page_number=page_number)
    for blip in drawing.iter(f"{DRAWING}blip"):
        if any(above.tag == f"{_COMPATIBILITY}Fallback" for above in blip.iterancestors()):
            # Skip the copy of a picture that is meant for programs without support for the current format.
            continue
        content = _content(part, blip.get(f"{_RELATIONSHIPS}embed"))
        if content:
            yield from embedded_figures(content, _alternative_text(blip, drawing), context, page_number)


def _content(part: Any, relationship_id: str | None) -> bytes | None:
    """Return the content of a relationship's target. Return None if the target is missing or external."""
    relationship = part.rels.get(relationship_id) if relationship_id else None
    if relationship is None or relationship.is_external:
        return None
    content: bytes = relationship.target_part.blob
    return content


def _roots(drawing: Any, part: Any, tag: str, attribute: str) -> Iterator[Any]:
    """Yield the XML roots of the parts to which a drawing refers. `tag` and `attribute` identify the
    references. Missing or invalid parts are skipped.
    """
    for reference in drawing.iter(tag):
        content = _content(part, reference.get(f"{_RELATIONSHIPS}{attribute}"))
        with suppress(SyntaxError):
            yield parse_xml(content or b"")


def _chart(root: Any, page_number: int | None) -> Iterator[Element]:
    title = root.find(f"{CHART}chart/{CHART}title")
    if title is not None and (text := _words(title)):
        yield Element(kind="paragraph", text=text, page_number=page_number)
    series = list(root.iter(f"{CHART}ser"))
    categories = next((points for one in series if (points := _points(one, "cat", "xVal"))), {})
    columns = [_points(one, "val", "yVal") for one in series]
    header = ["", *(" ".join(_points(one, "tx").values()) for one in series)]
    indices = sorted({index for column in (categories, *columns) for index in column})[:_MAX_POINTS]
    rows = [
        [categories.get(index, str(index + 1)), *(column.get(index, "") for column in columns)]
        for index in indices
    ]
    if rows:
        yield from table_elements([header, *rows], page_number)


def _points(series: Any, *names: str) -> dict[int, str]:
    """Return the categories or values of a chart series, keyed by point index. They were stored in the chart
    when the file was saved.
    """
    for name in names:
        child = series.find(f"{CHART}{name}")
        if child is not None:
            points = child.iter(f"{CHART}pt")
            return {int(point.get("idx", "0")): _value(point.findtext(f"{CHART}v") or "") for point in points}
    return {}


def _value(text: str) -> str:
    """Remove binary rounding noise from a number, such as 0.30000000000000004. Other text is returned
    unchanged.
    """
    try:
        return f"{float(text):.12g}"
    except ValueError:
        return text


def _words(element: Any) -> str:
    paragraphs = element.iter(f"{DRAWING}p")
    texts = ("".join(run.text or "" for run in paragraph.iter(f"{DRAWING}t")) for paragraph in paragraphs)
    return " ".join(" ".join(texts).split())


def _alternative_text(blip: Any, drawing: Any) -> str:
    for above in blip.iterancestors():
        for element in above.iter():
            is_named = isinstance(element.tag, str) and element.tag.rpartition("}")[2] in _NAMED
            if is_named and (text := element.get("descr")):
                return str(text)
        if above is drawing:
            break
    return ""
