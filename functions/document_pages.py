"""GET /api/documents/{doc_id}/pages/… and …/readable: documents as people read them, with what was cited."""

import asyncio
from typing import TYPE_CHECKING

import azure.functions as func

from functions.accepting import preferred
from functions.byte_range import is_known
from functions.document_material import Reader, citation_query, material_of, reader_of, sheet_of
from functions.http_io import Request, Response, endpoint, json_response, picture_response, read_query

if TYPE_CHECKING:
    from shared.core.document_views import Material
    from shared.models.page_views import PageSheet, PageView, ViewedPicture

blueprint = func.Blueprint()

_HTML, _JSON, _MARKDOWN = "text/html", "application/json", "text/markdown"


@blueprint.route(
    route="documents/{doc_id}/pages/{page}", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS
)
@endpoint
async def get_document_page(req: Request) -> Response:
    """One page: its picture with the cited passage marked, and its text. HTML, or JSON if accepted."""
    from shared.core.document_views import page_elements
    from shared.core.page_html import page_html
    from shared.core.reading_parts import page_number_of
    from shared.models.page_views import ViewedPicture

    reader = await reader_of(req)
    query = citation_query(req)
    number = page_number_of(str(req.path_params["page"]))
    material, state = await material_of(reader, query)
    elements = page_elements(material, number)
    sheet, has_picture = await sheet_of(material, state, number, reader.services)
    kind = preferred(req.headers.get("accept"), (_HTML, _JSON))
    picture = ViewedPicture(path=f"/api/documents/{reader.doc_id}/pages/{number}/image")
    if kind == _JSON:
        material = await _with_signed(material, material.figure_paths(elements), reader)
        picture = await _signed_picture(picture, state.content_hash, number, sheet, reader)
    view = await _page_view(material, number, picture if has_picture else None, sheet)
    return json_response(view, headers=_VARYING) if kind == _JSON else _html(page_html(view))


@blueprint.route(
    route="documents/{doc_id}/pages/{page}/image", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS
)
@endpoint
async def get_document_page_image(req: Request) -> Response:
    """The picture of a PDF's page, drawn when it is asked for first; 304 when the caller has it already."""
    from shared.agents.page_view import readable_document
    from shared.core.reading_parts import page_number_of
    from shared.errors import NotFoundError
    from shared.ingestion.page_pictures import has_pictures, page_picture
    from shared.models.names import WORK

    reader = await reader_of(req)
    number = page_number_of(str(req.path_params["page"]))
    found = await readable_document(reader.doc_id, reader.user, reader.services)
    if not has_pictures(found.state.filename):
        raise NotFoundError("Pages of such a file have no picture.", "Only those of PDFs have one.")
    blob = await page_picture(found.state, number, reader.services)
    if is_known(req.headers.get("if-none-match"), blob.etag):
        headers = {"ETag": f'"{blob.etag}"', "Cache-Control": "private, no-cache"}
        return Response(status_code=304, headers=headers)
    return await picture_response(reader.services.blobs.chunks(WORK, blob.name, etag=blob.etag), blob)


@blueprint.route(route="documents/{doc_id}/readable", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
@endpoint
async def get_readable_document(req: Request) -> Response:
    """The document's text, a part at a time. HTML, or Markdown or JSON if that is accepted."""
    # Imported when used: a worker that starts does not wait for it.
    from shared.core.document_views import readable_part, readable_view
    from shared.core.page_html import readable_html
    from shared.core.reading_markdown import readable_markdown
    from shared.models.queries import ReadableQuery

    reader = await reader_of(req)
    query = read_query(req, ReadableQuery)
    material, _ = await material_of(reader, query)
    kind = preferred(req.headers.get("accept"), (_HTML, _JSON, _MARKDOWN))
    if kind == _JSON:
        shown = await asyncio.to_thread(readable_part, material, query)
        material = await _with_signed(material, material.figure_paths(shown), reader)
    # In a thread: to find a passage in a long document takes longer than others should wait.
    view = await asyncio.to_thread(readable_view, material, query)
    if kind == _JSON:
        return json_response(view, headers=_VARYING)
    if kind == _MARKDOWN:
        headers = {**_VARYING, "X-Content-Type-Options": "nosniff"}
        return Response(readable_markdown(view), media_type=_MARKDOWN, headers=_next(headers, view.cursor))
    return _html(readable_html(view))


_VARYING = {"Vary": "Accept", "Cache-Control": "private, no-store"}


async def _page_view(
    material: "Material", number: int, picture: "ViewedPicture | None", sheet: "PageSheet | None"
) -> "PageView":
    from shared.core.document_views import page_view

    return await asyncio.to_thread(page_view, material, number, picture, sheet)


def _html(page: str) -> Response:
    from shared.core.page_style import POLICY

    headers = {
        **_VARYING,
        "Content-Security-Policy": POLICY,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(page, media_type=_HTML, headers=headers)


def _next(headers: dict[str, str], cursor: str | None) -> dict[str, str]:
    """Markdown has no field for a cursor: it stands in a link. Source: RFC 8288."""
    return {**headers, "Link": f'<?cursor={cursor}>; rel="next"'} if cursor else headers


async def _with_signed(material: "Material", paths: list[str], reader: Reader) -> "Material":
    """Whoever takes JSON shows pictures in a place of their own, where an address must bring its right."""
    from shared.agents.figures import signed_urls
    from shared.core.figure_links import blob_name_of_path

    names = {path: blob_name_of_path(path) or "" for path in paths}
    signed = await signed_urls(filter(None, names.values()), reader.services)
    return material.with_signed({path: signed[name].url for path, name in names.items() if name in signed})


async def _signed_picture(
    picture: "ViewedPicture", content_hash: str, number: int, sheet: "PageSheet | None", reader: Reader
) -> "ViewedPicture":
    from shared.agents.figures import URL_LIFETIME_S
    from shared.errors import GroundworkError
    from shared.ingestion.page_files import picture_name
    from shared.models.names import WORK

    if sheet is None:
        return picture
    name = picture_name(reader.doc_id, content_hash, number)
    try:
        signed = await reader.services.blobs.read_url(WORK, name, URL_LIFETIME_S)
    except GroundworkError:
        return picture
    return picture.model_copy(update={"image_url": signed.url})
