"""Client for docling-serve: uploads a file, polls the conversion task, and downloads the converted document.

docling needs gigabytes of libraries and models, so it runs as a separate service.

Source: docling-serve 1.x, `/v1/convert/file/async`, `/v1/status/poll/{task_id}`, `/v1/result/{task_id}`.
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TypeVar

from aiohttp import ClientResponse, ClientSession, ClientTimeout, FormData
from pydantic import AliasPath, Field, ValidationError

from shared.evidence.models import PageArea
from shared.ingestion.models import Layout, LayoutPiece, PieceKind
from shared.ingestion.parser_services import (
    Cell,
    LayoutReader,
    cannot_read,
    filled_rows,
    page_area,
    read_answer,
)
from shared.platform.calls import DOCLING as SERVICE
from shared.platform.calls import Deadline, call_span, call_within, error_of_status, timed_out
from shared.platform.connections import Connection
from shared.platform.errors import ConfigurationError
from shared.platform.http_client import Wire, collapse_spaces, http_errors, not_understood
from shared.platform.language_models.models import CallLimits
from shared.platform.settings import Settings

_FURNITURE = ("page_header", "page_footer")
_PARTS = ("texts", "tables", "pictures", "groups")
_MARKS = {"checkbox_selected": "☒ ", "checkbox_unselected": "☐ "}
_BULLETS = ("", "-", "*", "•", "·", "◦", "▪", "‣", "–", "—")


class Reference(Wire):
    """A JSON pointer such as "#/texts/3"."""

    ref: str = Field(alias="$ref")


class BoundingBox(Wire):
    """A box on a page, in units of the page. `coord_origin` determines whether y grows downwards or
    upwards.
    """

    left: float = Field(alias="l")
    top: float = Field(alias="t")
    right: float = Field(alias="r")
    bottom: float = Field(alias="b")
    coord_origin: str = "TOPLEFT"


class Provenance(Wire):
    """The page and box in which an item occurs."""

    page_no: int
    bbox: BoundingBox | None = None


class TableCell(Wire):
    """A table cell. Row and column indexes start at 0; their ends are exclusive."""

    row: int = Field(alias="start_row_offset_idx")
    row_end: int = Field(alias="end_row_offset_idx")
    column: int = Field(alias="start_col_offset_idx")
    column_end: int = Field(alias="end_col_offset_idx")
    text: str = ""


class TableData(Wire):
    """The size and cells of a table."""

    num_rows: int = 0
    num_cols: int = 0
    table_cells: tuple[TableCell, ...] = ()


class Item(Wire):
    """A text, table, picture or group. Fields that don't apply to its kind keep their defaults."""

    label: str = ""
    content_layer: str = "body"
    children: tuple[Reference, ...] = ()
    captions: tuple[Reference, ...] = ()
    prov: tuple[Provenance, ...] = ()
    text: str = ""
    level: int = 1
    marker: str = ""
    data: TableData | None = None

    @property
    def page_number(self) -> int | None:
        return self.prov[0].page_no if self.prov else None


class DocumentPage(Wire):
    """A page of the source file, with its size in units of the page."""

    width: float = Field(default=0, validation_alias=AliasPath("size", "width"))
    height: float = Field(default=0, validation_alias=AliasPath("size", "height"))


class DoclingDocument(Wire):
    """A converted document in docling's JSON format."""

    body: Item
    texts: tuple[Item, ...] = ()
    tables: tuple[Item, ...] = ()
    pictures: tuple[Item, ...] = ()
    groups: tuple[Item, ...] = ()
    pages: dict[str, DocumentPage] = Field(default_factory=dict)


def layout_of(document: DoclingDocument, service: str) -> Layout:
    """Convert a docling document to layout pieces in reading order, without running headers and footers.

    Raises:
        ValueError: a table has an invalid size.
    """
    return Layout(pieces=tuple(_Walk(document).pieces()), page_count=len(document.pages), service=service)


@dataclass
class _Walk:
    """Traversal of the document tree that visits each item once, even if references repeat or form cycles."""

    document: DoclingDocument
    _seen: set[str] = field(default_factory=set)

    def pieces(self) -> Iterator[LayoutPiece]:
        # Use a stack instead of recursion, because the service controls the depth of the tree.
        open_references = list(reversed(self.document.body.children))
        while open_references:
            reference = open_references.pop().ref
            item = self._item(reference)
            if item is None:
                continue
            open_references += reversed(item.children)
            if reference.startswith("#/pictures/"):
                # The children of a picture, its caption and words, were added above, so that they also become
                # text elements.
                yield self._figure(item)
            elif reference.startswith("#/tables/"):
                # Skip the children of a table except its captions, because the table already contains the
                # texts of its cells.
                captions = {caption.ref for caption in item.captions}
                self._seen |= {child.ref for child in item.children} - captions
                yield _table(item)
            elif reference.startswith("#/texts/"):
                yield from _text(item)

    def _item(self, reference: str) -> Item | None:
        if reference in self._seen:
            return None
        self._seen.add(reference)
        item = self._resolve(reference)
        return None if item is None or item.content_layer == "furniture" else item

    def _resolve(self, reference: str) -> Item | None:
        part, _, position = reference.removeprefix("#/").partition("/")
        items: tuple[Item, ...] = getattr(self.document, part) if part in _PARTS else ()
        return items[int(position)] if position.isdecimal() and int(position) < len(items) else None

    def _texts_of(self, references: tuple[Reference, ...]) -> Iterator[str]:
        for reference in references:
            item = self._resolve(reference.ref)
            if item is not None and item.text:
                yield collapse_spaces(item.text)

    def _figure(self, picture: Item) -> LayoutPiece:
        captions = {caption.ref for caption in picture.captions}
        inside = tuple(child for child in picture.children if child.ref not in captions)
        return LayoutPiece(
            kind="figure",
            text=" ".join(self._texts_of(picture.captions)),
            words="\n".join(self._texts_of(inside)),
            page_number=picture.page_number,
            area=self._area(picture),
        )

    def _area(self, picture: Item) -> PageArea | None:
        place = picture.prov[0] if picture.prov else None
        page = self.document.pages.get(str(place.page_no)) if place else None
        if place is None or place.bbox is None or page is None:
            return None
        box, height = place.bbox, page.height
        upwards = box.coord_origin == "BOTTOMLEFT"
        top, bottom = (height - box.top, height - box.bottom) if upwards else (box.top, box.bottom)
        return page_area((box.left, top, box.right, bottom), page.width, height)


def _table(table: Item) -> LayoutPiece:
    data = table.data or TableData()
    cells = (
        Cell(cell.row, cell.row_end, cell.column, cell.column_end, collapse_spaces(cell.text))
        for cell in data.table_cells
    )
    rows = filled_rows(data.num_rows, data.num_cols, cells)
    return LayoutPiece(kind="table", rows=rows, page_number=table.page_number)


def _text(item: Item) -> Iterator[LayoutPiece]:
    if item.label in _FURNITURE or not item.text.strip():
        return
    kind: PieceKind = "paragraph"
    text, level = collapse_spaces(item.text), None
    if item.label == "title":
        kind, level = "heading", 1
    elif item.label == "section_header":
        # Use docling's own Markdown levels, in which level 1 is the title.
        kind, level = "heading", min(item.level + 1, 6)
    elif item.label == "list_item":
        kind, text = "list_item", f"{'-' if item.marker.strip() in _BULLETS else item.marker.strip()} {text}"
    elif item.label == "code":
        kind, text = "code", item.text.strip("\n")
    yield LayoutPiece(
        kind=kind, text=_MARKS.get(item.label, "") + text, page_number=item.page_number, level=level
    )


_CONNECT_TIMEOUT_S = 5
# Interval between status requests (unmeasured). docling needs about one second per page.
_POLL_S = 1.0
# The task id becomes part of a URL, so only safe characters are accepted.
_TASK_ID = re.compile(r"\A[0-9A-Za-z_-]{1,100}\Z")
_UNFINISHED = ("pending", "started")
_SUCCESSES = ("success", "partial_success")
_OPTIONS = {"to_formats": "json", "image_export_mode": "placeholder", "target_type": "inbody"}


class _Task(Wire):
    task_id: str
    task_status: str


class _Converted(Wire):
    document: DoclingDocument | None = Field(validation_alias=AliasPath("document", "json_content"))
    status: str


Answer = TypeVar("Answer", bound=Wire)
Opened = Callable[[], "AbstractAsyncContextManager[ClientResponse]"]


def connect_docling(settings: Settings) -> Connection[ClientSession]:
    """Return a connection that opens an HTTP session to docling-serve on first use."""

    def make() -> ClientSession:
        if not settings.ingestion.docling_endpoint:
            raise ConfigurationError("DOCLING_ENDPOINT is missing.")
        return ClientSession(
            settings.ingestion.docling_endpoint.rstrip("/") + "/",
            headers={"X-Api-Key": settings.ingestion.docling_api_key}
            if settings.ingestion.docling_api_key
            else None,
            timeout=ClientTimeout(
                total=settings.ingestion.parser_service_timeout_s, connect=_CONNECT_TIMEOUT_S
            ),
        )

    return Connection(make)


class Docling(LayoutReader):
    """Layout reader backed by docling-serve."""

    name = SERVICE.name
    suffixes = frozenset({".pdf", ".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp"})

    def __init__(self, connection: Connection[ClientSession]) -> None:
        self._connection = connection

    async def read_layout(self, source: Path, filename: str, limits: CallLimits) -> Layout:
        """Return the layout of a file, as read by docling's standard pipeline with text recognition."""
        with call_span(SERVICE, "read layout"):
            converted = await self._convert(source, filename, limits)
        if converted.status not in _SUCCESSES or converted.document is None:
            raise cannot_read(SERVICE)
        try:
            return await asyncio.to_thread(layout_of, converted.document, SERVICE.name)
        except ValueError:
            raise not_understood(SERVICE) from None

    async def _convert(self, source: Path, filename: str, limits: CallLimits) -> _Converted:
        session = await self._connection.opened()
        deadline, retries = Deadline(limits.timeout_s), limits.max_retries
        task = await call_within(deadline, retries, lambda: _submit(session, source, filename, deadline))
        status_url, result_url = f"v1/status/poll/{task.task_id}", f"v1/result/{task.task_id}"
        while task.task_status in _UNFINISHED:
            if deadline.remaining_s <= _POLL_S:
                raise timed_out(SERVICE)
            await asyncio.sleep(_POLL_S)
            task = await call_within(deadline, retries, lambda: _get(session, status_url, _Task, deadline))
        if task.task_status not in _SUCCESSES:
            raise cannot_read(SERVICE)
        return await call_within(deadline, retries, lambda: _get(session, result_url, _Converted, deadline))


async def _submit(session: ClientSession, source: Path, filename: str, deadline: Deadline) -> _Task:
    # Reopen the file for each attempt, because a failed attempt may have read a part of it. aiohttp streams
    # the file.
    with await asyncio.to_thread(source.open, "rb") as body:
        form = FormData(_OPTIONS)
        # docling derives the format from the suffix. Don't send the rest of the name, which may be
        # confidential.
        form.add_field("files", body, filename=f"document{PurePosixPath(filename).suffix.lower()}")
        task = await _answer(
            lambda: session.post("v1/convert/file/async", data=form, allow_redirects=False), _Task, deadline
        )
    if not _TASK_ID.match(task.task_id):
        raise not_understood(SERVICE)
    return task


async def _get(session: ClientSession, url: str, kind: type[Answer], deadline: Deadline) -> Answer:
    return await _answer(lambda: session.get(url, allow_redirects=False), kind, deadline)


async def _answer(opened: Opened, kind: type[Answer], deadline: Deadline) -> Answer:
    with http_errors(SERVICE):
        async with asyncio.timeout_at(deadline.at), opened() as response:
            _check(response.status, response.headers)
            content = await read_answer(response.content.iter_any(), SERVICE)
    try:
        return await asyncio.to_thread(kind.model_validate_json, content)
    except ValidationError:
        raise not_understood(SERVICE) from None


def _check(status: int, headers: Mapping[str, str]) -> None:
    if status == 200:
        return
    if status == 404:
        raise ConfigurationError(
            "DOCLING_ENDPOINT is not the URL of a docling-serve instance.",
            "Check the setting. Version 1 of docling-serve is required.",
        )
    if status in (400, 413, 415, 422):
        raise cannot_read(SERVICE, f"HTTP {status}")
    raise error_of_status(SERVICE, status, headers)
