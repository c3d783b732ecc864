"""Files that people send: their rights are written first, then their content; then they are documents.

Nothing here holds a file in memory. A transfer that breaks off leaves the old content, or none.
"""

from collections.abc import AsyncIterator

from shared.core.document_authority import is_admin
from shared.core.document_ids import document_id
from shared.core.upload_names import clean_filename, clean_folder, upload_path
from shared.errors import ConflictError, PayloadTooLargeError
from shared.ingestion import claims
from shared.ingestion.changing import write_rights
from shared.ingestion.prepare import ensure_ready
from shared.ingestion.registry import format_of
from shared.ingestion.rights import read_rights
from shared.models.blobs import BlobProperties
from shared.models.identity import UserContext
from shared.models.ingestion import DocumentState, Rights
from shared.models.names import DOCUMENTS
from shared.models.uploads import UploadRequest, UploadTicket
from shared.services import Services

TICKET_LIFETIME_S = 3600.0  # 500 MB take 11 minutes at 6 Mbit/s; a slower sender asks again


async def receive(
    request: UploadRequest, parts: AsyncIterator[bytes], user: UserContext, services: Services
) -> tuple[DocumentState, str]:
    """Store a file as it comes in; its document's state and the new blob's etag.

    Raises:
        CallerError: the name cannot be used.
        BadDocumentError: files of this kind are not read.
        PayloadTooLargeError: it is larger than MAX_DOCUMENT_BYTES; nothing has changed then.
        ConflictError: the place is taken by a document of somebody else.
    """
    path = place_of(request, user)
    await _prepare(path, request, user, services)
    parts = _limited(parts, services.settings.max_document_bytes)
    # If this breaks off, the new rights stay: with them a file that comes after all is open to nobody else.
    written = await services.blobs.write_stream(DOCUMENTS, path, parts)
    return await _announce(written, services), written.etag


async def make_ticket(request: UploadRequest, user: UserContext, services: Services) -> UploadTicket:
    """An address to which the sender itself may write the file, past this app.

    Raises:
        CallerError, BadDocumentError, PayloadTooLargeError, ConflictError: as `receive`.
    """
    _check_size(request.size_bytes or 0, services.settings.max_document_bytes)
    path = place_of(request, user)
    await _prepare(path, request, user, services)
    signed = await services.blobs.upload_url(DOCUMENTS, path, TICKET_LIFETIME_S)
    doc_id = document_id(path)
    return UploadTicket(
        doc_id=doc_id,
        filename=path.rpartition("/")[2],
        url=signed.url,
        headers={"x-ms-blob-type": "BlockBlob"},
        expires_at=signed.expires_at,
        location=f"/api/documents/{doc_id}",
    )


def place_of(request: UploadRequest, user: UserContext) -> str:
    """The blob that the file will be.

    Raises:
        CallerError: the name cannot be used.
        BadDocumentError: files of this kind are not read.
    """
    filename = clean_filename(request.filename)
    format_of(filename)
    return upload_path(user.user_id, clean_folder(request.folder), filename)


async def _prepare(path: str, request: UploadRequest, user: UserContext, services: Services) -> None:
    """Put its rights in place: a file must never be there without them."""
    await ensure_ready(services)
    await _write_rights(path, request, user, services)


async def _write_rights(path: str, request: UploadRequest, user: UserContext, services: Services) -> None:
    known = await services.blobs.properties(DOCUMENTS, path)
    rights = Rights() if known is None else (await read_rights(services, known))[0]
    if known is not None and rights.owner_id != user.user_id and not is_admin(user):
        raise ConflictError("A document of somebody else has this name.", "Choose another name or folder.")
    wanted = Rights(
        acl=rights.acl if request.acl is None else request.acl,
        owner_id=rights.owner_id or user.user_id,
        project_id=request.project_id or rights.project_id,
        source_url=request.source_url or rights.source_url,
    )
    if known is None or wanted != rights.model_copy(update={"warning": None}):
        await write_rights(path, wanted, services)


async def _announce(written: BlobProperties, services: Services) -> DocumentState:
    """The document's state: `queued` from now on, before its event has come."""
    # Also of a document that is known: it may be the one before, which is just being removed.
    rights, sidecar_etag = await read_rights(services, written)
    known = {"wanted_rights": rights, "sidecar_etag": sidecar_etag}
    state = await services.documents.get(document_id(written.name))
    try:
        if state is None:
            return await services.documents.create(claims.fresh_state(written.name).model_copy(update=known))
        # Held, or begun already with this very version: whoever works on it tells how far it is.
        if state.holder is not None or state.wanted_etag == written.etag:
            return state.model_copy(update=known)
        return await services.documents.replace(claims.queued_anew(state).model_copy(update=known))
    except ConflictError:  # its event was quicker
        found = await services.documents.get(document_id(written.name)) or claims.fresh_state(written.name)
        return found.model_copy(update=known)


async def _limited(parts: AsyncIterator[bytes], max_bytes: int) -> AsyncIterator[bytes]:
    size = 0
    async for part in parts:
        size += len(part)
        _check_size(size, max_bytes)
        yield part


def _check_size(size_bytes: int, max_bytes: int) -> None:
    if size_bytes > max_bytes:
        raise PayloadTooLargeError(
            f"The file is larger than {max_bytes:,} bytes.",
            "Split the file.",
            headers={"X-Max-Body-Bytes": str(max_bytes)},
        )
