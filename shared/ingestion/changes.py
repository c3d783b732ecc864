"""Changes to a document by users: access list, metadata and deletion.

Each claims the document like an ingestion, so that neither overwrites the other. None parses or calls a
model. If a function returns True, an event arrived meanwhile and its caller must start an ingestion.
"""

import asyncio
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
from shared.ingestion.acceptance import pipeline
from shared.ingestion.claims import ClaimLostError, IngestTask, change_task, mark_deleted
from shared.ingestion.metadata import forget_description, with_corrections
from shared.ingestion.rights import apply_rights, note_newest, read_rights
from shared.ingestion.services import IngestionServices
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

_WAIT_S = 0.5
_WAITS = 10  # a status change takes milliseconds; long ingestions aren't waited for


async def changeable(doc_id: str, user: UserContext, documents: DocumentStore) -> DocumentState:
    """Return the state of a document that the user may change.

    Raises:
        DocumentNotFoundError: the document is missing, or the user may neither change nor see it.
        AccessDeniedError: the user may only see it.
    """
    state = await documents.get(doc_id)
    if state is None or not (may_change(user, state) or may_see(user, state)):
        raise DocumentNotFoundError(
            f"There is no document {doc_id[:64]!r}.", "List the documents to see which exist."
        )
    if not may_change(user, state):
        raise AccessDeniedError(
            "Only its owner or an administrator may change the document.", "Ask its owner."
        )
    return state


def corrections_of(wanted: MetadataCorrection) -> Corrections:
    """Return the fields in the request.

    Raises:
        CallerError: there are none.
    """
    fields = wanted.model_dump(exclude_unset=True)
    if isinstance(date := fields.get("document_date"), datetime.date):
        fields["document_date"] = date.isoformat()
    if not fields:
        raise CallerError("No field to correct.", f"Fields: {', '.join(MetadataCorrection.model_fields)}.")
    return fields


async def write_rights(
    blob_name: str, rights: Rights, blobs: BlobStore, *, only_over: str | None = None
) -> None:
    """Write permissions to the document's sidecar, which overrides all other sources.

    Args:
        only_over: etag of the sidecar to replace, "" for none; None = replace any.

    Raises:
        PreconditionFailedError: the sidecar changed.
    """
    known = {"acl": list(rights.acl), "owner_id": rights.owner_id, "project_id": rights.project_id}
    known |= rights.model_dump(include={"source_url", "published_by"}, exclude_none=True)
    name, content = blob_name + SIDECAR_SUFFIX, json.dumps(known).encode()
    if only_over is None:
        await blobs.write(DOCUMENTS, name, content)
        return
    try:
        await blobs.write_version(DOCUMENTS, name, content, etag=only_over or None)
    except ConflictError:
        # A write of ours whose answer was lost is sent again below: then what is wanted is there.
        with suppress(NotFoundError):
            if await blobs.read(DOCUMENTS, name) == content:
                return
        raise PreconditionFailedError("Its access has just been changed.", "Read it again.") from None


def _refuse_synchronised(state: DocumentState) -> None:
    if is_synchronised(state.blob_name):
        raise ConflictError(
            "The document is synchronised from SharePoint.",
            "Change its permissions or delete it there; the change arrives within ten minutes.",
        )


async def change_access(
    state: DocumentState, change: AccessChange, services: IngestionServices, *, only_unchanged: bool = False
) -> bool:
    """Apply an access list to all later queries. True = start an ingestion.

    During an ingestion, existing rows get the list at once, and the holder writes it to all others.

    Args:
        only_unchanged: fail if the permissions changed since `state` was read.

    Raises:
        PreconditionFailedError: they changed.
        ConflictError: SharePoint decides on the permissions.
    """
    _refuse_synchronised(state)
    project_id = change.project_id or state.wanted_rights.project_id
    changed = {"acl": change.acl, "project_id": project_id, "warning": None}
    rights = state.wanted_rights.model_copy(update=changed)
    only_over = state.sidecar_etag if only_unchanged else None
    await write_rights(state.blob_name, rights, services.blobs, only_over=only_over)
    properties = await services.blobs.properties(DOCUMENTS, state.blob_name)
    if properties is None:
        raise DocumentNotFoundError(f"The file of {state.filename!r} is gone.", "It has just been deleted.")
    rights, sidecar_etag = await read_rights(properties, services)
    task = change_task(state.blob_name, services)
    held = await task.take()
    if held is None:
        await note_newest(state.blob_name, services)
        return False
    await _update(task, wanted_rights=rights, sidecar_etag=sidecar_etag)
    if held.content_hash:
        await apply_rights(task)
    return await task.release()


async def correct(
    state: DocumentState,
    corrections: Corrections,
    services: IngestionServices,
    *,
    only_unchanged: bool = False,
) -> bool:
    """Apply corrections to the state and the indexes. True = start an ingestion.

    Args:
        only_unchanged: fail if the document changed since `state` was read.

    Raises:
        ConflictError: an ingestion is in progress.
        PreconditionFailedError: the document changed; start an ingestion.
    """
    task, held = await _taken(state, services)
    editable = {"corrections", "wanted_rights", "content_hash"}
    if only_unchanged and held.model_dump(include=editable) != state.model_dump(include=editable):
        await task.release()
        raise PreconditionFailedError("The document has just been changed.", "Read it again.")
    held = await _update(task, corrections={**held.corrections, **corrections})
    if held.content_hash != "" and held.pipeline == pipeline(services.settings):
        await _correct_rows(task, held)
    return await task.release()


async def try_again(state: DocumentState, services: IngestionServices) -> None:
    """Treat the document's content as new, despite earlier failures. The caller then starts an ingestion.

    Raises:
        ConflictError: an ingestion is in progress.
    """
    task, held = await _taken(state, services)
    # Use the claimed state: an ingestion may have published another version.
    await forget_description(services.blobs, held)
    await _update(task, failed_tries=0, pipeline="")
    await task.release()


async def repair(state: DocumentState, services: IngestionServices) -> None:
    """Let the next ingestion write missing rows without calling models for known results.

    If the newest version failed, its remaining rows get its permissions at once; their content can't be
    rewritten.

    Raises:
        ConflictError: an ingestion is in progress.
    """
    task, held = await _taken(state, services)
    if held.status == "failed" and held.content_hash:
        await index_rows.merge_rights(
            services.content_index, services.documents_index, held.doc_id, held.rights
        )
    else:
        await _update(task, failed_tries=0, pipeline="", copied_hash="")
    await task.release()


async def delete(state: DocumentState, services: IngestionServices) -> None:
    """Delete the file and hide the document at once; an ingestion then removes the rest.

    Raises:
        ConflictError: SharePoint decides on deletion.
    """
    _refuse_synchronised(state)
    await services.blobs.delete(DOCUMENTS, state.blob_name)
    await mark_deleted(state.doc_id, services.documents)
    # After the file: without a sidecar the document would be open to the default readers.
    await services.blobs.delete(DOCUMENTS, state.blob_name + SIDECAR_SUFFIX)
    if state.hints_etag:
        await services.blobs.delete(DOCUMENTS, state.blob_name + HINTS_SUFFIX)
    await services.documents_index.delete([state.doc_id])


async def _correct_rows(task: IngestTask, state: DocumentState) -> None:
    content_index, documents_index = task.services.content_index, task.services.documents_index
    record = await index_rows.document_record(documents_index, state.doc_id)
    if record is None:
        return
    corrected = with_corrections(record, state.corrections)
    copied = index_rows.copied_hash(corrected)
    if copied != state.copied_hash:
        keys = await index_rows.block_hashes(content_index, state.doc_id)
        fields = index_rows.copied_fields(corrected)
        await content_index.merge([{"block_id": key, **fields} for key in keys])
    # Last, as in an ingestion, so that blocks can be filtered by the listed values.
    await documents_index.merge([corrected.model_dump(mode="json")])
    await _update(task, copied_hash=copied)


async def _taken(state: DocumentState, services: IngestionServices) -> tuple[IngestTask, DocumentState]:
    task = change_task(state.blob_name, services)
    for _ in range(_WAITS):
        held = await task.take()
        if held is not None:
            return task, held
        await asyncio.sleep(_WAIT_S)
    raise ConflictError("The document is being ingested.", "Try again when it is ready.")


async def _update(task: IngestTask, **change: object) -> DocumentState:
    try:
        return await task.update(**change)
    except ClaimLostError:
        raise ConflictError("An ingestion of the document has started.", "Try again.") from None
