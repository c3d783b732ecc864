"""Routes for files that belong to a single conversation: add, list and remove. Only the owner of the thread
has access.
"""

from fastapi import APIRouter, Request, Response

from functions.http.api_route import ApiRoute
from functions.http.bodies import FileForm, file_parts
from functions.http.contracts import contract, json_reply
from functions.http.file_content import CountedContent, admit_document, max_form_bytes, refuse_large
from functions.http.idempotency import Key, idempotent
from functions.http.models import DocId, KeyHeaders
from functions.http.requests import Caller, Durable, Ready, note_act
from functions.http.responses import json_response, validate_as
from functions.ingest import start_ingestions
from functions.threads import ThreadId
from shared.access.idempotency import KeyClaim, finish, key_reused_error
from shared.conversations import files
from shared.conversations.files import RemovedFile, ThreadFile, ThreadFileList
from shared.conversations.threads import owned_thread
from shared.documents.ids import document_id, sender_of
from shared.documents.requests import FileRequest, ThreadFileForm, UploadRequest, UploadTicket
from shared.ingestion import fair_turns
from shared.ingestion.thread_files import blob_name_in, stored_files
from shared.ingestion.uploads import store, ticket_of
from shared.platform.errors import (
    BadDocumentError,
    CallerError,
    ConflictError,
    DocumentNotFoundError,
    NotFoundError,
)
from shared.wiring import Services

router = APIRouter(tags=["Threads"], route_class=ApiRoute)


@router.post(
    "/api/threads/{thread_id}/files",
    **contract(
        "Add a file to a conversation",
        json_reply(202, "The file is stored and is being ingested.", ThreadFile, "Location"),
        errors=(NotFoundError, ConflictError, BadDocumentError),
        form=ThreadFileForm,
        headers=KeyHeaders,
        costs=True,
    ),
)
async def add_thread_file(
    req: Request, thread_id: ThreadId, user: Caller, services: Ready, client: Durable
) -> Response:
    """Store a file that only this conversation can use, and start its ingestion. The form has a single part,
    `file`.
    """
    await owned_thread(thread_id, user, services.threads)
    refuse_large(req.headers.get("content-length"), max_form_bytes(services))
    await fair_turns.SHARES.give_way(sender_of(blob_name_in(thread_id, "file.txt")))
    form = FileForm(file_parts(req.stream()), req.headers.get("content-type", ""))
    await form.open()
    if form.fields:
        raise CallerError(f"Unknown form field {min(form.fields)[:40]!r}.", "Send only `file`.")
    request = validate_as(FileRequest, lambda: FileRequest(filename=form.filename or ""))
    name, location = blob_name_in(thread_id, request.filename), f"/api/threads/{thread_id}/files"
    content = CountedContent(form.parts(), max_form_bytes(services))

    async def find(claimed: KeyClaim) -> ThreadFile | None:
        if not claimed.claim.is_done:
            return None
        if await content.digest_of_rest() != claimed.claim.content:
            raise key_reused_error()
        return await _file_of(thread_id, name, services)

    async def make(claimed: KeyClaim | None, _: ThreadFile | None) -> ThreadFile:
        await files.announce_file(thread_id, name, user, services)
        await admit_document(req, user, services)
        await store(name, _as_upload(request), aiter(content), user, services)
        await files.attach_file(thread_id, name, user, services)
        await start_ingestions(client, services)
        await finish(claimed, services.idempotency, await content.digest_of_rest())
        return await _file_of(thread_id, name, services)

    key = Key(req, request, user, services, resource_id=document_id(name))
    file = await idempotent(key, make, find)
    await note_act(req, user, services, "upload", file.doc_id)
    return json_response(file, 202, {"Location": location})


@router.post(
    "/api/threads/{thread_id}/files/uploads",
    **contract(
        "A URL for sending a conversation's large file directly to storage",
        json_reply(201, "The URL for the upload.", UploadTicket, "Location"),
        errors=(NotFoundError, ConflictError, BadDocumentError),
        costs=True,
    ),
)
async def make_thread_file_ticket(
    req: Request, thread_id: ThreadId, body: FileRequest, user: Caller, services: Ready
) -> Response:
    """Return a URL to which the caller can upload one file of this conversation within an hour."""
    await owned_thread(thread_id, user, services.threads)
    name, location = blob_name_in(thread_id, body.filename), f"/api/threads/{thread_id}/files"
    await files.announce_file(thread_id, name, user, services)
    await admit_document(req, user, services)
    ticket = await ticket_of(name, _as_upload(body), user, services, location=location)
    await files.attach_file(thread_id, name, user, services)
    await note_act(req, user, services, "upload", ticket.doc_id)
    return json_response(ticket, 201, {"Location": location, "Cache-Control": "no-store"})


@router.get(
    "/api/threads/{thread_id}/files",
    **contract(
        "The files of a conversation, with their status",
        json_reply(200, "The files, oldest first.", ThreadFileList),
    ),
)
async def get_thread_files(thread_id: ThreadId, user: Caller, services: Ready) -> Response:
    """List the files of a conversation with their ingestion status, including files that could not be
    read.
    """
    return json_response(await files.list_files(thread_id, user, services))


@router.delete(
    "/api/threads/{thread_id}/files/{doc_id}",
    **contract(
        "Remove a file from a conversation, with the answers that may quote it",
        json_reply(200, "The file has been removed.", RemovedFile),
        errors=(NotFoundError, ConflictError, DocumentNotFoundError),
    ),
)
async def remove_thread_file(
    req: Request, thread_id: ThreadId, doc_id: DocId, *, user: Caller, services: Ready, client: Durable
) -> Response:
    """Remove a file from a conversation. If questions were asked since the file was added, all turns of the
    conversation are deleted.
    """
    removed = await files.remove_from_thread(thread_id, doc_id, user, services)
    await start_ingestions(client, services)
    await note_act(req, user, services, "delete", removed.doc_id)
    return json_response(removed)


def _as_upload(request: FileRequest) -> UploadRequest:
    """Convert a file request to an upload request for a private file that only its owner can read."""
    return UploadRequest(filename=request.filename, acl=(), size_bytes=request.size_bytes)


async def _file_of(thread_id: str, name: str, services: Services) -> ThreadFile:
    """Return a stored file of a thread. Raises `DocumentNotFoundError` if it has been removed in the
    meantime.
    """
    stored = next((one for one in await stored_files(thread_id, services) if one.name == name), None)
    if stored is None:
        raise DocumentNotFoundError("The file has just been removed.", "Add the file again.")
    return files.view_of_file(stored)
