"""Client for Azure Document Intelligence: reads the layout of a file, or the text of selected pages.

The SDK sends the file, but this module polls for the result: the SDK poller fails at the first 429, accepts
responses of any size, and sends the key to any URL that the service returns.
"""

import asyncio
import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from azure.core.exceptions import HttpResponseError
from azure.core.rest import HttpRequest
from pydantic import AliasPath, Field, ValidationError

from shared.ingestion.models import Layout, LayoutPiece, PageTexts
from shared.ingestion.parser_services import (
    Cell,
    LayoutReader,
    PageReader,
    cannot_read,
    filled_rows,
    page_area,
    read_answer,
)
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
from shared.platform.http_client import Wire, collapse_spaces, not_understood
from shared.platform.language_models.models import CallLimits
from shared.platform.loading import load
from shared.platform.settings import Settings

if TYPE_CHECKING:
    from azure.ai.documentintelligence.aio import DocumentIntelligenceClient


_FURNITURE = ("pageHeader", "pageFooter", "pageNumber")
_MARKS = ((":selected:", "☒"), (":unselected:", "☐"))
_DEFAULT_LEVEL = 2


class Span(Wire):
    """A range of the document's full text: offset and length in characters."""

    offset: int
    length: int


class BoundingRegion(Wire):
    """A polygon on a page, as alternating x and y values in units of the page. Empty means the whole page."""

    page_number: int = Field(alias="pageNumber")
    polygon: tuple[float, ...] = ()


class Placed(Wire):
    """Base class of paragraphs, tables and figures, which have a position in the document."""

    spans: tuple[Span, ...] = ()
    regions: tuple[BoundingRegion, ...] = Field(default=(), alias="boundingRegions")

    @property
    def offset(self) -> int:
        return min((span.offset for span in self.spans), default=0)

    @property
    def page_number(self) -> int | None:
        return self.regions[0].page_number if self.regions else None


class Paragraph(Placed):
    """A paragraph and its role, such as "title" or "pageHeader"."""

    content: str
    role: str | None = None


class TableCell(Placed):
    """A table cell. Row and column indexes start at 0."""

    row: int = Field(alias="rowIndex")
    column: int = Field(alias="columnIndex")
    row_span: int = Field(default=1, alias="rowSpan")
    column_span: int = Field(default=1, alias="columnSpan")
    content: str = ""


class Table(Placed):
    """A table with its size and cells."""

    row_count: int = Field(alias="rowCount")
    column_count: int = Field(alias="columnCount")
    cells: tuple[TableCell, ...]


class FoundFigure(Placed):
    """A figure and references to the paragraphs inside it, such as "/paragraphs/5"."""

    caption: str = Field(default="", validation_alias=AliasPath("caption", "content"))
    elements: tuple[str, ...] = ()


class Section(Wire):
    """A section of the document, as references to its paragraphs, tables, figures and subsections."""

    elements: tuple[str, ...] = ()


class Line(Wire):
    """A line of text as printed on a page."""

    content: str


class Page(Wire):
    """A page of the source file: its size and lines of text."""

    page_number: int = Field(alias="pageNumber")
    width: float = 0
    height: float = 0
    lines: tuple[Line, ...] = ()


class AnalyzeResult(Wire):
    """The complete result of an analysis by the layout model or the read model."""

    pages: tuple[Page, ...]
    paragraphs: tuple[Paragraph, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[FoundFigure, ...] = ()
    sections: tuple[Section, ...] = ()


def page_texts(result: AnalyzeResult) -> dict[int, str]:
    """Return the text of each page, keyed by page number, from a result of the read model."""
    by_page: dict[int, list[str]] = {page.page_number: [] for page in result.pages}
    for paragraph in result.paragraphs:
        if paragraph.page_number in by_page:
            by_page[paragraph.page_number].append(_text(paragraph.content))
    for page in result.pages:
        if not by_page[page.page_number]:
            by_page[page.page_number] = [_text("\n".join(line.content for line in page.lines))]
    return {number: "\n\n".join(filter(None, texts)) for number, texts in by_page.items()}


def layout_of(result: AnalyzeResult, service: str) -> Layout:
    """Convert an analysis to layout pieces in reading order, without running headers, footers and page
    numbers.

    Raises:
        ValueError: a table has an invalid size.
    """
    levels = _heading_levels(result.sections)
    spans = (span for table in result.tables for cell in table.cells for span in cell.spans)
    in_cells = sorted((span.offset, span.offset + span.length) for span in spans if span.length > 0)
    placed: list[tuple[int, LayoutPiece]] = []
    for position, paragraph in enumerate(result.paragraphs):
        before = bisect_right(in_cells, (paragraph.offset, sys.maxsize))
        is_in_cell = bool(paragraph.spans and before) and paragraph.offset < in_cells[before - 1][1]
        if paragraph.role not in _FURNITURE and not is_in_cell:
            placed.append((paragraph.offset, _paragraph_piece(paragraph, levels.get(position))))
    placed += [(table.offset, _table_piece(table)) for table in result.tables]
    pages = {page.page_number: page for page in result.pages}
    placed += [(figure.offset, _figure_piece(figure, result.paragraphs, pages)) for figure in result.figures]
    placed.sort(key=lambda pair: pair[0])
    pieces = tuple(piece for _, piece in placed if piece.kind in ("figure", "table") or piece.text)
    return Layout(pieces=pieces, page_count=len(result.pages), service=service)


def _heading_levels(sections: Sequence[Section]) -> dict[int, int]:
    """Return the depth of the section that each paragraph belongs to, keyed by paragraph index. The document
    itself has depth 1; depths are capped at 6.
    """
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
    text, page_number = _text(paragraph.content), paragraph.page_number
    if paragraph.role not in ("title", "sectionHeading"):
        return LayoutPiece(kind="paragraph", text=text, page_number=page_number)
    level = 1 if paragraph.role == "title" else level or _DEFAULT_LEVEL
    return LayoutPiece(kind="heading", text=text, page_number=page_number, level=level)


def _table_piece(table: Table) -> LayoutPiece:
    cells = (
        Cell(
            cell.row,
            cell.row + cell.row_span,
            cell.column,
            cell.column + cell.column_span,
            _text(cell.content),
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
    area, page = None, pages.get(figure.page_number or 0)
    if page is not None:
        # Without a polygon, the figure covers the whole page.
        polygon = figure.regions[0].polygon or (0, 0, page.width, page.height)
        xs, ys = polygon[0::2], polygon[1::2]
        area = page_area((min(xs), min(ys), max(xs), max(ys)), page.width, page.height)
    return LayoutPiece(
        kind="figure",
        text=_text(figure.caption),
        words="\n".join(_text(content) for content in inside),
        page_number=figure.page_number,
        area=area,
    )


def _text(content: str) -> str:
    """Collapse white space within lines, drop empty lines, and replace selection marks with symbols."""
    for word, sign in _MARKS:
        content = content.replace(word, sign)
    lines = (collapse_spaces(line) for line in content.splitlines())
    return "\n".join(line for line in lines if line)


API_VERSION = "2024-11-30"
LAYOUT_MODEL = "prebuilt-layout"
READ_MODEL = "prebuilt-read"
_CONNECT_TIMEOUT_S = 5
# Interval between status requests if the service sends no Retry-After header. Its documentation advises 1 to
# 2 s.
_POLL_S = 1.0
_RESULT_ID = re.compile(r"/analyzeResults/([0-9A-Za-z-]{1,100})(?:\?|\Z)")
_CODE = re.compile(r"\A[A-Za-z0-9]{1,60}\Z")
_SERVICE_FAULTS = ("InternalServerError", "ServiceUnavailable", "Timeout")


class _Error(Wire):
    code: str = ""
    inner_code: str = Field(default="", validation_alias=AliasPath("innererror", "code"))


class _Operation(Wire):
    """The status of an analysis: notStarted, running, succeeded, failed or canceled."""

    status: str
    error: _Error | None = None
    result: AnalyzeResult | None = Field(default=None, alias="analyzeResult")


_SDK = "azure.ai.documentintelligence.aio"


def connect_document_intelligence(
    settings: Settings, credentials: Credentials
) -> "Connection[DocumentIntelligenceClient]":
    """Return a connection that creates the Document Intelligence client on first use."""

    def make() -> "DocumentIntelligenceClient":
        endpoint = settings.ingestion.document_intelligence_endpoint
        if not endpoint:
            raise ConfigurationError("DOCUMENT_INTELLIGENCE_ENDPOINT is missing.")
        client: DocumentIntelligenceClient = load(_SDK, "DocumentIntelligenceClient")(
            endpoint.rstrip("/"),
            credentials.key_or_identity(
                settings.ingestion.document_intelligence_key, endpoint, "DOCUMENT_INTELLIGENCE_KEY"
            ),
            api_version=API_VERSION,
            connection_timeout=_CONNECT_TIMEOUT_S,
            read_timeout=settings.ingestion.parser_service_timeout_s,
            # Disable SDK retries, which would exceed the time limit of a call.
            retry_total=0,
            # Don't follow redirects, which would send the key to another host.
            permit_redirects=False,
        )
        return client

    return Connection(make, (_SDK, *credential_modules(settings.ingestion.document_intelligence_key)))


class DocumentIntelligence(LayoutReader, PageReader):
    """Layout and page reader backed by one Document Intelligence resource."""

    name = SERVICE.name
    suffixes = frozenset({".pdf", ".png", ".jpg", ".jpeg", ".tif", ".tiff"})

    def __init__(self, connection: "Connection[DocumentIntelligenceClient]") -> None:
        self._connection = connection

    async def read_layout(self, source: Path, filename: str, limits: CallLimits) -> Layout:
        """Return the layout of a whole file, as read by the layout model."""
        with call_span(SERVICE, "read layout"):
            result = await self._analyze(LAYOUT_MODEL, source, limits)
        try:
            return await asyncio.to_thread(layout_of, result, SERVICE.name)
        except ValueError:
            raise not_understood(SERVICE) from None

    async def read_pages(self, source: Path, pages: Sequence[int], limits: CallLimits) -> PageTexts:
        """Read the text of the given pages with the read model. Only these pages are billed."""
        with call_span(SERVICE, "read pages"):
            result = await self._analyze(READ_MODEL, source, limits, ",".join(page_ranges(pages)))
        return PageTexts(texts=page_texts(result))

    async def _analyze(
        self, model: str, source: Path, limits: CallLimits, pages: str | None = None
    ) -> AnalyzeResult:
        client = await self._connection.opened()
        deadline, retries = Deadline(limits.timeout_s), limits.max_retries
        result_path, wait_s = await call_within(
            deadline, retries, lambda: _submit(client, model, source, pages, deadline)
        )
        while True:
            if wait_s >= deadline.remaining_s:
                raise timed_out(SERVICE)
            await asyncio.sleep(wait_s)
            answer = await call_within(deadline, retries, lambda: _poll(client, result_path, deadline))
            if isinstance(answer, AnalyzeResult):
                return answer
            wait_s = answer


async def _submit(
    client: "DocumentIntelligenceClient", model: str, source: Path, pages: str | None, deadline: Deadline
) -> tuple[str, float]:
    """Start an analysis. Return the URL path of its result, and the seconds to wait before the first poll."""
    headers: dict[str, str] = {}

    def keep_headers(response: Any) -> None:
        headers.update({name.lower(): value for name, value in response.http_response.headers.items()})

    # Reopen the file for each attempt, because a failed attempt may have read a part of it. The file is
    # streamed.
    with azure_errors(SERVICE, _read_status), await asyncio.to_thread(source.open, "rb") as body:
        async with asyncio.timeout_at(deadline.at):
            await client.begin_analyze_document(
                model, body, pages=pages, polling=False, raw_response_hook=keep_headers
            )
    match = _RESULT_ID.search(headers.get("operation-location", ""))
    if match is None:
        raise not_understood(SERVICE)
    return f"/documentModels/{model}/analyzeResults/{match[1]}", _wait_s(headers)


async def _poll(
    client: "DocumentIntelligenceClient", result_path: str, deadline: Deadline
) -> AnalyzeResult | float:
    """Return the result of the analysis, or if it is still running, the seconds until the next poll."""
    request = HttpRequest("GET", result_path, params={"api-version": API_VERSION})
    with azure_errors(SERVICE, _read_status):
        async with (
            asyncio.timeout_at(deadline.at),
            await client.send_request(request, stream=True) as response,
        ):
            if response.status_code != 200:
                await response.read()
                raise HttpResponseError(response=response)
            answer = await read_answer(response.iter_bytes(), SERVICE)
            headers: Mapping[str, str] = response.headers
    try:
        operation = await asyncio.to_thread(_Operation.model_validate_json, answer)
    except ValidationError:
        raise not_understood(SERVICE) from None
    if operation.status in ("notStarted", "running"):
        return _wait_s(headers)
    if operation.status != "succeeded":
        code = (operation.error.inner_code or operation.error.code) if operation.error else ""
        # Pass on only an error code: the service's message may quote the document.
        if not _CODE.match(code) or code in _SERVICE_FAULTS:
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
            "DOCUMENT_INTELLIGENCE_ENDPOINT is not the URL of a Document Intelligence resource.",
            "Check the setting. The resource must support version 2024-11-30.",
        )
    return None


def _wait_s(headers: Mapping[str, str]) -> float:
    asked_s = retry_after_s(headers)
    return _POLL_S if asked_s is None else asked_s
