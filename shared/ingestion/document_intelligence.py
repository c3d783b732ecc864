"""Azure Document Intelligence, by its SDK: the layout of a file, or the words of some of its pages.

The SDK sends the file; asking for the result is ours. Its poller gives up at the first 429, takes answers of
any size, and follows whatever address the service names, with the key in a header.
"""

import asyncio
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationError

from shared.evidence.models import PageArea
from shared.ingestion.models import Layout, LayoutPiece, PageTexts, PieceKind
from shared.ingestion.parser_services import Cell, LayoutReader, PageReader, cannot_read, filled_rows
from shared.ingestion.parsers.text import page_ranges
from shared.platform.calls import DOCUMENT_INTELLIGENCE as SERVICE
from shared.platform.calls import (
    Deadline,
    azure_errors,
    call_span,
    call_within,
    failed,
    retry_after_s,
    timed_out,
)
from shared.platform.connections import Connection, Credentials, credential_modules
from shared.platform.errors import ConfigurationError, GroundworkError
from shared.platform.http_client import Wire, folded, not_understood, read_bounded
from shared.platform.language_models.models import CallLimits
from shared.platform.settings import Settings

if TYPE_CHECKING:
    from azure.ai.documentintelligence.aio import DocumentIntelligenceClient


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


def _heading_levels(sections: Sequence[Section]) -> dict[int, int]:
    """The level of a paragraph that heads a section: how deep that lies; the first is the document."""
    levels: dict[int, int] = {}
    seen: set[int] = set()
    open_sections = [(0, 1)]
    while open_sections:
        section, depth = open_sections.pop()
        if section in seen or section >= len(sections):
            continue
        seen.add(section)
        for kind, position in _references(sections[section].elements):
            if kind == "paragraphs":
                levels[position] = min(depth, 6)
            elif kind == "sections":
                open_sections.append((position, depth + 1))
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


API_VERSION = "2024-11-30"
LAYOUT_MODEL = "prebuilt-layout"
READ_MODEL = "prebuilt-read"
_CONNECT_TIMEOUT_S = 5
_POLL_S = 1.0  # when the service names no pause; the documentation advises 1 to 2 s
_RESULT_ID = re.compile(r"/analyzeResults/([0-9A-Za-z-]{1,100})(?:\?|\Z)")
_CODE = re.compile(r"\A[A-Za-z0-9]{1,60}\Z")
_SERVICE_FAULTS = ("InternalServerError", "ServiceUnavailable", "Timeout")


class _InnerError(Wire):
    code: str = ""


class _Error(Wire):
    code: str = ""
    inner: _InnerError | None = Field(default=None, alias="innererror")

    @property
    def most_exact_code(self) -> str:
        """A word, no text of the document; "" when the service gives none."""
        code = self.inner.code if self.inner and self.inner.code else self.code
        return code if _CODE.match(code) else ""


class _Operation(Wire):
    """Where an analysis stands: notStarted, running, succeeded, failed, canceled."""

    status: str
    error: _Error | None = None
    result: AnalyzeResult | None = Field(default=None, alias="analyzeResult")


@dataclass(frozen=True)
class _Analysis:
    """One that was accepted, and how long to wait before asking for it."""

    model: str
    result_id: str
    wait_s: float


def connect_document_intelligence(
    settings: Settings, credentials: Credentials
) -> "Connection[DocumentIntelligenceClient]":
    """The client; it is made, and the SDK imported, on first use."""

    def make() -> "DocumentIntelligenceClient":
        from azure.ai.documentintelligence.aio import DocumentIntelligenceClient

        endpoint = settings.ingestion.document_intelligence_endpoint
        if not endpoint:
            raise ConfigurationError("DOCUMENT_INTELLIGENCE_ENDPOINT is missing.")
        return DocumentIntelligenceClient(
            endpoint.rstrip("/"),
            credentials.key_or_identity(
                settings.ingestion.document_intelligence_key, endpoint, "DOCUMENT_INTELLIGENCE_KEY"
            ),
            api_version=API_VERSION,
            connection_timeout=_CONNECT_TIMEOUT_S,
            read_timeout=settings.ingestion.parser_service_timeout_s,
            retry_total=0,  # the tries are ours: the SDK's add up beyond the limit of a call
            permit_redirects=False,  # the key would go along
        )

    modules = ("azure.ai.documentintelligence.aio", "aiohttp")
    return Connection(make, (*modules, *credential_modules(settings.ingestion.document_intelligence_key)))


class DocumentIntelligence(LayoutReader, PageReader):
    """One resource."""

    name = SERVICE.name
    suffixes = frozenset({".pdf", ".png", ".jpg", ".jpeg", ".tif", ".tiff"})

    def __init__(self, connection: "Connection[DocumentIntelligenceClient]") -> None:
        self._connection = connection

    async def read_layout(self, source: Path, filename: str, limits: CallLimits) -> Layout:
        """The file by the layout model."""
        with call_span(SERVICE, "read layout"):
            result = await self._analyze(LAYOUT_MODEL, source, limits)
        try:
            return await asyncio.to_thread(layout_of, result, SERVICE.name)
        except ValueError:
            raise not_understood(SERVICE) from None

    async def read_pages(self, source: Path, pages: Sequence[int], limits: CallLimits) -> PageTexts:
        """The words of these pages by the read model; only they are paid for."""
        with call_span(SERVICE, "read pages"):
            result = await self._analyze(READ_MODEL, source, limits, ",".join(page_ranges(pages)))
        return PageTexts(texts=page_texts(result))

    async def _analyze(
        self, model: str, source: Path, limits: CallLimits, pages: str | None = None
    ) -> AnalyzeResult:
        client = await self._connection.opened()
        deadline = Deadline(limits.timeout_s)
        analysis = await call_within(
            deadline, limits.max_retries, lambda: _submit(client, model, source, pages, deadline)
        )
        wait_s = analysis.wait_s
        while True:
            if wait_s >= deadline.remaining_s:
                raise timed_out(SERVICE)
            await asyncio.sleep(wait_s)
            found = await call_within(deadline, limits.max_retries, lambda: _poll(client, analysis, deadline))
            if isinstance(found, AnalyzeResult):
                return found
            wait_s = found


async def _submit(
    client: "DocumentIntelligenceClient", model: str, source: Path, pages: str | None, deadline: Deadline
) -> _Analysis:
    headers: dict[str, str] = {}

    def keep_headers(response: Any) -> None:
        headers.update({name.lower(): value for name, value in response.http_response.headers.items()})

    # Opened for each try: one that failed has read some of it. The transport reads it piece by piece.
    with azure_errors(SERVICE, _read_status), await asyncio.to_thread(source.open, "rb") as body:
        async with asyncio.timeout_at(deadline.at):
            await client.begin_analyze_document(
                model, body, pages=pages, polling=False, raw_response_hook=keep_headers
            )
    found = _RESULT_ID.search(headers.get("operation-location", ""))
    if found is None:
        raise not_understood(SERVICE)
    return _Analysis(model, found[1], _wait_s(headers))


async def _poll(
    client: "DocumentIntelligenceClient", analysis: _Analysis, deadline: Deadline
) -> AnalyzeResult | float:
    """The result, or the seconds to wait until the next look."""
    from azure.core.exceptions import HttpResponseError
    from azure.core.rest import HttpRequest

    request = HttpRequest(
        "GET",
        f"/documentModels/{analysis.model}/analyzeResults/{analysis.result_id}",
        params={"api-version": API_VERSION},
    )
    with azure_errors(SERVICE, _read_status):
        async with (
            asyncio.timeout_at(deadline.at),
            await client.send_request(request, stream=True) as response,
        ):
            if response.status_code != 200:
                await response.read()
                raise HttpResponseError(response=response)
            answer = await read_bounded(response.iter_bytes(), SERVICE)
            headers: Mapping[str, str] = response.headers
    try:
        operation = await asyncio.to_thread(_Operation.model_validate_json, answer)
    except ValidationError:
        raise not_understood(SERVICE) from None
    if operation.status in ("notStarted", "running"):
        return _wait_s(headers)
    if operation.status != "succeeded":
        code = operation.error.most_exact_code if operation.error else ""
        if not code or code in _SERVICE_FAULTS:
            raise failed(SERVICE, 500)
        raise cannot_read(SERVICE, code)
    if operation.result is None:
        raise not_understood(SERVICE)
    return operation.result


def _read_status(status: int, _message: str) -> GroundworkError | None:
    if status in (400, 413, 415, 422):
        return cannot_read(SERVICE, f"HTTP {status}")
    if status == 404:
        return ConfigurationError(
            "DOCUMENT_INTELLIGENCE_ENDPOINT leads to no such service.",
            "Check it; the resource must offer version 2024-11-30.",
        )
    return None


def _wait_s(headers: Mapping[str, str]) -> float:
    asked_s = retry_after_s(headers)
    return _POLL_S if asked_s is None else asked_s
