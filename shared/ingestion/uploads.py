"""Uploaded files: permissions are written first, then the content, which makes them documents.

No file is held in memory. An interrupted transfer leaves the old content, or none.
"""

import re
import unicodedata
from collections.abc import AsyncIterator

from shared.access.models import UserContext
from shared.documents.ids import SIDECAR_SUFFIX, UPLOADS, document_id
from shared.documents.requests import UploadRequest, UploadTicket
from shared.documents.rights import is_admin
from shared.documents.state import DocumentState, Rights
from shared.evidence.untrusted_text import shown_name
from shared.ingestion.acceptance import queued
from shared.ingestion.changes import write_rights
from shared.ingestion.registry import format_of
from shared.ingestion.rights import read_rights
from shared.ingestion.services import IngestionServices
from shared.ingestion.task import MAX_WRITE_ATTEMPTS, asked, contended, fresh_state, revived
from shared.platform.blobs import BlobProperties
from shared.platform.errors import CallerError, ConflictError, DocumentExistsError, PayloadTooLargeError
from shared.platform.hashing import digest
from shared.platform.names import DOCUMENTS

MAX_NAME_BYTES = 200  # file systems allow 255; a sidecar's suffix and a copy's number are added
MAX_PATH_CHARS = 900  # the service's limit is 1,024
MAX_DEPTH = 10
MAX_PUBLISHER_CHARS = 100
TICKET_LIFETIME_S = 3600.0  # 500 MB take 11 minutes at 6 Mbit/s; slower senders request another URL
_SEPARATORS = re.compile(r"[/\\]+")
_FORM_ESCAPES = {"%22": '"', "%0D": "\r", "%0A": "\n"}  # WHATWG HTML, multipart/form-data encoding

# Names that Windows keeps for devices, whatever their suffix: nobody there could save such a file.
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|\Z)", re.IGNORECASE)
_JOINERS = "\u200c\u200d"  # part of the spelling of Persian, Indian languages and emoji


def clean_filename(name: str) -> str:
    """Return the last part of a path without invalid characters; quotes and all scripts are kept.

    Raises:
        CallerError: nothing is left, or it is an access list's name.
    """
    for escape, mark in _FORM_ESCAPES.items():
        name = name.replace(escape, mark)
    cleaned = _clean_segment(_SEPARATORS.split(name)[-1])
    if not cleaned:
        raise CallerError(
            "The file has no usable name.", "Send a file name with a suffix, such as report.pdf."
        )
    if cleaned.lower().endswith(SIDECAR_SUFFIX):
        raise CallerError(
            f"A name that ends in {SIDECAR_SUFFIX} is reserved for access lists.",
            "Change who may read a document with PUT /api/documents/{id}/access.",
        )
    return _shortened(cleaned)


def clean_folder(folder: str) -> str:
    """Return a path below the uploader's own folder; "" for none. `.` and `..` are dropped.

    Raises:
        CallerError: it is nested too deeply.
    """
    segments = [
        _shortened(cleaned) for part in _SEPARATORS.split(folder) if (cleaned := _clean_segment(part))
    ]
    if len(segments) > MAX_DEPTH:
        raise CallerError(f"The folder is nested more than {MAX_DEPTH} levels deep.", "Send fewer levels.")
    return "/".join(segments)


def uploads_of(user_id: str) -> str:
    """Return the common prefix of all blobs uploaded by the user."""
    # A digest, because user ids may contain any character, and readers see paths.
    return f"{UPLOADS}/{digest('uploader', user_id)[:16]}/"


def _clean_segment(segment: str) -> str:
    composed = unicodedata.normalize("NFC", segment)
    visible = "".join(mark for mark in composed if not _is_control(mark))
    # A blob's path must not end in a dot; a leading or trailing blank is never meant.
    trimmed = " ".join(visible.split()).rstrip(". ").strip()
    return f"_{trimmed}" if _RESERVED.match(trimmed) else trimmed


def _is_control(mark: str) -> bool:
    """Return whether a character is a control or format character (an override can disguise a suffix) or a
    surrogate.
    """
    if mark.isspace():
        return False
    return unicodedata.category(mark) in ("Cc", "Cf", "Cs", "Co", "Cn") and mark not in _JOINERS


def _shortened(name: str) -> str:
    """Shorten a name to MAX_NAME_BYTES in UTF-8, keeping its suffix."""
    if len(name.encode()) <= MAX_NAME_BYTES:
        return name
    stem, dot, suffix = name.rpartition(".")
    ending = f"{dot}{suffix}" if stem and len(suffix) <= 10 else ""
    room = MAX_NAME_BYTES - len(ending.encode())
    start = (stem if ending else name).encode()[:room].decode("utf-8", "ignore")
    return start.rstrip(". ") + ending


async def receive(
    request: UploadRequest, parts: AsyncIterator[bytes], user: UserContext, services: IngestionServices
) -> DocumentState:
    """Store a streamed file. Return its document's state.

    Raises:
        CallerError: the name is invalid.
        BadDocumentError: the file type isn't supported.
        PayloadTooLargeError: it exceeds MAX_DOCUMENT_BYTES; nothing was changed.
        ConflictError: another user's document has this name there.
        DocumentExistsError: the user's own document has it, and the request doesn't allow a replacement.
    """
    return await store(blob_name_of(request, user), request, parts, user, services)


async def store(
    path: str,
    request: UploadRequest,
    parts: AsyncIterator[bytes],
    user: UserContext,
    services: IngestionServices,
) -> DocumentState:
    """Store a streamed file under a blob name; see `receive`."""
    await _prepare(path, request, user, services)
    parts = _limited(parts, services.settings.ingestion.max_document_bytes)
    # If this breaks off, the new rights stay: with them a file that comes after all is open to nobody else.
    written = await services.blobs.write_stream(DOCUMENTS, path, parts)
    return await _announce(written, services)


async def make_ticket(request: UploadRequest, user: UserContext, services: IngestionServices) -> UploadTicket:
    """Return a URL to which the sender can upload the file directly.

    Raises:
        CallerError, BadDocumentError, PayloadTooLargeError, ConflictError: as `receive`.
    """
    path = blob_name_of(request, user)
    return await ticket_of(path, request, user, services, location=f"/api/documents/{document_id(path)}")


async def ticket_of(
    path: str, request: UploadRequest, user: UserContext, services: IngestionServices, *, location: str
) -> UploadTicket:
    """Return a URL to which the sender can upload a file under a blob name; see `make_ticket`.

    Args:
        location: where the sender can follow the file.
    """
    _check_size(request.size_bytes or 0, services.settings.ingestion.max_document_bytes)
    await _prepare(path, request, user, services)
    signed = await services.blobs.upload_url(DOCUMENTS, path, TICKET_LIFETIME_S)
    return UploadTicket(
        doc_id=document_id(path),
        filename=path.rpartition("/")[2],
        url=signed.url,
        headers={"x-ms-blob-type": "BlockBlob"},
        expires_at=signed.expires_at,
        location=location,
    )


def blob_name_of(request: UploadRequest, user: UserContext) -> str:
    """Return the blob name of an upload, the same for the same user and names.

    Raises:
        CallerError: the name is invalid, or the whole path is too long.
        BadDocumentError: the file type isn't supported.
    """
    filename = clean_filename(request.filename)
    format_of(filename)
    parts = filter(None, (clean_folder(request.folder), filename))
    path = uploads_of(user.user_id) + "/".join(parts)
    if len(path) > MAX_PATH_CHARS:
        raise CallerError("The path of the file is too long.", "Shorten the folder or the file name.")
    return path


async def _prepare(path: str, request: UploadRequest, user: UserContext, services: IngestionServices) -> None:
    """Store the permissions, because a file must never exist without them."""
    await services.ensure_prepared()
    known = await services.blobs.properties(DOCUMENTS, path)
    rights = Rights() if known is None else (await read_rights(known, services))[0]
    if known is not None and rights.owner_id != user.user_id and not is_admin(user):
        raise ConflictError("Someone else's document has this name.", "Choose another name or folder.")
    if known is not None and not request.replace:
        raise DocumentExistsError(
            "You already have a document of this name in this folder.",
            "Send replace=true to store a new version of it, or choose another name or folder.",
            headers={"Location": f"/api/documents/{document_id(path)}"},
        )
    wanted = Rights(
        acl=rights.acl if request.acl is None else request.acl,
        owner_id=rights.owner_id or user.user_id,
        project_id=request.project_id or rights.project_id,
        source_url=request.source_url or rights.source_url,
        published_by=rights.published_by,
    )
    if wanted.owner_id == user.user_id and (name := shown_name(user.name or "")):
        # As others see it: the identity provider's, never what they typed.
        wanted = wanted.model_copy(update={"published_by": name[:MAX_PUBLISHER_CHARS]})
    if known is None or wanted != rights.model_copy(update={"warning": None}):
        await write_rights(path, wanted, services.blobs)


async def _announce(written: BlobProperties, services: IngestionServices) -> DocumentState:
    """Return the document's state, `queued` even before the blob's event arrives."""
    # Also of a document that is known: it may be the one before, which is just being removed.
    rights, sidecar_etag = await read_rights(written, services)
    known = {"wanted_rights": rights, "sidecar_etag": sidecar_etag}
    documents = services.documents
    for _ in range(MAX_WRITE_ATTEMPTS):
        state = await documents.get(document_id(written.name))
        try:
            if state is None:
                noted = fresh_state(written.name).model_copy(update={**known, "noted_etag": written.etag})
                return (await asked(noted, documents, size_bytes=written.size_bytes))[0]
            if written.etag in (state.noted_etag, state.wanted_etag):  # its event was faster
                return state.model_copy(update=known)
            wanted: dict[str, object] = {**known, "noted_etag": written.etag}
            if state.is_open and not state.is_deleted:  # the ingestion at work notes how far it is
                again = state.model_copy(update={**wanted, "rows_outdated": True})
            else:
                again = queued(revived(state)).model_copy(update=wanted)
            return (await asked(again, documents, size_bytes=written.size_bytes))[0]
        except ConflictError:
            continue
    raise contended()


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
