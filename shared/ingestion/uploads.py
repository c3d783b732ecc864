"""Uploads of files by users: permissions are stored first, then the content, which triggers the ingestion.

Files are streamed and never held in memory. An interrupted transfer leaves the old content, or none.
"""

import re
import unicodedata
from collections.abc import AsyncIterator

from shared.access.models import UserContext
from shared.documents.ids import HINTS_SUFFIX, SIDECAR_SUFFIX, UPLOADS, document_id, hints_of
from shared.documents.requests import UploadRequest, UploadTicket
from shared.documents.rights import is_admin
from shared.documents.state import DocumentState, Rights
from shared.evidence.untrusted_text import shown_name
from shared.ingestion.acceptance import reset_to_queued
from shared.ingestion.changes import write_rights
from shared.ingestion.registry import format_of
from shared.ingestion.rights import note_event, read_rights
from shared.ingestion.services import IngestionServices
from shared.ingestion.task import (
    MAX_WRITE_ATTEMPTS,
    contention_error,
    fresh_state,
    request_ingestion,
    reset_after_deletion,
)
from shared.platform.blobs import BlobProperties
from shared.platform.errors import (
    BadDocumentError,
    CallerError,
    ConflictError,
    DocumentExistsError,
    DocumentNotFoundError,
    NotFoundError,
    PayloadTooLargeError,
)
from shared.platform.hashing import digest
from shared.platform.names import DOCUMENTS
from shared.tables.hints import MAX_BYTES

# Maximum length of a file name. File systems allow 255 bytes; the remaining bytes are for the suffix of an
# access list and the number of a copy.
MAX_NAME_BYTES = 200
# Maximum length of a blob name. Blob Storage allows 1,024 characters.
MAX_PATH_CHARS = 900
MAX_DEPTH = 10
MAX_PUBLISHER_CHARS = 100
# Lifetime of an upload URL. 500 MB take 11 minutes at 6 Mbit/s; a slower sender can request another URL.
TICKET_LIFETIME_S = 3600.0
_SEPARATORS = re.compile(r"[/\\]+")
# Escapes that browsers use in the names of uploaded files. Source: WHATWG HTML, multipart/form-data encoding.
_FORM_ESCAPES = {"%22": '"', "%0D": "\r", "%0A": "\n"}

# Windows reserves these names for devices, whatever the suffix, so a file with such a name could not be saved
# there.
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|\Z)", re.IGNORECASE)
# Zero-width characters that Persian, Indian languages and emoji need.
_JOINERS = "\u200c\u200d"


def clean_filename(name: str) -> str:
    """Return the last part of a path without invalid characters. Quotes and letters of all scripts are kept.

    Raises:
        CallerError: no valid characters remain, or the name is reserved for access lists.
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
            f"Names that end in {SIDECAR_SUFFIX} are reserved for access lists.",
            "Change who may read a document with PUT /api/documents/{id}/access.",
        )
    return _shorten_name(cleaned)


def clean_folder(folder: str) -> str:
    """Return a clean path relative to the uploader's folder, or "" for that folder. `.` and `..` are dropped.

    Raises:
        CallerError: the folder is nested too deeply.
    """
    segments = [
        _shorten_name(cleaned) for part in _SEPARATORS.split(folder) if (cleaned := _clean_segment(part))
    ]
    if len(segments) > MAX_DEPTH:
        raise CallerError(
            f"The folder is nested more than {MAX_DEPTH} levels deep.", "Use a folder with fewer levels."
        )
    return "/".join(segments)


def uploads_of(user_id: str) -> str:
    """Return the blob name prefix of all files uploaded by the user."""
    # Use a digest, because user ids may contain any character and readers can see the path.
    return f"{UPLOADS}/{digest('uploader', user_id)[:16]}/"


def _clean_segment(segment: str) -> str:
    composed = unicodedata.normalize("NFC", segment)
    visible = "".join(mark for mark in composed if not _is_control(mark))
    # A blob path must not end in a dot. White space at either end is never intended.
    trimmed = " ".join(visible.split()).rstrip(". ").strip()
    return f"_{trimmed}" if _RESERVED.match(trimmed) else trimmed


def _is_control(mark: str) -> bool:
    """Return whether a character is a control, format or unassigned character, or a surrogate. Such
    characters can disguise a suffix, like the right-to-left override.
    """
    if mark.isspace():
        return False
    return unicodedata.category(mark) in ("Cc", "Cf", "Cs", "Co", "Cn") and mark not in _JOINERS


def _shorten_name(name: str) -> str:
    """Shorten a name to `MAX_NAME_BYTES` bytes of UTF-8. Its suffix is kept."""
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
    """Store a streamed upload, and return the state of its document.

    Raises:
        CallerError: the name is invalid.
        BadDocumentError: the file type isn't supported.
        ConflictError: another user has a document of this name, or a file of this name was uploaded at the
            same time.
        DocumentExistsError: the caller has a document of this name, and `replace` is not set.
        PayloadTooLargeError: the file is too large.
    """
    return await store(blob_name_of(request, user), request, parts, user, services)


async def receive_hints(
    request: UploadRequest, parts: AsyncIterator[bytes], user: UserContext, services: IngestionServices
) -> DocumentState:
    """Store the hints file of a table document, and return the state of that document, which is ingested
    again. The access list and project of the request don't apply, because the hints belong to the document.

    Mistakes in the hints become warnings of the document, since only a parser process reads untrusted YAML.

    Raises:
        CallerError: the name is invalid.
        BadDocumentError: files of this type have no table hints.
        ConflictError: the table file belongs to another user.
        DocumentNotFoundError: the caller has no document with the name of the table file in this folder.
        PayloadTooLargeError: the hints are too large.
    """
    table = document_name_of(request, user)
    path = hints_of(table)
    if path is None:
        raise BadDocumentError(
            f"Only CSV files and workbooks can have a {HINTS_SUFFIX} file.",
            f"Name it after the table file, such as sales.csv{HINTS_SUFFIX}.",
            failure="unsupported",
        )
    await services.ensure_prepared()
    blob = await services.blobs.properties(DOCUMENTS, table)
    if blob is None:
        raise _no_table_error(table)
    rights = (await read_rights(blob, services))[0]
    _require_owner(rights, user)
    content = b"".join([part async for part in _limit_size(parts, MAX_BYTES)])
    try:
        is_known = await services.blobs.read(DOCUMENTS, path) == content
    except NotFoundError:
        is_known = False
    if not is_known:
        await services.blobs.write(DOCUMENTS, path, content)
        await note_event(path, services)
    state = await services.documents.get(document_id(table))
    if state is None:
        # It was deleted in the meantime.
        raise _no_table_error(table)
    return state.model_copy(update={"wanted_rights": rights})


def _no_table_error(table: str) -> DocumentNotFoundError:
    return DocumentNotFoundError(
        f"There is no {table.rpartition('/')[2]} in this folder, to which the hints belong.",
        "Upload the table file first.",
    )


async def store(
    path: str,
    request: UploadRequest,
    parts: AsyncIterator[bytes],
    user: UserContext,
    services: IngestionServices,
) -> DocumentState:
    """Store a streamed file under a given blob name, with the same errors as `receive`."""
    await _prepare(path, request, user, services)
    parts = _limit_size(parts, services.settings.ingestion.max_document_bytes)
    # If the transfer is interrupted, keep the new permissions: the file may still arrive, and they must apply
    # to it.
    blob = await services.blobs.write_stream(DOCUMENTS, path, parts)
    return await _announce(blob, services)


async def make_ticket(request: UploadRequest, user: UserContext, services: IngestionServices) -> UploadTicket:
    """Return a signed URL to which the sender can upload the file directly.

    Raises:
        CallerError, BadDocumentError, PayloadTooLargeError, ConflictError: as for `receive`.
    """
    path = blob_name_of(request, user)
    return await ticket_of(path, request, user, services, location=f"/api/documents/{document_id(path)}")


async def ticket_of(
    path: str, request: UploadRequest, user: UserContext, services: IngestionServices, *, location: str
) -> UploadTicket:
    """Return a signed URL for uploading a file under a given blob name, with the same errors as
    `make_ticket`.

    Args:
        location: URL path at which the sender can follow the ingestion.
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
    """Return the blob name of an upload. It depends only on the user, folder and file name.

    Raises:
        CallerError: the name is invalid, or the path is too long.
        BadDocumentError: the file type isn't supported.
    """
    filename = clean_filename(request.filename)
    format_of(filename)
    parts = filter(None, (clean_folder(request.folder), filename))
    path = uploads_of(user.user_id) + "/".join(parts)
    if len(path) > MAX_PATH_CHARS:
        raise CallerError("The path of the file is too long.", "Shorten the folder or the file name.")
    return path


def is_hints(request: UploadRequest) -> bool:
    """Return whether an upload is the hints file of a table document."""
    return request.filename.endswith(HINTS_SUFFIX)


def document_name_of(request: UploadRequest, user: UserContext) -> str:
    """Return the blob name of the document that an upload belongs to: for a hints file, its table document.
    Raises the errors of `blob_name_of`.
    """
    filename = request.filename.removesuffix(HINTS_SUFFIX)
    return blob_name_of(request.model_copy(update={"filename": filename}), user)


async def _prepare(path: str, request: UploadRequest, user: UserContext, services: IngestionServices) -> None:
    """Check that the user may write the blob, and store its permissions: a file must never exist without
    them.
    """
    await services.ensure_prepared()
    existing = await services.blobs.properties(DOCUMENTS, path)
    rights = Rights() if existing is None else (await read_rights(existing, services))[0]
    if existing is not None:
        _require_owner(rights, user)
    if existing is not None and not request.replace:
        raise DocumentExistsError(
            "You already have a document with this name in this folder.",
            "Send replace=true to store a new version of it, or choose another name or folder.",
            headers={"Location": f"/api/documents/{document_id(path)}"},
        )
    new_rights = Rights(
        acl=rights.acl if request.acl is None else request.acl,
        owner_id=rights.owner_id or user.user_id,
        project_id=request.project_id or rights.project_id,
        source_url=request.source_url or rights.source_url,
        published_by=rights.published_by,
    )
    if new_rights.owner_id == user.user_id and (name := shown_name(user.name or "")):
        # Publish the user's name from the identity provider, because users can't choose that name themselves.
        new_rights = new_rights.model_copy(update={"published_by": name[:MAX_PUBLISHER_CHARS]})
    if existing is None or new_rights != rights.model_copy(update={"warning": None}):
        await write_rights(path, new_rights, services.blobs)


def _require_owner(rights: Rights, user: UserContext) -> None:
    """Raise ConflictError unless the user owns the existing file or is an administrator."""
    if rights.owner_id != user.user_id and not is_admin(user):
        raise ConflictError(
            "A document of another user already has this name.", "Choose another name or folder."
        )


async def _announce(blob: BlobProperties, services: IngestionServices) -> DocumentState:
    """Request the ingestion of an uploaded blob without waiting for its event. Return the document's
    state.
    """
    # Read the permissions even if the document is known, because its row may belong to an earlier file that
    # is being removed.
    rights, sidecar_etag = await read_rights(blob, services)
    permissions = {"wanted_rights": rights, "sidecar_etag": sidecar_etag}
    documents = services.documents
    for _ in range(MAX_WRITE_ATTEMPTS):
        state = await documents.get(document_id(blob.name))
        try:
            if state is None:
                new_state = fresh_state(blob.name).model_copy(update={**permissions, "noted_etag": blob.etag})
                return (await request_ingestion(new_state, documents, size_bytes=blob.size_bytes))[0]
            # The event of the blob arrived first and has already requested the ingestion.
            if blob.etag in (state.noted_etag, state.wanted_etag):
                return state.model_copy(update=permissions)
            changes: dict[str, object] = {**permissions, "noted_etag": blob.etag}
            # Leave the status unchanged, because the ingestion in progress updates it.
            if state.is_open and not state.is_deleted:
                again = state.model_copy(update={**changes, "rows_outdated": True})
            else:
                again = reset_to_queued(reset_after_deletion(state)).model_copy(update=changes)
            return (await request_ingestion(again, documents, size_bytes=blob.size_bytes))[0]
        except ConflictError:
            continue
    raise contention_error()


async def _limit_size(parts: AsyncIterator[bytes], max_bytes: int) -> AsyncIterator[bytes]:
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
