"""Routes that show documents to human readers, as single pages or as continuous text, with the cited passage
highlighted.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from functions.http.api_route import ApiRoute
from functions.http.conditions import preferred_type
from functions.http.contracts import HTML, JSON, MARKDOWN, PNG, WEBP, Reply, contract
from functions.http.models import CachedHeaders
from functions.http.readers import BrowsingReader, KnownReader, Reader, cited_by
from functions.http.requests import count_call, note_act
from functions.http.responses import json_response, picture_response
from shared.access.models import UserContext
from shared.access.personal_places import PersonalPlaces
from shared.documents import figure_store, page_files, page_models
from shared.documents.figures import URL_LIFETIME_S, signed_urls
from shared.documents.lookup import readable_document
from shared.documents.models import Element
from shared.documents.page_files import get_parts
from shared.documents.page_html import POLICY, page_html, page_markdown, readable_html, readable_markdown
from shared.documents.page_models import (
    CitationQuery,
    PageQuery,
    PageSheet,
    PictureQuery,
    ReadableQuery,
    ViewedElement,
    ViewedPicture,
)
from shared.documents.page_views import (
    Material,
    elements_to_search,
    page_number_of,
    page_view,
    passage_places,
    readable_view,
    shown_parts,
    starting_part,
)
from shared.documents.reading import parts_to_search
from shared.documents.state import DocumentState
from shared.evidence.figures import name_of_path
from shared.evidence.quote_places import Place
from shared.ingestion.page_pictures import (
    has_pictures,
    known_sheet,
    narrow_picture,
    page_picture,
    page_sheet,
    picture_name,
)
from shared.ingestion.services import IngestionServices
from shared.platform.concurrency import run_together
from shared.platform.errors import (
    BadDocumentError,
    ConflictError,
    DependencyError,
    GroundworkError,
    NotFoundError,
    TooManyRequestsError,
)
from shared.platform.names import WORK
from shared.platform.telemetry import get_logger

PageName = Annotated[
    str,
    Path(
        description="Page number, counted from 1.",
        # The pattern is documented but not enforced here, so that invalid page numbers get a 404 instead of a
        # 422.
        json_schema_extra={"pattern": "^[1-9][0-9]{0,6}$"},
    ),
]
router = APIRouter(tags=["Documents"], route_class=ApiRoute)
_VARYING = {"Vary": "Accept", "Cache-Control": "private, no-store"}


@dataclass(frozen=True)
class _Opened:
    """A document that the reader may read, with its outline and the requested citation."""

    reader: Reader
    material: Material
    state: DocumentState

    async def elements(self, parts: range) -> tuple[Element, ...]:
        """Read the elements in a range of parts of the document. Raises `NotFoundError` or `ConflictError` if
        this version of the document no longer exists.
        """
        return tuple([piece async for pieces in self._parts(parts) for piece in pieces])

    async def places(self) -> list[Place]:
        """Return the positions of the cited passage. To find them, the parts of the document that may contain
        the passage are read one at a time.
        """

        outline, cited = self.material.outline, self.material.cited
        if cited is None:
            return []
        parts = parts_to_search(outline, cited.citation)
        index = outline.parts[parts.start].start if parts else 0
        searched: list[tuple[int, str]] = []
        async for pieces in self._parts(parts):
            searched += elements_to_search(pieces, index, cited.citation)
            index += len(pieces)
        # Finding a passage in a long document would block the event loop, so it runs in a thread.
        places = await asyncio.to_thread(passage_places, [text for _, text in searched], cited)
        return [Place(searched[place.index][0], place.start, place.end) for place in places]

    def _parts(self, parts: range) -> AsyncIterator[tuple[Element, ...]]:
        page_parts = self.material.outline.parts[parts.start : parts.stop]
        return get_parts(self.reader.services.blobs, self.state.folder, page_parts)


async def _open(reader: Reader, query: CitationQuery) -> _Opened:
    """Check that the reader may read the document, and load its outline, captions and requested citation.

    Raises:
        DocumentNotFoundError: the document doesn't exist, or the caller may not read it.
    """
    blobs = reader.services.blobs
    document = await readable_document(reader.doc_id, reader.user, reader.services)
    outline, captions, cited = await run_together(
        page_files.get_outline(blobs, document.state.folder),
        figure_store.captions(blobs, document.state.folder),
        cited_by(reader, query),
    )
    if outline.page_count is None:
        outline = outline.model_copy(update={"page_count": document.state.page_count})
    return _Opened(reader, Material(document.record, outline, captions=captions, cited=cited), document.state)


@cache
def _views() -> PersonalPlaces:
    # Browsers open up to six connections per host, so six requests of a reader may wait for two places.
    return PersonalPlaces(2, max_waiting=6)


@asynccontextmanager
async def _viewing(request: Request, reader: Reader) -> AsyncIterator[None]:
    """Count a page view as a call, and limit how many views of the reader are processed at the same time.

    Raises:
        TooManyRequestsError: the rate limit is reached, or too many views of this reader are waiting.
    """
    await count_call(request, reader.user, reader.services)
    async with _views().take(reader.user.user_id):
        yield


async def sheet_of(
    material: Material,
    state: DocumentState,
    page_number: int,
    user: UserContext,
    services: IngestionServices,
) -> tuple[PageSheet | None, bool]:
    """Return the sheet of a page (picture size and words), and whether the page has a picture. The
    sheet is None if it isn't known.

    The sheet of a cited page is rendered here. Otherwise the request for the picture renders it.
    """
    if not has_pictures(state.filename):
        return None, False
    cited = material.cited
    if cited is None or cited.citation.page_number != page_number:
        return await known_sheet(state, page_number, services.blobs), True
    try:
        return await page_sheet(state, page_number, user, services), True
    except (BadDocumentError, NotFoundError, ConflictError, DependencyError, TooManyRequestsError) as failed:
        get_logger().warning("page.render_failed", error_type=failed.code)
        # After a conflict or an outage, the later request for the picture may still succeed.
        return None, isinstance(failed, ConflictError | DependencyError)


@router.get(
    "/api/documents/{doc_id}/pages/{page}",
    **contract(
        "A page as picture and text, with the cited passage marked",
        Reply(200, "The page.", ((HTML, None), (JSON, page_models.PageView), (MARKDOWN, None))),
    ),
)
async def get_document_page(
    req: Request, reader: BrowsingReader, page: PageName, query: Annotated[PageQuery, Query()]
) -> Response:
    """Return the picture and text of a page as HTML or JSON, with the cited passage highlighted, or its text
    as Markdown.
    """
    number = page_number_of(page)
    async with _viewing(req, reader):
        opened = await _open(reader, query)
        elements = await opened.elements(shown_parts(opened.material.outline, number))
        material, state = replace(opened.material, elements=elements), opened.state
        await note_act(req, reader.user, reader.services, "page", reader.doc_id)
        sheet, has_picture = await sheet_of(material, state, number, reader.user, reader.services)
        picture = ViewedPicture(path=f"/api/documents/{reader.doc_id}/pages/{number}/image")
        view = await asyncio.to_thread(page_view, material, number, picture if has_picture else None, sheet)
    kind = preferred_type(req.headers.get("accept"), (HTML, JSON, MARKDOWN))
    if kind == HTML:
        return _html(page_html(view))
    if kind == MARKDOWN:
        return Response(page_markdown(view), media_type=MARKDOWN, headers=_VARYING)
    signed: dict[str, object] = {"elements": await _with_signed(view.elements, reader)}
    if view.picture and sheet:
        picture = await _signed_picture(view.picture, state, number, reader)
        words = sheet.words if query.words else ()
        signed["picture"] = picture.model_copy(update={"words": words})
    return json_response(view.model_copy(update=signed), headers=_VARYING)


@router.get(
    "/api/documents/{doc_id}/pages/{page}/image",
    **contract(
        "The picture of a page",
        Reply(200, "The picture.", ((PNG, None), (WEBP, None)), ("ETag",)),
        errors=(ConflictError, BadDocumentError),
        headers=CachedHeaders,
    ),
)
async def get_document_page_image(
    req: Request, reader: KnownReader, page: PageName, query: Annotated[PictureQuery, Query()]
) -> Response:
    """Return the picture of a PDF page, rendered on the first request, or 304 if the caller already has
    it.
    """
    number = page_number_of(page)
    document = await readable_document(reader.doc_id, reader.user, reader.services)
    if not has_pictures(document.state.filename):
        raise NotFoundError("Page pictures exist only for PDFs.", "Read the page as text instead.")
    blob = await page_picture(document.state, number, reader.user, reader.services)
    await note_act(req, reader.user, reader.services, "page", reader.doc_id)
    media_type = "image/png"
    if narrow := await narrow_picture(document.state, number, query.width, reader.services):
        blob, media_type = narrow, "image/webp"
    parts = reader.services.blobs.chunks(WORK, blob.name, etag=blob.etag)
    return await picture_response(req, parts, blob, media_type)


@router.get(
    "/api/documents/{doc_id}/readable",
    **contract(
        "The complete text, in parts",
        Reply(
            200, "One part of the text.", ((HTML, None), (JSON, page_models.ReadableView), (MARKDOWN, None))
        ),
    ),
)
async def get_readable_document(
    req: Request, reader: BrowsingReader, query: Annotated[ReadableQuery, Query()]
) -> Response:
    """Return one part of the continuous text of a document as HTML, Markdown or JSON."""
    async with _viewing(req, reader):
        opened = await _open(reader, query)
        await note_act(req, reader.user, reader.services, "page", reader.doc_id)
        places = await opened.places()
        number = starting_part(opened.material.outline, query, places)
        elements = await opened.elements(range(number, number + 1))
        view = readable_view(replace(opened.material, elements=elements), number, places)
    kind = preferred_type(req.headers.get("accept"), (HTML, JSON, MARKDOWN))
    if kind == JSON:
        signed = await _with_signed(view.elements, reader)
        return json_response(view.model_copy(update={"elements": signed}), headers=_VARYING)
    if kind == MARKDOWN:
        # Markdown has no field for a cursor, so a Link header (RFC 8288) points to the next part.
        link = {"Link": f'<?cursor={view.cursor}>; rel="next"'} if view.cursor else {}
        return Response(readable_markdown(view), media_type=MARKDOWN, headers={**_VARYING, **link})
    return _html(readable_html(view))


def _html(page: str) -> Response:
    headers = {
        **_VARYING,
        "Content-Security-Policy": POLICY,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(page, media_type=HTML, headers=headers)


async def _with_signed(elements: tuple[ViewedElement, ...], reader: Reader) -> tuple[ViewedElement, ...]:
    """Replace picture addresses in the elements with signed URLs, so that clients of the JSON view can show
    the pictures on other pages.
    """
    names = {one.figure.path: name_of_path(one.figure.path) for one in elements if one.figure}
    signed = await signed_urls(filter(None, names.values()), reader.services)

    def addressed(element: ViewedElement) -> ViewedElement:
        address = signed.get(names[element.figure.path] or "") if element.figure else None
        if element.figure is None or address is None:
            return element
        figure = element.figure.model_copy(update={"image_url": address.url})
        return element.model_copy(update={"figure": figure})

    return tuple(map(addressed, elements))


async def _signed_picture(
    picture: ViewedPicture, state: DocumentState, number: int, reader: Reader
) -> ViewedPicture:
    name = picture_name(state, number)
    try:
        signed = await reader.services.blobs.read_url(WORK, name, URL_LIFETIME_S)
    except GroundworkError:
        return picture
    return picture.model_copy(update={"image_url": signed.url})
