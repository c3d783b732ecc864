"""Changes that users make to documents: access list, metadata corrections, retry, repair and deletion.

No function here waits for an ingestion, parses a file or calls a model. If a function returns True, its
caller must start an ingestion, which completes the index entries.
"""

import datetime
import json
from contextlib import suppress

from shared.access.models import UserContext
from shared.documents import index_rows
from shared.documents.ids import HINTS_SUFFIX, SIDECAR_SUFFIX, is_synchronised
from shared.documents.models import Corrections
from shared.documents.requests import AccessChange, MetadataCorrection
from shared.documents.rights import may_change, may_see
from shared.documents.state import DocumentState, Rights
from shared.documents.state_store import DocumentStore
from shared.ingestion.metadata import forget_description
from shared.ingestion.rights import apply_newest
from shared.ingestion.row_changes import change_row, copy_corrections, corrected, write_copies
from shared.ingestion.services import IngestionServices
from shared.ingestion.task import mark_deleted
from shared.platform.blobs import BlobStore
from shared.platform.errors import (
    AccessDeniedError,
    CallerError,
    ConflictError,
    DocumentNotFoundError,
    NotFoundError,
    PreconditionFailedError,
)
from shared.platform.names import DOCUMENTS


async def changeable(doc_id: str, user: UserContext, documents: DocumentStore) -> DocumentState:
    """Return the state of a document that the user may change.

    Raises:
        DocumentNotFoundError: the document is missing, or the user may neither change nor see it.
        AccessDeniedError: the user may only see it.
    """
    state = await documents.get(doc_id)
    if state is None or not (may_change(user, state) or may_see(user, state)):
        raise DocumentNotFoundError(
            f"There is no document {doc_id[:64]!r}.", "List the documents to see which ones exist."
        )
    if not may_change(user, state):
        raise AccessDeniedError(
            "Only the document's owner or an administrator may change it.", "Ask the owner."
        )
    return state


def corrections_of(request: MetadataCorrection) -> Corrections:
    """Return the metadata fields that the request sets, with the date in ISO format.

    Raises:
        CallerError: the request sets no field.
    """
    fields = request.model_dump(exclude_unset=True)
    if isinstance(date := fields.get("document_date"), datetime.date):
        fields["document_date"] = date.isoformat()
    if not fields:
        raise CallerError(
            "The request contains no field to correct.",
            f"Send at least one of: {', '.join(MetadataCorrection.model_fields)}.",
        )
    return fields


async def write_rights(
    blob_name: str, rights: Rights, blobs: BlobStore, *, only_over: str | None = None
) -> None:
    """Write permissions to the sidecar file of a document, which takes precedence over all other sources of
    permissions.

    Args:
        only_over: etag of the sidecar to replace, "" for none; None = replace any.

    Raises:
        PreconditionFailedError: the sidecar changed.
    """
    content_fields = {"acl": list(rights.acl), "owner_id": rights.owner_id, "project_id": rights.project_id}
    content_fields |= rights.model_dump(include={"source_url", "published_by"}, exclude_none=True)
    name, content = blob_name + SIDECAR_SUFFIX, json.dumps(content_fields).encode()
    if only_over is None:
        await blobs.write(DOCUMENTS, name, content)
        return
    try:
        await blobs.write_version(DOCUMENTS, name, content, etag=only_over or None)
    except ConflictError:
        # `write_version` retries requests whose response was lost. If the first request succeeded, the retry
        # conflicts, although the sidecar already has the requested content.
        with suppress(NotFoundError):
            if await blobs.read(DOCUMENTS, name) == content:
                return
        raise PreconditionFailedError(
            "The document's permissions have just been changed.",
            "Read the document again, and repeat the change.",
        ) from None


def _refuse_synchronised(state: DocumentState) -> None:
    if is_synchronised(state.blob_name):
        raise ConflictError(
            "The document is synchronised from SharePoint.",
            "Change the permissions in SharePoint, or delete the document there. The change arrives within "
            "ten minutes.",
        )


async def change_access(
    state: DocumentState, change: AccessChange, services: IngestionServices, *, only_unchanged: bool = False
) -> bool:
    """Put a new access list into effect for all later queries. Return whether the caller must start an
    ingestion to complete the change.

    Args:
        only_unchanged: fail if the permissions changed since `state` was read.

    Raises:
        PreconditionFailedError: the permissions changed.
        ConflictError: the document is synchronised from SharePoint, which manages its permissions.
    """
    _refuse_synchronised(state)
    project_id = change.project_id or state.wanted_rights.project_id
    changed = {"acl": change.acl, "project_id": project_id, "warning": None}
    rights = state.wanted_rights.model_copy(update=changed)
    only_over = state.sidecar_etag if only_unchanged else None
    await write_rights(state.blob_name, rights, services.blobs, only_over=only_over)
    if await services.blobs.properties(DOCUMENTS, state.blob_name) is None:
        raise DocumentNotFoundError(
            f"The file {state.filename!r} no longer exists.", "The document has just been deleted."
        )
    return await apply_newest(state.blob_name, services)


async def correct(
    state: DocumentState,
    corrections: Corrections,
    services: IngestionServices,
    *,
    only_unchanged: bool = False,
) -> bool:
    """Apply metadata corrections immediately, even during an ingestion. Return whether the caller must start
    an ingestion.

    Args:
        only_unchanged: fail if the document changed since `state` was read.

    Raises:
        PreconditionFailedError: the document changed.
        DocumentNotFoundError: the document was deleted.
    """
    documents = services.documents
    editable = {"corrections", "wanted_rights", "content_hash"}

    async def changed(current: DocumentState) -> DocumentState | None:
        if current.is_deleted:
            return None
        if only_unchanged and current.model_dump(include=editable) != state.model_dump(include=editable):
            raise PreconditionFailedError(
                "The document has just been changed.", "Read the document again, and repeat the change."
            )
        return corrected(current, corrections)

    change = await change_row(state.doc_id, documents, changed)
    if change is None:
        raise DocumentNotFoundError(
            f"The file {state.filename!r} no longer exists.", "The document has just been deleted."
        )
    if change.before.is_open:
        # Don't copy the corrections to the index here: the ingestion in progress or the next one does that.
        return True

    async def copy() -> DocumentState:
        return await copy_corrections(change.after, services, change.before.copied_hash)

    return await write_copies(change, documents, copy, {"shown_corrections": None})


async def try_again(state: DocumentState, services: IngestionServices) -> None:
    """Reset the failure counters of a document, so that the next ingestion processes its file again. The
    caller must start that ingestion.

    Raises:
        ConflictError: an ingestion is in progress.
    """

    async def as_new(current: DocumentState) -> DocumentState:
        _refuse_open(current)
        await forget_description(services.blobs, current)
        return current.model_copy(update={"failed_tries": 0, "pipeline": ""})

    await change_row(state.doc_id, services.documents, as_new)


async def repair(state: DocumentState, services: IngestionServices) -> None:
    """Mark the document so that the next ingestion rewrites all of its index rows, using stored model results
    where available.

    If the newest version failed, only the permissions in the remaining rows are rewritten, immediately: their
    content can't be restored.

    Raises:
        ConflictError: an ingestion is in progress.
    """

    async def as_incomplete(current: DocumentState) -> DocumentState:
        _refuse_open(current)
        if current.status == "failed" and current.content_hash:
            return current.model_copy(update={"rows_outdated": True})
        return current.model_copy(update={"failed_tries": 0, "pipeline": "", "copied_hash": ""})

    change = await change_row(state.doc_id, services.documents, as_incomplete)
    if change is None or not change.after.rows_outdated:
        return
    rights = change.after.rights

    async def copy() -> DocumentState:
        content_index, documents_index = services.content_index, services.documents_index
        await index_rows.merge_rights(content_index, documents_index, state.doc_id, rights)
        return change.after.model_copy(update={"rows_outdated": change.before.rows_outdated})

    await write_copies(change, services.documents, copy, {"rows_outdated": True})


def _refuse_open(state: DocumentState) -> None:
    if state.is_open:
        raise ConflictError("The document is being ingested.", "Try again after the ingestion.")


async def delete(state: DocumentState, services: IngestionServices) -> None:
    """Delete the file and hide the document immediately. A later ingestion removes the remaining data.

    Raises:
        ConflictError: the document is synchronised from SharePoint and must be deleted there.
    """
    _refuse_synchronised(state)
    await services.blobs.delete(DOCUMENTS, state.blob_name)
    await mark_deleted(state.doc_id, services.documents)
    # Delete the sidecar after the file: without its sidecar, the document would get the default access list.
    await services.blobs.delete(DOCUMENTS, state.blob_name + SIDECAR_SUFFIX)
    if state.hints_etag:
        await services.blobs.delete(DOCUMENTS, state.blob_name + HINTS_SUFFIX)
    await services.documents_index.delete([state.doc_id])
