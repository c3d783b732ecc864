"""Routes that list, read, correct, share, reingest and delete documents."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import Field

from functions.http.api_route import ApiRoute
from functions.http.conditions import PASSING, byte_span, etag_of, holds, is_conditional, require_match
from functions.http.contracts import BYTES, PDF, PNG, Reply, contract, json_reply
from functions.http.models import CachedHeaders, DocId, IfMatchHeaders, MetadataQuery, Page
from functions.http.readers import KnownReader, note_opened, with_own_files
from functions.http.requests import Caller, Durable, Ready, count_call, note_act, note_list
from functions.http.responses import file_response, json_response, picture_response, tagged_response
from functions.ingest import start_ingestions
from shared.access.access_lists import with_ids
from shared.access.audit_trail import access_action
from shared.access.daily_use import SENDING
from shared.access.models import UserContext
from shared.documents import listing, lookup
from shared.documents.figures import readable_figure
from shared.documents.listing import ListCriteria, count_documents, find_documents, sorted_documents
from shared.documents.lookup import get_own_document, readable_blob
from shared.documents.page_models import CitationQuery
from shared.documents.requests import AccessChange, MetadataCorrection
from shared.documents.state import DocumentState
from shared.documents.views import DocumentDeleting, DocumentDetail, DocumentFacets, DocumentList
from shared.ingestion import changes
from shared.ingestion.changes import changeable, correct, corrections_of, delete, try_again
from shared.platform.errors import ConflictError, InvalidQueryError, RangeError
from shared.platform.models import Model
from shared.platform.names import DOCUMENTS, WORK
from shared.retrieval.documents import Match
from shared.wiring import Services

# The cursor contains a blob name. The longest one, 1,024 characters of three bytes each, results in a cursor
# of fewer than 4,300 characters. The limit must stay below the 8,192 bytes that the Functions host accepts as
# a request line (MaxRequestLineSize of Kestrel).
_MAX_CURSOR_CHARS = 6000


_MATCH = "Whether documents must match all words of `q`, or any. The last one may be incomplete with `all`."


class FacetsQuery(MetadataQuery):
    """Query parameters that select which documents are counted."""

    q: str = Field(
        default="", max_length=500, description="Words to search for. Only matching documents are counted."
    )
    match: Match = Field(default="any", description=_MATCH)


class DocumentsQuery(MetadataQuery):
    """Query parameters of GET /api/documents."""

    q: str = Field(
        default="",
        max_length=500,
        description="Words to search for in names, tags, people and summaries. The best matches come first.",
    )
    match: Match = Field(default="any", description=_MATCH)
    status: Literal["", "working", "failed", "ready"] = Field(
        default="", description="Return only documents whose ingestion is in progress, failed or complete."
    )
    sort: Literal["", "title", "filename", "document_type", "upload_date", "document_date", "page_count"] = (
        Field(
            default="",
            description="Field by which the documents are sorted. Ignored if `q` or `status` is set.",
        )
    )
    limit: Page = Field(default=100, description="Maximum number of documents per page.")
    cursor: str = Field(
        default="",
        max_length=_MAX_CURSOR_CHARS,
        description="The value of `cursor` in the previous page, unchanged.",
    )


class FileHeaders(Model):
    """Request headers for downloading part of a file."""

    range: str = Field(default="", alias="Range", description="A single byte range, such as `bytes=0-1023`.")
    if_range: str = Field(
        default="",
        alias="If-Range",
        description="ETag of the partially downloaded version. If it is outdated, the whole file is sent.",
    )


PictureName = Annotated[str, Path(min_length=1, description="File name of a picture, as given in an answer.")]

router = APIRouter(tags=["Documents"], route_class=ApiRoute)


async def own_document(doc_id: DocId, user: Caller, services: Ready) -> DocumentState:
    """Return the state of the document in the path if the caller may change it. Raises the errors of
    `changeable`.
    """
    return await changeable(doc_id, user, services.documents)


OwnDocument = Annotated[DocumentState, Depends(own_document)]


@router.get(
    "/api/documents",
    **contract(
        "The caller's readable documents",
        json_reply(200, "A page of documents. Documents in progress or failed come first.", DocumentList),
        errors=(InvalidQueryError,),
    ),
)
async def list_documents(
    req: Request, query: Annotated[DocumentsQuery, Query()], user: Caller, services: Ready
) -> Response:
    """List the readable documents that match the query, one page at a time. Documents in progress or failed
    come first unless the query sorts or searches.
    """
    if query.q and query.status not in ("working", "failed"):
        page = await find_documents(query.q, user, services, query.filters, query.limit, match=query.match)
    elif query.sort and not query.status:
        page = await sorted_documents(
            user, services, query.filters, query.sort, limit=query.limit, cursor=query.cursor
        )
    else:
        criteria = ListCriteria(query.filters, query.status, query.q)
        page = await listing.list_documents(user, services, criteria, query.limit, query.cursor)
    await note_list(req, user, services, page)
    return json_response(page)


@router.get(
    "/api/documents/facets",
    **contract(
        "Metadata values for filters, with document counts",
        json_reply(200, "Counts of complete documents.", DocumentFacets),
        errors=(InvalidQueryError,),
    ),
)
async def document_facets(query: Annotated[FacetsQuery, Query()], user: Caller, services: Ready) -> Response:
    """Count the readable documents by type, department, language, tag and project."""
    return json_response(await count_documents(user, services, query.filters, query.q, query.match))


@router.get(
    "/api/documents/{doc_id:doc_id}",
    **contract(
        "A document, with the history of its ingestion",
        json_reply(200, "The document.", DocumentDetail, "ETag"),
        headers=CachedHeaders,
    ),
)
async def get_document(req: Request, doc_id: DocId, user: Caller, services: Ready) -> Response:
    """Return the metadata of a document and the history of its ingestion."""
    detail = await lookup.get_document(doc_id, user, services)
    await note_act(req, user, services, "describe", detail.doc_id, may_repeat=True)
    return tagged_response(req, detail, PASSING)


@router.get(
    "/api/documents/{doc_id}/content",
    **contract(
        "The file",
        Reply(200, "The whole file.", ((PDF, None), (BYTES, None)), ("ETag", "Accept-Ranges")),
        Reply(
            206,
            "The requested bytes.",
            ((PDF, None), (BYTES, None)),
            ("ETag", "Accept-Ranges", "Content-Range"),
        ),
        errors=(ConflictError, RangeError),
        headers=FileHeaders,
    ),
)
async def get_document_content(
    req: Request, reader: KnownReader, query: Annotated[CitationQuery, Query()]
) -> Response:
    """Send the original file of a document, or the part that a `Range` header requests. Multiple ranges are
    not supported.
    """
    services = reader.services
    blob = await readable_blob(reader.doc_id, reader.user, services)
    note_opened(reader, query)
    await note_act(req, reader.user, services, "download", reader.doc_id)
    range_header = req.headers.get("range") if holds(req.headers.get("if-range"), blob.etag) else None
    span = byte_span(range_header, blob.size_bytes)
    first, length = (span.first, span.length) if span else (0, None)
    parts = services.blobs.chunks(DOCUMENTS, blob.name, etag=blob.etag, first=first, length=length)
    return await file_response(parts, blob, span)


@router.get(
    "/api/documents/{doc_id}/figures/{name}",
    **contract(
        "A picture in a document",
        Reply(200, "The picture.", ((PNG, None),), ("ETag",)),
        errors=(ConflictError,),
        headers=CachedHeaders,
    ),
)
async def get_document_figure(
    req: Request, doc_id: DocId, name: PictureName, user: Caller, services: Ready
) -> Response:
    """Send a picture of a document as PNG, or 304 if the caller's copy is current."""
    reader = await with_own_files(doc_id, user, services)
    blob = await readable_figure(doc_id, name, reader, services)
    await note_act(req, user, services, "page", doc_id)
    return await picture_response(req, services.blobs.chunks(WORK, blob.name, etag=blob.etag), blob)


@router.patch(
    "/api/documents/{doc_id:doc_id}",
    **contract(
        "Correct a document's metadata",
        json_reply(200, "The document.", DocumentDetail, "ETag"),
        headers=IfMatchHeaders,
    ),
)
async def correct_document(
    req: Request,
    state: OwnDocument,
    body: MetadataCorrection,
    *,
    user: Caller,
    services: Ready,
    client: Durable,
) -> Response:
    """Correct the metadata of a document, even while it is being ingested. Corrected fields keep their values
    when the file is ingested again.
    """
    corrections = corrections_of(body)
    await _require_match(req, state, user, services)
    again = await correct(state, corrections, services, only_unchanged=is_conditional(req.headers))
    await note_act(req, user, services, "correct", state.doc_id)
    if again:
        await start_ingestions(client, services)
    changed = await changeable(state.doc_id, user, services.documents)
    return tagged_response(req, await _detail_of(changed, user, services), PASSING)


@router.put(
    "/api/documents/{doc_id}/access",
    **contract(
        "Set a document's access list",
        json_reply(200, "The document.", DocumentDetail, "ETag"),
        errors=(ConflictError,),
        headers=IfMatchHeaders,
    ),
)
async def change_access(
    req: Request,
    state: OwnDocument,
    change: AccessChange,
    *,
    user: Caller,
    services: Ready,
    client: Durable,
) -> Response:
    """Replace the access list of a document. The new list applies from the next query, without another
    ingestion.
    """
    await _require_match(req, state, user, services)
    current_acl = state.wanted_rights.acl
    acl = await with_ids(change.acl, user, services.directory, services.settings, current=current_acl)
    change = change.model_copy(update={"acl": acl})
    is_behind = await changes.change_access(
        state, change, services, only_unchanged=is_conditional(req.headers)
    )
    await note_act(req, user, services, access_action(acl), state.doc_id)
    if is_behind:
        await start_ingestions(client, services)
    changed = await changeable(state.doc_id, user, services.documents)
    return tagged_response(req, await _detail_of(changed, user, services), PASSING)


@router.post(
    "/api/documents/{doc_id}/reingest",
    **contract(
        "Ingest a document again",
        json_reply(202, "The ingestion is in progress.", DocumentDetail, "Location"),
        errors=(ConflictError,),
        costs=True,
    ),
)
async def reingest_document(
    req: Request, doc_id: DocId, user: Caller, services: Ready, client: Durable
) -> Response:
    """Ingest the file of a document again, even if earlier attempts used up its retries."""
    await count_call(req, user, services, needs=SENDING)
    state = await changeable(doc_id, user, services.documents)
    await try_again(state, services)
    await note_act(req, user, services, "reingest", state.doc_id)
    await start_ingestions(client, services)
    headers = {"Location": f"/api/documents/{state.doc_id}"}
    return json_response(await _detail_of(state, user, services), 202, headers)


@router.delete(
    "/api/documents/{doc_id:doc_id}",
    **contract(
        "Delete a document and all data derived from it",
        json_reply(202, "The document is no longer listed.", DocumentDeleting),
        errors=(ConflictError,),
        headers=IfMatchHeaders,
    ),
)
async def delete_document(
    req: Request, state: OwnDocument, user: Caller, services: Ready, client: Durable
) -> Response:
    """Delete a document, its file and all data derived from it. Lists omit the document at once; its data is
    deleted in the background.
    """
    await _require_match(req, state, user, services)
    await delete(state, services)
    await note_act(req, user, services, "delete", state.doc_id)
    await start_ingestions(client, services)
    return json_response(DocumentDeleting(doc_id=state.doc_id), 202)


async def _require_match(
    request: Request, state: DocumentState, user: UserContext, services: Services
) -> None:
    """Raise `PreconditionFailedError` if the request has an If-Match header that doesn't match the document's
    current ETag.
    """
    if is_conditional(request.headers):
        require_match(request.headers, etag_of(await _detail_of(state, user, services), PASSING))


async def _detail_of(state: DocumentState, user: UserContext, services: Services) -> DocumentDetail:
    return await get_own_document(state, user, services)
