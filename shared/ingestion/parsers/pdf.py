"""PDF, by PDFium. Runs in the worker process only: PDFium is not thread-safe, and a bad file may hang it."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from shared.documents.models import Element, ElementKind, ParsedDocument
from shared.ingestion.parsers.context import Workbench, bare_workbench
from shared.ingestion.parsers.pdf_drawings import Region
from shared.ingestion.parsers.pdf_forms import filled_in, open_form, with_filled
from shared.ingestion.parsers.pdf_headings import (
    HeadingRule,
    Outline,
    TaggedHeading,
    folded,
    is_tagged,
    tagged_headings,
)
from shared.ingestion.parsers.pdf_lines import (
    HyphenRule,
    Line,
    ParagraphRule,
    is_list_item,
    page_lines,
    paragraph_text,
    split_groups,
    without_bullet,
)
from shared.ingestion.parsers.pdf_pictures import PdfPictures
from shared.ingestion.parsers.pdf_tables import Table, place_tables, ruled_tables
from shared.ingestion.parsers.tables import table_elements
from shared.platform.errors import BadDocumentError

_EDGE_LINES = 4  # at most, at the top and at the bottom of a page
_MIN_PAGES = 4
_MIN_SHARE = 0.4  # of all pages; alternating left and right headers come on half of them
_NUMBER = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(r"(?:page |seite |p\. ?)?[-–— ]*#[-–— ]*(?:(?:of|von|/) ?#)?\Z", re.IGNORECASE)


def without_furniture(pages: Sequence[list[Line]]) -> list[list[Line]]:
    """The pages without page numbers, and without lines at their edges that repeat from page to page."""
    if len(pages) < _MIN_PAGES:
        return list(pages)
    edges = [_edge_lines(lines) for lines in pages]
    seen = Counter(key for page in edges for key in set(page.values()))
    repeated = {key for key, count in seen.items() if count >= max(_MIN_PAGES - 1, _MIN_SHARE * len(pages))}
    kept_once: set[str] = set()
    result = []
    for lines, page in zip(pages, edges, strict=True):
        kept = []
        for position, line in enumerate(lines):
            key = page.get(position)
            if key in repeated and (key in kept_once or _PAGE_NUMBER.match(key)):
                continue
            if key in repeated:
                kept_once.add(key)
            kept.append(line)
        result.append(kept)
    return result


def _edge_lines(lines: Sequence[Line]) -> dict[int, str]:
    """Position -> text with its numbers masked, of the lines that stand apart at the page's edges."""
    by_height = sorted(range(len(lines)), key=lambda position: -lines[position].top)
    edge = _until_gap([lines[position] for position in by_height])
    foot = _until_gap([lines[position] for position in reversed(by_height)])
    positions = by_height[:edge] + (by_height[-foot:] if foot else [])
    return {position: _NUMBER.sub("#", lines[position].text) for position in positions}


def _until_gap(lines: Sequence[Line]) -> int:
    """How many lines from the edge inwards stand before the first gap of a line's height; 0 without one."""
    for count, (outer, inner) in enumerate(pairwise(lines), start=1):
        if count > _EDGE_LINES:
            return 0
        upper, lower = (outer, inner) if outer.top >= inner.top else (inner, outer)
        if upper.bottom - lower.top >= outer.size:
            return count
    return 0


_PASSWORD, _SECURITY = 4, 5  # FPDF_GetLastError, fpdfview.h
_MAX_NAMED_RANGES = 20
_MIN_TITLE_LETTERS = 4
_NO_TITLE = re.compile(
    r"(?:untitled.*|document\d*|slide \d+|powerpoint presentation|.*\.\w{2,4})\Z", re.IGNORECASE
)


def parse_pdf(path: Path, bench: Workbench | None = None) -> ParsedDocument:
    """Text in content order, headings by tags, outline and look, tables where lines are drawn round them.

    With a workbench also figures, and the words of scanned pages.

    Raises:
        BadDocumentError: encrypted, damaged beyond reading, or without pages.
    """
    document = open_pdf(path)
    try:
        open_form(document)
        reader = _Reader(document, bench or bare_workbench())
        pages = without_furniture(reader.read_pages())
        elements = tuple(_elements(pages, reader))
        return ParsedDocument(
            elements=elements,
            page_count=len(document),
            title=document_title(document),
            author=metadata_value(document, "Author"),
            warnings=reader.warnings(),
        )
    finally:
        document.close()


def open_pdf(path: Path) -> Any:
    """The pypdfium2 document.

    Raises:
        BadDocumentError: encrypted, damaged beyond reading, or without pages.
    """
    import pypdfium2
    import pypdfium2.raw as pdfium

    try:
        document = pypdfium2.PdfDocument(path)
        if len(document) == 0:
            document.close()
            raise BadDocumentError("The PDF has no pages.", "Export the document again.")
    except pypdfium2.PdfiumError as error:
        code = getattr(error, "err_code", None) or pdfium.FPDF_GetLastError()
        if code in (_PASSWORD, _SECURITY):
            raise BadDocumentError(
                "The PDF is encrypted and needs a password.", "Remove the password and drop it again."
            ) from None
        raise BadDocumentError(
            "The PDF is damaged or incomplete and cannot be opened.",
            "Check that it opens in a viewer; copy or export it again.",
        ) from None
    return document


def metadata_value(document: Any, key: str) -> str | None:
    """A property of the file, in one line."""
    value: str = document.get_metadata_value(key)
    return " ".join(value.replace("\x00", "").split())[:300] or None


def document_title(document: Any) -> str | None:
    """The document's own title, unless a program made it up."""
    title = (metadata_value(document, "Title") or "").removeprefix("Microsoft Word - ").strip()
    letters = sum(character.isalpha() for character in title)
    return title if letters >= _MIN_TITLE_LETTERS and not _NO_TITLE.match(title) else None


class _Reader:
    """Reads one open document, and notes what it could not read."""

    def __init__(self, document: Any, bench: Workbench) -> None:
        self._document = document
        self._unreadable: list[int] = []
        self.pictures = PdfPictures(bench)
        self._is_tagged = is_tagged(document)
        self.tables: dict[int, list[Table]] = {}
        self.tags: dict[int, list[TaggedHeading]] = {}

    def read_pages(self) -> list[list[Line]]:
        pages = [self._read_page(number) for number in range(1, len(self._document) + 1)]
        self.pictures.finish(self._document)
        return pages

    def _read_page(self, page_number: int) -> list[Line]:
        import pypdfium2

        try:
            page = self._document[page_number - 1]
        except pypdfium2.PdfiumError:
            self._unreadable.append(page_number)
            return []
        try:
            lines = page_lines(page, page_number)
            if filled := list(filled_in(page)):
                lines = with_filled(lines, filled, page_number)
            self.tables[page_number] = ruled_tables(page)
            if self._is_tagged and (found := tagged_headings(page)):
                self.tags[page_number] = found
            tables = [Region(*astuple(table.box)) for table in self.tables[page_number]]
            self.pictures.read(page, page_number, lines, tables)
        except pypdfium2.PdfiumError:
            self._unreadable.append(page_number)
            return []
        finally:
            page.close()
        return lines

    def outline(self) -> Outline:
        """The bookmarks; a broken outline counts as none."""
        import pypdfium2

        titles: dict[int, dict[str, int]] = defaultdict(dict)
        try:
            for bookmark in self._document.get_toc(max_depth=6):
                destination = bookmark.get_dest()
                index = destination.get_index() if destination is not None else None
                title = folded(bookmark.get_title())
                if index is not None and title:
                    titles[index + 1].setdefault(title, min(bookmark.level + 1, 6))
        except (pypdfium2.PdfiumError, ValueError):
            return {}
        return titles

    def warnings(self) -> tuple[str, ...]:
        found = []
        if self._unreadable:
            found.append(f"{_pages(self._unreadable)} could not be read and were left out.")
        if self.pictures.unread:
            holds = "hold" if len(self.pictures.unread) > 1 else "holds"
            found.append(f"{_pages(self.pictures.unread)} {holds} no text (scanned?) and cannot be searched.")
        return tuple(found)


def _pages(numbers: Sequence[int]) -> str:
    """ "Pages 1, 3-5"."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    named = ", ".join(
        f"{first}-{last}" if last > first else str(first) for first, last in ranges[:_MAX_NAMED_RANGES]
    )
    more = " and more" if len(ranges) > _MAX_NAMED_RANGES else ""
    return f"{'Pages' if len(numbers) > 1 else 'Page'} {named}{more}"


def _elements(pages: Sequence[list[Line]], reader: _Reader) -> Iterator[Element]:
    lines = [line for page in pages for line in page]
    headings = HeadingRule(lines, reader.outline(), reader.tags)
    hyphens = HyphenRule(chain((line.text for line in lines), reader.pictures.texts()))
    for page_number, page in enumerate(pages, start=1):
        for part in place_tables(page, reader.tables.get(page_number, ())):
            if isinstance(part, Table):
                rows = [[hyphens.mend(cell) for cell in row] for row in part.rows]
                yield from table_elements(rows, page_number)
                continue
            rule = ParagraphRule(part)
            for level, run in _runs(part, headings):
                groups = [run] if level is not None else split_groups(run, rule)
                for group in groups:
                    yield from reader.pictures.before(page_number, group, hyphens)
                    yield _element(hyphens.mend(paragraph_text(group, rule)), page_number, level)
        yield from reader.pictures.rest(page_number, hyphens)


def _element(text: str, page_number: int, level: int | None) -> Element:
    kind: ElementKind = "heading" if level is not None else "list_item" if is_list_item(text) else "paragraph"
    if kind == "heading":
        text = " ".join(text.split())
    elif kind == "list_item":
        text = f"- {without_bullet(text)}" if without_bullet(text) != text else text
    return Element(kind=kind, text=text, page_number=page_number, level=level)


def _runs(page: Sequence[Line], headings: HeadingRule) -> Iterator[tuple[int | None, list[Line]]]:
    """Lines of a page in runs of one heading each, or of text. A heading of several lines is one run."""
    run: list[Line] = []
    run_level: int | None = None
    for position, line in enumerate(page):
        before = page[position - 1] if position else None
        after = page[position + 1] if position + 1 < len(page) else None
        level = headings.level(line, before, after)
        if run and (level != run_level or (level is not None and not _same_heading(run[-1], line))):
            yield run_level, run
            run = []
        run_level = level
        run.append(line)
    if run:
        yield run_level, run


def _same_heading(before: Line, line: Line) -> bool:
    return (
        before.size == line.size
        and before.bold == line.bold
        and line.top < before.top
        and before.bottom - line.top < 0.5 * line.size
    )
