"""Routes that add documents: upload a file, request a URL for uploading a large file, or import a web
page.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import azure.durable_functions as df
from fastapi import APIRouter, Request, Response

from functions.http.api_route import ApiRoute
from functions.http.bodies import FileForm, file_parts
from functions.http.contracts import contract, json_reply
from functions.http.file_content import CountedContent, admit_document, max_form_bytes, refuse_large
from functions.http.idempotency import Key, idempotent
from functions.http.models import KeyHeaders
from functions.http.requests import Caller, Durable, Ready, note_act
from functions.http.responses import json_response, validate_as
from functions.ingest import start_ingestions
from shared.access.access_lists import with_ids
from shared.access.audit_trail import is_wide
from shared.access.idempotency import KeyClaim, finish, key_reused_error
from shared.access.models import AuditAction, UserContext
from shared.documents import requests
from shared.documents.ids import document_id, sender_of
from shared.documents.lookup import get_own_document
from shared.documents.requests import ImportRequest, UploadForm, UploadRequest, UploadTicket
from shared.documents.state import DocumentState
from shared.documents.views import DocumentDetail
from shared.ingestion import fair_turns
from shared.ingestion.changes import changeable
from shared.ingestion.uploads import (
    blob_name_of,
    document_name_of,
    is_hints,
    make_ticket,
    receive,
    receive_hints,
    uploads_of,
)
from shared.ingestion.web_import import content_of, fetch_for_import, upload_of
from shared.platform.errors import (
    AccessDeniedError,
    BadDocumentError,
    CallerError,
    ConflictError,
    DocumentExistsError,
    DocumentNotFoundError,
    PayloadTooLargeError,
)
from shared.wiring import Services

router = APIRouter(tags=["Documents"], route_class=ApiRoute)


@router.post(
    "/api/documents",
    **contract(
        "Upload a file through the app",
        json_reply(202, "The document is stored and is being ingested.", DocumentDetail, "Location"),
        errors=(ConflictError, DocumentExistsError, BadDocumentError, DocumentNotFoundError),
        form=requests.UploadForm,
        headers=KeyHeaders,
        costs=True,
    ),
)
async def upload_document(req: Request, user: Caller, services: Ready, client: Durable) -> Response:
    """Store a file and start its ingestion. The form fields `folder`, `project_id`, `source_url`, `replace`
    and `acl` (repeatable) must precede `file`.
    """
    refuse_large(req.headers.get("content-length"), max_form_bytes(services))
    await fair_turns.SHARES.give_way(sender_of(uploads_of(user.user_id)))
    form = FileForm(file_parts(req.stream()), req.headers.get("content-type", ""))
    await form.open()
    return await _receive(req, form, user, services, client)


@router.post(
    "/api/documents/uploads",
    **contract(
        "A URL for uploading a large file directly to storage",
        json_reply(201, "The URL for the upload.", requests.UploadTicket, "Location"),
        errors=(ConflictError, DocumentExistsError, BadDocumentError),
        headers=KeyHeaders,
        costs=True,
    ),
)
async def make_upload_ticket(req: Request, body: UploadRequest, user: Caller, services: Ready) -> Response:
    """Return a URL to which the caller can upload one file within an hour. The ingestion starts when the file
    has been written.
    """
    request = await _with_ids(body, user, services)
    doc_id = document_id(blob_name_of(request, user))

    async def find(claimed: KeyClaim) -> UploadTicket | None:
        # A retry gets the same document with a new URL, which is valid for an hour from now, even if the file
        # has arrived in the meantime.
        again = request.model_copy(update={"replace": True})
        return await make_ticket(again, user, services) if claimed.claim.is_done else None

    async def make(claimed: KeyClaim | None, _: UploadTicket | None) -> UploadTicket:
        await admit_document(req, user, services)
        ticket = await make_ticket(request, user, services)
        await finish(claimed, services.idempotency)
        return ticket

    ticket = await idempotent(Key(req, request, user, services, resource_id=doc_id), make, find)
    await note_act(req, user, services, _upload_action(request.acl or ()), doc_id)
    return json_response(ticket, 201, {"Location": ticket.location, "Cache-Control": "no-store"})


@router.post(
    "/api/documents/import",
    **contract(
        "Import a web page as a document",
        json_reply(202, "The document is stored and is being ingested.", DocumentDetail, "Location"),
        errors=(ConflictError, BadDocumentError, DocumentNotFoundError, PayloadTooLargeError),
        headers=KeyHeaders,
        costs=True,
    ),
)
async def import_page(
    req: Request, body: ImportRequest, user: Caller, services: Ready, client: Durable
) -> Response:
    """Import a public web page as a document of the caller. If the page was imported before, it becomes a new
    version.
    """
    if not services.settings.web_pages.web_import or services.web_pages is None:
        raise AccessDeniedError("Importing web pages is disabled.", "Save the page and upload the file.")
    pages = services.web_pages

    async def find(claimed: KeyClaim) -> DocumentState | None:
        if not claimed.claim.is_done:
            return None
        return await changeable(claimed.resource_id, user, services.documents)

    async def make(claimed: KeyClaim | None, _: DocumentState | None) -> DocumentState:
        await admit_document(req, user, services)
        page = await fetch_for_import(body, pages)
        request = await _with_ids(upload_of(body, page), user, services)
        state = await receive(request, content_of(page), user, services)
        await start_ingestions(client, services)
        await finish(claimed, services.idempotency, resource_id=state.doc_id)
        return state

    state = await idempotent(Key(req, body, user, services, resource_id=""), make, find)
    return await _accept_response(req, state, user, services)


def _upload_action(acl: Sequence[str]) -> AuditAction:
    return "publish" if is_wide(acl) else "upload"


async def _receive(
    req: Request,
    form: FileForm,
    user: UserContext,
    services: Services,
    client: df.DurableOrchestrationClient,
) -> Response:
    """Store the file of a form and start its ingestion, unless an earlier request with the same key has done
    both.
    """
    request = await _with_ids(_upload_request(form.filename, form.fields), user, services)
    doc_id = document_id(document_name_of(request, user))
    content = CountedContent(form.parts(), max_form_bytes(services))

    async def find(claimed: KeyClaim) -> DocumentState | None:
        if not claimed.claim.is_done:
            return None
        if await content.digest_of_rest() != claimed.claim.content:
            raise key_reused_error()
        return await changeable(doc_id, user, services.documents)

    async def make(claimed: KeyClaim | None, _: DocumentState | None) -> DocumentState:
        await admit_document(req, user, services)
        store = receive_hints if is_hints(request) else receive
        state = await store(request, aiter(content), user, services)
        await start_ingestions(client, services)
        await finish(claimed, services.idempotency, await content.digest_of_rest())
        return state

    state = await idempotent(Key(req, request, user, services, resource_id=doc_id), make, find)
    return await _accept_response(req, state, user, services)


async def _accept_response(
    req: Request, state: DocumentState, user: UserContext, services: Services
) -> Response:
    """Record the upload in the audit trail, and return the 202 response for the stored document."""
    await note_act(req, user, services, _upload_action(state.wanted_rights.acl), state.doc_id)
    headers = {"Location": f"/api/documents/{state.doc_id}"}
    return json_response(await get_own_document(state, user, services), 202, headers)


async def _with_ids(request: UploadRequest, user: UserContext, services: Services) -> UploadRequest:
    if request.acl is None:
        return request
    acl = await with_ids(request.acl, user, services.directory, services.settings)
    return request.model_copy(update={"acl": acl})


def _upload_request(filename: str, fields: Mapping[str, Sequence[str]]) -> UploadRequest:
    """Convert the fields of an upload form to an `UploadRequest`.

    Raises:
        CallerError: a field is unknown, repeated or invalid.
    """
    field_names = tuple(name for name in UploadForm.model_fields if name != "file")
    unknown = sorted(set(fields) - set(field_names))
    if unknown:
        raise CallerError(
            f"Unknown form field {unknown[0][:40]!r}.", f"Known fields: {', '.join(field_names)}, file."
        )
    values_by_name: dict[str, Any] = {}
    for name in ("folder", "project_id", "source_url", "replace"):
        values = [value for value in fields.get(name, ()) if value]
        if len(values) > 1:
            raise CallerError(f"The form field {name} occurs twice.", "Send it only once.")
        if values:
            values_by_name[name] = values[0]
    if "acl" in fields:
        values_by_name["acl"] = [name for value in fields["acl"] for name in value.split(",") if name.strip()]
    return validate_as(UploadRequest, lambda: UploadRequest(filename=filename or "", **values_by_name))
