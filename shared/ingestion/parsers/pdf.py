"""PDF parser based on PDFium, for use in the worker process only.

PDFium isn't thread-safe, and bad files may hang it. A page counts as scanned if it has some drawing but
almost no text, or if a picture covers it and its few words are probably a stamp. Recognised text is added
after the words of the stamp, which are not repeated.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from shared.documents.models import Element, ParsedDocument
from shared.ingestion.parsers.context import MAX_SIDE_PX, ParseContext
from shared.ingestion.parsers.ocr import DPI, Recognised, Rows
from shared.ingestion.parsers.pdf_content import HYPHEN_MARK, TaggedHeading
from shared.ingestion.parsers.pdf_drawings import Drawing, covering_picture
from shared.ingestion.parsers.pdf_figures import PageFigure, page_figures
from shared.ingestion.parsers.pdf_forms import with_filled
from shared.ingestion.parsers.pdf_furniture import without_furniture
from shared.ingestion.parsers.pdf_geometry import Region, region_of
from shared.ingestion.parsers.pdf_headings import HeadingRule, Outline, folded, with_table_titles
from shared.ingestion.parsers.pdf_lines import (
    HyphenRule,
    Line,
    ParagraphRule,
    line_region,
    page_lines,
    paragraph_element,
    paragraph_text,
    split_groups,
)
from shared.ingestion.parsers.pdf_page_tables import read_tables
from shared.ingestion.parsers.pdf_reading_order import in_reading_order
from shared.ingestion.parsers.pdf_tables import Table, place_tables
from shared.ingestion.parsers.pdfium_forms import open_form
from shared.ingestion.parsers.pdfium_objects import has_hidden_text
from shared.ingestion.parsers.pdfium_page import Sheet
from shared.ingestion.parsers.scanned_drawings import scanned_drawings
from shared.ingestion.parsers.tables import grid_elements, recognised_elements
from shared.ingestion.parsers.text import meaningful_author, meaningful_title, page_ranges
from shared.platform.errors import BadDocumentError
from shared.platform.telemetry import get_logger

# A page with less text than this that also has drawn content is a scan.
MIN_PAGE_CHARS = 20
# Maximum length of a stamp or running header on a scanned page.
_STAMP_CHARS = 200
# A recognised line repeats the stamp if at least this share of its letters is equal. Small print is often
# misread in part (unmeasured).
_STAMP_LIKENESS = 0.8
_MAX_SCAN_SIDE_PX = 4000
_FIGURE_DPI = 150
# Vertical tolerance for labels in one row of a drawing, relative to the font size.
_SAME_ROW = 0.5
# Approximate font size of a recognised line, relative to its height.
_SIZE_SHARE = 0.9
# Error codes of FPDF_GetLastError (fpdfview.h).
_PASSWORD, _SECURITY = 4, 5
_MAX_NAMED_RANGES = 20


def parse_pdf(path: Path, context: ParseContext | None = None) -> ParsedDocument:
    """Parse the text, headings and tables of a PDF file, in reading order.

    Headings are found by tags, outline and appearance. With a context, figures and the text of scanned pages
    are included.

    Raises:
        BadDocumentError: the file is encrypted, too damaged to read, or without pages.
    """
    with closing(open_pdf(path)) as document:
        open_form(document)
        reader = _Reader(document, context or ParseContext())
        pages = without_furniture(reader.read_pages())
        return ParsedDocument(
            elements=tuple(with_table_titles(_elements(pages, reader))),
            page_count=len(document),
            title=document_title(document),
            author=document_author(document),
            unreadable_pages=reader.unreadable_pages(),
            warnings=reader.warnings(),
        )


def open_pdf(path: Path) -> Any:
    """Open a PDF file as a pypdfium2 document.

    Raises:
        BadDocumentError: the file is encrypted, too damaged to read, or without pages.
    """
    try:
        document = pypdfium2.PdfDocument(path)
        if len(document) == 0:
            document.close()
            raise BadDocumentError("The PDF has no pages.", "Export the document again.")
    except pypdfium2.PdfiumError as error:
        code = getattr(error, "err_code", None) or pdfium.FPDF_GetLastError()
        if code in (_PASSWORD, _SECURITY):
            raise BadDocumentError(
                "The PDF is encrypted and needs a password.",
                "Remove the password and upload the file again.",
                failure="encrypted",
            ) from None
        raise BadDocumentError(
            "The PDF is damaged or incomplete and cannot be opened.",
            "Check that the PDF opens in a viewer, or export it again.",
        ) from None
    return document


def document_title(document: Any) -> str | None:
    """Return the title in the document's properties, or None if it is empty or was generated by a program."""
    return meaningful_title(document.get_metadata_value("Title").replace("\x00", ""))


def document_author(document: Any) -> str | None:
    """Return the author in the document's properties, or None if it is empty or the name of a program."""
    return meaningful_author(document.get_metadata_value("Author").replace("\x00", ""))


def _elements(pages: Sequence[list[Line]], reader: "_Reader") -> Iterator[Element]:
    lines = [line for page in pages for line in page]
    headings = HeadingRule(lines, reader.outline(), reader.tags)
    hyphens = HyphenRule(chain((line.text for line in lines), reader.pictures.texts()))
    last: list[Line] | Table = []
    for page_number, page in enumerate(pages, start=1):
        for place, part in enumerate(place_tables(page, reader.tables.get(page_number, ()))):
            if isinstance(part, Table):
                last = part.continue_from(last) if place == 0 and isinstance(last, Table) else part
                rows = [[hyphens.resolve_marks(cell) for cell in row] for row in last.rows]
                yield from grid_elements(rows, page_number)
                continue
            last = part
            yield from _text_elements(part, headings, hyphens, reader)
        yield from reader.pictures.rest(page_number, hyphens)


def _text_elements(
    lines: Sequence[Line], headings: HeadingRule, hyphens: HyphenRule, reader: "_Reader"
) -> Iterator[Element]:
    """Yield the elements for a run of lines between tables. A figure that belongs before a line is yielded
    before the line's element.
    """
    rule = ParagraphRule(lines)
    page_number = lines[0].page_number
    for level, run in _runs(lines, headings, reader.charts):
        is_chart = run[0] in reader.charts
        groups = [run] if level is not None or is_chart else split_groups(run, rule)
        for group in groups:
            yield from reader.pictures.before(page_number, group, hyphens)
            text = hyphens.resolve_marks(_chart_text(group) if is_chart else paragraph_text(group, rule))
            if is_chart and level is None:
                yield Element(kind="paragraph", text=text, page_number=page_number)
            elif level is None:
                yield paragraph_element(text, page_number)
            else:
                text = " ".join(text.split())
                yield Element(kind="heading", text=text, page_number=page_number, level=level)


def _chart_text(lines: Sequence[Line]) -> str:
    """Return the words of a drawing. Each row becomes a line."""
    text = lines[0].text
    for before, line in pairwise(lines):
        text += f"{' ' if abs(before.middle - line.middle) < _SAME_ROW * line.size else chr(10)}{line.text}"
    return text


def _with_charts_whole(lines: Sequence[Line], charts: Mapping[Line, PageFigure]) -> list[Line]:
    """Return the lines of a page, with all lines of a drawing moved to the position of its first line."""
    groups: list[list[Line]] = []
    by_chart: dict[int, list[Line]] = {}
    for line in lines:
        group = by_chart.get(id(charts.get(line))) if line in charts else None
        if group is not None:
            group.append(line)
            continue
        groups.append([line])
        if line in charts:
            by_chart[id(charts[line])] = groups[-1]
    return [line for group in groups for line in group]


def _runs(
    page: Sequence[Line], headings: HeadingRule, charts: Mapping[Line, PageFigure]
) -> Iterator[tuple[int | None, list[Line]]]:
    """Yield groups of consecutive lines that form a heading, the words of a drawing, or text. Each group is
    preceded by the heading's level, or None for the other kinds.
    """
    run: list[Line] = []
    run_level: int | None = None
    for position, line in enumerate(page):
        before = page[position - 1] if position else None
        after = page[position + 1] if position + 1 < len(page) else None
        chart = charts.get(line)
        # A line in a chart only counts as a heading if the file declares it as one: the text after the chart
        # is unrelated to the chart's title.
        level = headings.level(line, before, after) if chart is None else headings.declared_level(line)
        is_next = level != run_level or (level is not None and not _same_heading(run[-1], line))
        if run and (is_next or chart != charts.get(run[-1])):
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


class _Reader:
    """Reader that collects the lines, tables, figures and warnings of all pages."""

    def __init__(self, document: Any, context: ParseContext) -> None:
        self._document = document
        self._unreadable: list[int] = []
        self.pictures = PdfPictures(context)
        self._is_tagged = bool(pdfium.FPDFCatalog_IsTagged(document.raw))
        self.tables: dict[int, list[Table]] = {}
        self.charts: dict[Line, PageFigure] = {}
        self.tags: dict[int, Sequence[TaggedHeading]] = {}

    def read_pages(self) -> list[list[Line]]:
        pages = [self._read_page(number) for number in range(1, len(self._document) + 1)]
        self.pictures.finish(self._document)
        return pages

    def _read_page(self, page_number: int) -> list[Line]:
        try:
            page = self._document[page_number - 1]
        except pypdfium2.PdfiumError:
            self._unreadable.append(page_number)
            return []
        try:
            sheet = Sheet(page, page_number, is_tagged=self._is_tagged)
            content = sheet.content
            lines = page_lines(content.lines, page_number)
            self.tables[page_number] = read_tables(content, lines)
            tables = [table.box for table in self.tables[page_number]]
            lines = in_reading_order(lines, tables)
            if content.fields:
                lines = with_filled(lines, content.fields, page_number)
            if content.headings:
                self.tags[page_number] = content.headings
            figures = self.pictures.read(sheet, lines, tables)
            self.charts |= {line: figure for figure in figures for line in figure.lines}
            lines = _with_charts_whole(lines, self.charts)
        except pypdfium2.PdfiumError:
            self._unreadable.append(page_number)
            return []
        finally:
            page.close()
        return lines

    def outline(self) -> Outline:
        """Return the level of each bookmark, keyed by page number and title. A damaged outline counts as
        empty.
        """
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

    def unreadable_pages(self) -> int:
        """Return the number of pages that are damaged or without readable text."""
        return len({*self._unreadable, *self.pictures.unread})

    def warnings(self) -> tuple[str, ...]:
        warnings = []
        if self._unreadable:
            were = "were" if len(self._unreadable) > 1 else "was"
            warnings.append(f"{_pages(self._unreadable)} could not be read and {were} left out.")
        if self.pictures.unread:
            holds = "hold" if len(self.pictures.unread) > 1 else "holds"
            pages = f"{_pages(self.pictures.unread)} {holds} no text (scanned?) and cannot be searched."
            warnings.append(f"{pages} {self.pictures.unread_reason}".rstrip())
        return tuple(warnings)


def _pages(numbers: Sequence[int]) -> str:
    """Return a phrase that lists page numbers, such as "Pages 1, 3-5". Long lists are shortened."""
    ranges = page_ranges(numbers)
    names = ", ".join(ranges[:_MAX_NAMED_RANGES])
    more = " and more" if len(ranges) > _MAX_NAMED_RANGES else ""
    return f"{'Pages' if len(numbers) > 1 else 'Page'} {names}{more}"


@dataclass
class _Page:
    """Figures and recognised text of one page, collected while the document is parsed.

    Attributes:
        figures: elements of figures, each with the line that it precedes (None = end of page).
        stamp: lines of a scanned page that the file contains as text.
        recognised: pending result of text recognition.
        parts: recognised paragraphs and tables, without the stamp; None = not read.
    """

    figures: list[tuple[Line | None, Element]] = field(default_factory=list)
    stamp: Sequence[Line] = ()
    recognised: Future[Recognised | None] | None = None
    parts: tuple[str | Rows, ...] | None = None


class PdfPictures:
    """Extractor for the figures of a document and for the text on its scanned pages."""

    def __init__(self, context: ParseContext) -> None:
        self._context = context
        self._pages: defaultdict[int, _Page] = defaultdict(_Page)
        self.unread: list[int] = []

    @property
    def unread_reason(self) -> str:
        """Explanation for users why text recognition skipped some pages, and how to fix that; "" if an
        external service reads the scanned pages.
        """
        return "" if self._context.service_pages is not None else self._context.recognition.unread_reason

    def read(self, sheet: Sheet, lines: Sequence[Line], tables: Sequence[Region]) -> list[PageFigure]:
        """Extract the figures of a page with text, or start text recognition for a scanned page.

        Raises:
            pypdfium2.PdfiumError: the page cannot be rendered.
        """
        chars = sum(len(line.text) for line in lines)
        content = sheet.content
        is_empty = chars < MIN_PAGE_CHARS and (bool(content.drawn) if chars else content.has_objects)
        is_stamped = not is_empty and chars < _STAMP_CHARS and covering_picture(content) is not None
        is_read = (is_empty or is_stamped) and self._recognise(sheet, lines)
        return [] if is_empty or is_read else self._keep_figures(sheet, lines, tables)

    def finish(self, document: Any) -> None:
        """Wait for text recognition, and extract the figures of scanned pages.

        A scanned page without words becomes one figure.
        """
        for page_number, page in sorted(self._pages.items()):
            if page.recognised is not None:
                recognised = page.recognised.result()
                if recognised is not None:
                    page.parts = tuple(without_stamp(recognised.parts, [line.text for line in page.stamp]))
                    self._keep_of_scan(document, page_number, recognised)
                elif page_number not in self.unread:
                    self.unread.append(page_number)
            elif page.parts is not None and sum(map(len, page.parts)) < MIN_PAGE_CHARS:
                self._keep_of_scan(document, page_number, Recognised("", (), (), (1, 1)))
        self.unread.sort()

    def texts(self) -> Iterator[str]:
        """Yield the recognised paragraphs. Hyphens at line ends are replaced by hyphen marks."""
        parts = (part for page in self._pages.values() for part in page.parts or ())
        return (_mark_hyphens(part) for part in parts if isinstance(part, str))

    def before(self, page_number: int, lines: Sequence[Line], hyphens: HyphenRule) -> Iterator[Element]:
        """Yield the figures that belong before any of these lines. Each figure is yielded only once."""
        page = self._pages.get(page_number)
        if page is None or not page.figures:
            return
        due = [element for anchor, element in page.figures if anchor in lines]
        page.figures = [pair for pair in page.figures if pair[1] not in due]
        yield from (_resolve_hyphens(element, hyphens) for element in due)

    def rest(self, page_number: int, hyphens: HyphenRule) -> Iterator[Element]:
        """Yield the figures of a page that `before` hasn't yielded, followed by the recognised text of the
        page.
        """
        page = self._pages.get(page_number)
        if page is None:
            return
        yield from (_resolve_hyphens(element, hyphens) for _, element in page.figures)
        parts = (_mark_hyphens(part) if isinstance(part, str) else part for part in page.parts or ())
        for element in recognised_elements(parts, page_number):
            yield _resolve_hyphens(element, hyphens)

    def _recognise(self, sheet: Sheet, lines: Sequence[Line]) -> bool:
        """Use the text that a service has read on a scanned page, or start text recognition. Return False if
        neither is possible.
        """
        page = self._pages[sheet.number]
        page.stamp = lines
        if self._context.service_pages is not None:
            text = self._context.service_pages.text_of(sheet.number)
            if text is not None:
                page.parts = tuple(without_stamp(text.split("\n\n"), [line.text for line in lines]))
                return True
        elif self._context.recognition.is_available:
            whole = sheet.content.region
            scale = min(DPI / 72, _MAX_SCAN_SIDE_PX / max(whole.width, whole.height))
            picture = sheet.picture(scale, grayscale=True)
            page.recognised = self._context.recognition.submit(picture)
            return True
        self.unread.append(sheet.number)
        return False

    def _keep_figures(
        self,
        sheet: Sheet,
        lines: Sequence[Line],
        tables: Sequence[Region],
        scanned_words: Sequence[Region] | None = None,
    ) -> list[PageFigure]:
        figures: list[PageFigure] = []
        try:
            is_full = self._context.figures.is_full
            scanned = [] if is_full else _drawings_in_scan(sheet, lines, scanned_words)
            figures = page_figures(sheet.content, lines, tables, scanned)
            for figure in [] if is_full else figures:
                self._keep(sheet, figure, is_read=scanned_words is not None)
        except (pypdfium2.PdfiumError, ValueError):
            # A rendering error loses the figures of the page, but not its text.
            get_logger().warning("figure.unreadable", page_number=sheet.number)
        return figures

    def _keep(self, sheet: Sheet, figure: PageFigure, *, is_read: bool) -> None:
        """Store a figure and its words as elements of the page.

        Args:
            is_read: whether text recognition has already covered this area.
        """
        image = sheet.part(figure.region, _FIGURE_DPI, MAX_SIDE_PX)
        picture = self._context.figures.add(image, is_named=bool(figure.label or figure.words))
        if picture is None:
            return
        words = figure.words if figure.words or is_read else self._context.recognition.read_labels(image)
        picture_with_words = picture.model_copy(update={"words": words})
        element = Element(
            kind="figure", text=figure.label, page_number=sheet.number, picture=picture_with_words
        )
        page = self._pages[sheet.number]
        page.figures.append((figure.anchor, element))
        if words and not figure.words:
            spoken = Element(kind="paragraph", text=words, page_number=sheet.number)
            page.figures.append((figure.anchor, spoken))

    def _keep_of_scan(self, document: Any, page_number: int, recognised: Recognised) -> None:
        if self._context.figures.is_full:
            return
        # Opening the page can't fail here, because it has been opened before.
        with closing(document[page_number - 1]) as page:
            sheet = Sheet(page, page_number)
            region = sheet.content.region
            if len(recognised.text) >= MIN_PAGE_CHARS:
                words = [region_of(box, region, recognised.size) for box in recognised.words]
                self._keep_figures(sheet, _placed_lines(sheet, recognised), (), words)
            elif covering_picture(sheet.content) is not None:
                whole = PageFigure(region=region, label="", anchor=None)
                self._keep(sheet, whole, is_read=False)


def _drawings_in_scan(sheet: Sheet, lines: Sequence[Line], words: Sequence[Region] | None) -> list[Drawing]:
    """Return the drawings within the picture that covers a scanned page.

    Args:
        words: bounds of the recognised words; None = use hidden text in the file, if any.
    """
    if words is None and covering_picture(sheet.content) is not None and has_hidden_text(sheet.page):
        words = [line_region(line) for line in lines]
    return [] if words is None else scanned_drawings(sheet, words)


def _placed_lines(sheet: Sheet, recognised: Recognised) -> list[Line]:
    """Convert recognised lines from pixels to lines in page coordinates."""
    regions = [region_of(line.box, sheet.content.region, recognised.size) for line in recognised.lines]
    return [
        Line(
            text=line.text,
            page_number=sheet.number,
            size=_SIZE_SHARE * region.height,
            bold=False,
            left=region.left,
            right=region.right,
            top=region.top,
            bottom=region.bottom,
        )
        for line, region in zip(recognised.lines, regions, strict=True)
    ]


def without_stamp(parts: Iterable[str | Rows], stamp: Sequence[str]) -> Iterator[str | Rows]:
    """Yield the recognised paragraphs and tables without the lines that repeat a line of the stamp. A few
    letters may differ, because they are often misread.
    """
    stamps = [letters for line in stamp if (letters := _letters(line))]
    for part in parts:
        if isinstance(part, str):
            lines = [one for one in part.split("\n") if not any(_is_like(_letters(one), s) for s in stamps)]
            if lines:
                yield "\n".join(lines)
        else:
            yield part


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _is_like(recognised: str, stamp: str) -> bool:
    return SequenceMatcher(None, recognised, stamp, autojunk=False).ratio() >= _STAMP_LIKENESS


def _resolve_hyphens(element: Element, hyphens: HyphenRule) -> Element:
    """Return the element with all hyphen marks resolved, in its text and in the words of its picture."""
    picture = element.picture
    if picture is not None:
        picture = picture.model_copy(update={"words": hyphens.resolve_marks(picture.words)})
    return element.model_copy(update={"text": hyphens.resolve_marks(element.text), "picture": picture})


def _mark_hyphens(text: str) -> str:
    """Replace hyphens at line ends with PDFium's hyphen mark, so that `HyphenRule` can resolve them in
    recognised text as well.
    """
    return text.replace("-\n", HYPHEN_MARK)
