"""Document Intelligence's answer as a layout. Pure.

Paragraphs, tables and figures say by spans where they stand in the whole text; that is the reading order.
Source: REST API 2024-11-30, AnalyzeResult.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from shared.clients.documents_wire import Cell, Wire, filled_rows, folded
from shared.models.layout import Layout, LayoutPiece, PageArea, PieceKind

_FURNITURE = ("pageHeader", "pageFooter", "pageNumber")
_HEADINGS = ("title", "sectionHeading")
_MARKS = ((":selected:", "☒"), (":unselected:", "☐"))
_DEFAULT_LEVEL = 2


class Span(Wire):
    """A stretch of the whole text, in characters."""

    offset: int
    length: int


class BoundingRegion(Wire):
    """A polygon on a page, x and y in turns, in the page's unit; empty = the whole page."""

    page_number: int = Field(alias="pageNumber")
    polygon: tuple[float, ...] = ()


class Placed(Wire):
    """What has a place."""

    spans: tuple[Span, ...] = ()
    regions: tuple[BoundingRegion, ...] = Field(default=(), alias="boundingRegions")

    @property
    def offset(self) -> int:
        return min((span.offset for span in self.spans), default=0)

    @property
    def page_number(self) -> int | None:
        return self.regions[0].page_number if self.regions else None


class Paragraph(Placed):
    """A paragraph and what it is for."""

    content: str
    role: str | None = None


class TableCell(Placed):
    """A cell."""

    row: int = Field(alias="rowIndex")
    column: int = Field(alias="columnIndex")
    row_span: int = Field(default=1, alias="rowSpan")
    column_span: int = Field(default=1, alias="columnSpan")
    content: str = ""


class Table(Placed):
    """A table."""

    row_count: int = Field(alias="rowCount")
    column_count: int = Field(alias="columnCount")
    cells: tuple[TableCell, ...]


class Caption(Wire):
    """What stands below or above a figure."""

    content: str


class FoundFigure(Placed):
    """A figure. `elements` are references such as "/paragraphs/5"."""

    caption: Caption | None = None
    elements: tuple[str, ...] = ()


class Section(Wire):
    """A part of the document; its elements are paragraphs, tables, figures and sections."""

    elements: tuple[str, ...] = ()


class Line(Wire):
    """A visual line."""

    content: str


class Page(Wire):
    """A page that was read."""

    page_number: int = Field(alias="pageNumber")
    width: float = 0
    height: float = 0
    lines: tuple[Line, ...] = ()


class AnalyzeResult(Wire):
    """All that was found."""

    pages: tuple[Page, ...]
    paragraphs: tuple[Paragraph, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[FoundFigure, ...] = ()
    sections: tuple[Section, ...] = ()


def page_texts(result: AnalyzeResult) -> dict[int, str]:
    """The words of each page that was read; of the read model."""
    by_page: dict[int, list[str]] = {page.page_number: [] for page in result.pages}
    for paragraph in result.paragraphs:
        if paragraph.page_number in by_page:
            by_page[paragraph.page_number].append(_text(paragraph.content))
    for page in result.pages:
        if not by_page[page.page_number]:
            by_page[page.page_number] = [_text("\n".join(line.content for line in page.lines))]
    return {number: "\n\n".join(filter(None, texts)) for number, texts in by_page.items()}


def layout_of(result: AnalyzeResult, service: str) -> Layout:
    """The pieces in reading order, without running headers, footers and page numbers.

    Raises:
        ValueError: a table of impossible size.
    """
    levels = _heading_levels(result.sections)
    in_cells = _Stretches(span for table in result.tables for cell in table.cells for span in cell.spans)
    placed: list[tuple[int, LayoutPiece]] = []
    for position, paragraph in enumerate(result.paragraphs):
        if paragraph.role not in _FURNITURE and not (paragraph.spans and paragraph.offset in in_cells):
            placed.append((paragraph.offset, _paragraph_piece(paragraph, levels.get(position))))
    placed += [(table.offset, _table_piece(table)) for table in result.tables]
    pages = {page.page_number: page for page in result.pages}
    placed += [(figure.offset, _figure_piece(figure, result.paragraphs, pages)) for figure in result.figures]
    placed.sort(key=lambda pair: pair[0])
    pieces = tuple(piece for _, piece in placed if piece.kind in ("figure", "table") or piece.text)
    return Layout(pieces=pieces, page_count=len(result.pages), service=service)


class _Stretches:
    """Stretches of the text, to be asked what lies in one of them."""

    def __init__(self, spans: Iterable[Span]) -> None:
        ordered = sorted((span.offset, span.offset + span.length) for span in spans if span.length > 0)
        self._starts = [start for start, _ in ordered]
        self._ends = [end for _, end in ordered]

    def __contains__(self, offset: int) -> bool:
        before = bisect_right(self._starts, offset) - 1
        return before >= 0 and offset < self._ends[before]


@dataclass
class _Visit:
    section: int
    depth: int


def _heading_levels(sections: Sequence[Section]) -> dict[int, int]:
    """The level of a paragraph that heads a section: how deep that lies; the first is the document."""
    levels: dict[int, int] = {}
    seen: set[int] = set()
    open_sections = [_Visit(0, 1)] if sections else []
    while open_sections:
        visit = open_sections.pop()
        if visit.section in seen or visit.section >= len(sections):
            continue
        seen.add(visit.section)
        for kind, position in _references(sections[visit.section].elements):
            if kind == "paragraphs":
                levels[position] = min(visit.depth, 6)
            elif kind == "sections":
                open_sections.append(_Visit(position, visit.depth + 1))
    return levels


def _references(elements: Iterable[str]) -> Iterator[tuple[str, int]]:
    for element in elements:
        kind, _, position = element.strip("/").partition("/")
        if position.isdecimal():
            yield kind, int(position)


def _paragraph_piece(paragraph: Paragraph, level: int | None) -> LayoutPiece:
    is_heading = paragraph.role in _HEADINGS
    kind: PieceKind = "heading" if is_heading else "paragraph"
    known = 1 if paragraph.role == "title" else level or _DEFAULT_LEVEL
    return LayoutPiece(
        kind=kind,
        text=_text(paragraph.content),
        page_number=paragraph.page_number,
        level=known if is_heading else None,
    )


def _table_piece(table: Table) -> LayoutPiece:
    cells = (
        Cell(
            row=cell.row,
            row_end=cell.row + cell.row_span,
            column=cell.column,
            column_end=cell.column + cell.column_span,
            text=_text(cell.content),
        )
        for cell in table.cells
    )
    rows = filled_rows(table.row_count, table.column_count, cells)
    return LayoutPiece(kind="table", rows=rows, page_number=table.page_number)


def _figure_piece(
    figure: FoundFigure, paragraphs: Sequence[Paragraph], pages: Mapping[int, Page]
) -> LayoutPiece:
    inside = (
        paragraphs[position].content
        for kind, position in _references(figure.elements)
        if kind == "paragraphs" and position < len(paragraphs)
    )
    return LayoutPiece(
        kind="figure",
        text=_text(figure.caption.content) if figure.caption else "",
        words="\n".join(_text(content) for content in inside),
        page_number=figure.page_number,
        area=_area(figure, pages),
    )


def _area(figure: FoundFigure, pages: Mapping[int, Page]) -> PageArea | None:
    page = pages.get(figure.page_number or 0)
    if page is None or page.width <= 0 or page.height <= 0:
        return None
    polygon = figure.regions[0].polygon
    if len(polygon) < 4:
        return PageArea(left=0, top=0, right=1, bottom=1)
    xs, ys = polygon[0::2], polygon[1::2]
    return PageArea(
        left=min(xs) / page.width,
        top=min(ys) / page.height,
        right=max(xs) / page.width,
        bottom=max(ys) / page.height,
    )


def _text(content: str) -> str:
    """Folded, line by line; selection marks as signs."""
    for word, sign in _MARKS:
        content = content.replace(word, sign)
    lines = (folded(line) for line in content.splitlines())
    return "\n".join(line for line in lines if line)
