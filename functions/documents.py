"""GET /api/documents: which documents there are, how far their ingestion is, their content and figures."""

from typing import TYPE_CHECKING

import azure.functions as func

from functions.byte_range import byte_span, holds, is_known
from functions.document_material import note_opened, reader_of
from functions.etags import PASSING, tagged_response
from functions.http_io import (
    Request,
    Response,
    endpoint,
    file_response,
    json_response,
    picture_response,
    read_query,
)
from functions.identity import caller_of
from functions.ready import ready_services

if TYPE_CHECKING:
    from shared.models.search import Filters

blueprint = func.Blueprint()


@blueprint.route(route="documents", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
@endpoint
async def list_documents(req: Request) -> Response:
    """The caller's documents, narrowed by metadata given as query parameters, a page at a time."""
    # Imported when used: a worker that starts does not wait for it.
    from shared.agents.documents import list_documents as listed
    from shared.models.queries import DocumentsQuery

    user = await caller_of(req)
    query = read_query(req, DocumentsQuery)
    metadata = query.model_dump(exclude={"limit", "cursor"})
    filters: Filters = {name: text for name, text in metadata.items() if text}
    return json_response(await listed(user, await ready_services(), filters, query.limit, query.cursor))


@blueprint.route(route="documents/{doc_id}", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
@endpoint
async def get_document(req: Request) -> Response:
    """One document with its metadata, or with how far its ingestion is."""
    from shared.agents.documents import get_document as found

    user = await caller_of(req)
    detail = await found(req.path_params["doc_id"], user, await ready_services())
    return tagged_response(req, detail, PASSING)


@blueprint.route(route="documents/{doc_id}/content", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
@endpoint
async def get_document_content(req: Request) -> Response:
    """The file itself, as it was dropped in, for whoever may read it; one `Range` of bytes is honoured."""
    from shared.agents.documents import readable_blob
    from shared.models.names import DOCUMENTS
    from shared.models.queries import CitationQuery

    reader = await reader_of(req)
    query = read_query(req, CitationQuery)
    services = reader.services
    blob = await readable_blob(reader.doc_id, reader.user, services)
    note_opened(reader, query)
    wanted = req.headers.get("range") if holds(req.headers.get("if-range"), blob.etag) else None
    span = byte_span(wanted, blob.size_bytes)
    first, length = (span.first, span.length) if span else (0, None)
    parts = services.blobs.chunks(DOCUMENTS, blob.name, etag=blob.etag, first=first, length=length)
    return await file_response(parts, blob, span)


@blueprint.route(
    route="documents/{doc_id}/figures/{name}", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS
)
@endpoint
async def get_document_figure(req: Request) -> Response:
    """A picture of a document, for whoever may read the document; 304 when the caller has it already."""
    from shared.agents.figures import readable_figure
    from shared.models.names import FIGURES

    user = await caller_of(req)
    services = await ready_services()
    blob = await readable_figure(req.path_params["doc_id"], req.path_params["name"], user, services)
    if is_known(req.headers.get("if-none-match"), blob.etag):
        return Response(
            status_code=304, headers={"ETag": f'"{blob.etag}"', "Cache-Control": "private, no-cache"}
        )
    return await picture_response(services.blobs.chunks(FIGURES, blob.name, etag=blob.etag), blob)
