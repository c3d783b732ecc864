"""Changes to a document by people: who may read it, what it is called, and its end.

Each holds the document as an ingestion would, so that neither overwrites the other. None parses, and none
calls a model. What a function returns says whether an ingestion must be started after it: an event came
meanwhile.
"""

import asyncio
import json
from contextlib import suppress
from functools import partial

from shared.access.models import UserContext
from shared.documents import index_rows
from shared.documents.ids import SIDECAR_SUFFIX
from shared.documents.metadata import with_corrections
from shared.documents.models import Corrections
from shared.documents.requests import AccessChange, MetadataCorrection
from shared.documents.rights import may_change, may_see
from shared.documents.state import DocumentState, DocumentStore, Rights
from shared.ingestion import claims, extracted
from shared.ingestion.accepting import note_newest, pipeline, read_rights
from shared.ingestion.claims import ClaimLostError
from shared.ingestion.models import IngestStep
from shared.ingestion.services import IngestionServices
from shared.ingestion.writing import apply_rights
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
from shared.platform.search import SearchIndex
from shared.platform.settings import Settings

_WAIT_S = 0.5
_WAITS = 10  # a status change takes milliseconds; a long ingestion is not waited for


async def changeable(doc_id: str, user: UserContext, documents: DocumentStore) -> DocumentState:
    """The state of a document that the user may change.

    Raises:
        DocumentNotFoundError: there is none, or the user may neither change nor see it.
        AccessDeniedError: the user may see it, and no more.
    """
    state = await documents.get(doc_id)
    if state is None or not (may_change(user, state) or may_see(user, state)):
        raise DocumentNotFoundError(
            f"There is no document {doc_id[:64]!r}.", "List the documents to see which there are."
        )
    if not may_change(user, state):
        raise AccessDeniedError(
            "Only its owner or an administrator may change the document.", "Ask its owner to do it."
        )
    return state


def corrections_of(wanted: MetadataCorrection) -> Corrections:
    """The fields that were sent.

    Raises:
        CallerError: none was.
    """
    fields = wanted.model_dump(exclude_unset=True)
    if not fields:
        raise CallerError("No field to correct.", f"Fields: {', '.join(MetadataCorrection.model_fields)}.")
    return fields


async def write_rights(blob_name: str, rights: Rights, blobs: BlobStore) -> None:
    """Put rights into the document's sidecar, which wins over everything else that says who may read it."""
    await blobs.write(DOCUMENTS, blob_name + SIDECAR_SUFFIX, _sidecar_of(rights))


async def change_access(
    state: DocumentState, change: AccessChange, services: IngestionServices, *, only_unchanged: bool = False
) -> bool:
    """Make the list hold, for the next query already. True = start an ingestion.

    While somebody else works on the document, the rows that there are get the list at once, and whoever works
    on it writes it into all others.

    Args:
        only_unchanged: not if somebody changed the rights since `state` was read.

    Raises:
        PreconditionFailedError: they changed, and must not have.
    """
    project_id = change.project_id or state.wanted_rights.project_id
    changed = {"acl": change.acl, "project_id": project_id, "warning": None}
    rights = state.wanted_rights.model_copy(update=changed)
    if only_unchanged:
        await _replace_rights(state, rights, services.blobs)
    else:
        await write_rights(state.blob_name, rights, services.blobs)
    properties = await services.blobs.properties(DOCUMENTS, state.blob_name)
    if properties is None:
        raise _gone(state)
    rights, sidecar_etag = await read_rights(services.settings, services.blobs, properties)
    step = claims.change_step(state.blob_name)
    held = await claims.claim(services.documents, step)
    if held is None:
        await note_newest(state.blob_name, services)
        return False
    wanted = {"wanted_rights": rights, "sidecar_etag": sidecar_etag}
    await _update(step, services.documents, wanted)
    if held.content_hash:
        await apply_rights(step, services)
    return await claims.release(services.documents, step)


async def correct(
    state: DocumentState,
    corrections: Corrections,
    services: IngestionServices,
    *,
    only_unchanged: bool = False,
) -> bool:
    """Make corrections hold, in the state and in the indexes. True = start an ingestion.

    Args:
        only_unchanged: not if somebody changed the document since `state` was read.

    Raises:
        ConflictError: the document is being ingested.
        PreconditionFailedError: it changed, and must not have; start an ingestion.
    """
    step = claims.change_step(state.blob_name)
    held = await _claimed(step, services.documents)
    if only_unchanged and _editable(held) != _editable(state):
        await claims.release(services.documents, step)
        raise PreconditionFailedError("The document was changed just now.", "Read it again.")
    merged = {**held.corrections, **corrections}
    held = await _update(step, services.documents, {"corrections": merged})
    if _is_indexed(held, services.settings):
        await _correct_rows(step, held, services.content_index, services.documents_index, services.documents)
    return await claims.release(services.documents, step)


async def try_again(state: DocumentState, blobs: BlobStore, documents: DocumentStore) -> None:
    """Make the document's content count as new, whatever was tried before; then start an ingestion.

    Raises:
        ConflictError: the document is being ingested.
    """
    step = claims.change_step(state.blob_name)
    await _claimed(step, documents)
    # Once the document is held: an ingestion that ends now would leave a fresh one.
    await extracted.remove(blobs, state.doc_id)
    await _update(step, documents, {"failed_tries": 0, "pipeline": ""})
    await claims.release(documents, step)


async def mend(state: DocumentState, documents: DocumentStore) -> None:
    """Make the document's rows count as outdated; an ingestion then writes what is missing, and asks no model
    for what is known.

    Raises:
        ConflictError: the document is being ingested.
    """
    step = claims.change_step(state.blob_name)
    await _claimed(step, documents)
    await _update(step, documents, {"failed_tries": 0, "pipeline": "", "copied_hash": ""})
    await claims.release(documents, step)


async def mend_rights(state: DocumentState, documents: DocumentStore) -> None:
    """Make the document's access list count as never written; an ingestion then writes it into every row.

    Raises:
        ConflictError: the document is being ingested.
    """
    step = claims.change_step(state.blob_name)
    await _claimed(step, documents)
    await _update(step, documents, {"rights": Rights(warning=state.rights.warning)})
    await claims.release(documents, step)


async def delete(state: DocumentState, services: IngestionServices) -> None:
    """Delete the file, and take the document from the list; an ingestion then removes the rest."""
    await services.blobs.delete(DOCUMENTS, state.blob_name)
    # After the file: without its sidecar a document would be open to whomever the default names.
    await services.blobs.delete(DOCUMENTS, state.blob_name + SIDECAR_SUFFIX)
    await services.documents_index.delete([state.doc_id])


async def _replace_rights(state: DocumentState, rights: Rights, blobs: BlobStore) -> None:
    name, etag = state.blob_name + SIDECAR_SUFFIX, state.sidecar_etag or None
    wanted = _sidecar_of(rights)
    try:
        await blobs.write_version(DOCUMENTS, name, wanted, etag=etag)
    except ConflictError:
        # A write of ours whose answer was lost is sent again below: then what is wanted is there.
        with suppress(NotFoundError):
            if await blobs.read(DOCUMENTS, name) == wanted:
                return
        raise PreconditionFailedError("Its access was changed just now.", "Read it again.") from None


def _sidecar_of(rights: Rights) -> bytes:
    content = {"acl": list(rights.acl), "owner_id": rights.owner_id, "project_id": rights.project_id}
    if rights.source_url:
        content["source_url"] = rights.source_url
    return json.dumps(content).encode()


async def _correct_rows(
    step: IngestStep,
    state: DocumentState,
    content_index: SearchIndex,
    documents_index: SearchIndex,
    documents: DocumentStore,
) -> None:
    record = await index_rows.document_record(documents_index, state.doc_id)
    if record is None:
        return
    corrected = with_corrections(record, state.corrections)
    copied = index_rows.copied_hash(corrected)
    if copied != state.copied_hash:
        keys = await index_rows.block_ids(content_index, state.doc_id)
        fields = index_rows.copied_fields(corrected)
        await content_index.merge([{"block_id": key, **fields} for key in keys])
    # Last, as in an ingestion: what the list says, the blocks can be filtered by.
    await documents_index.merge([index_rows.document_row(corrected)])
    await _update(step, documents, {"copied_hash": copied})


async def _claimed(step: IngestStep, documents: DocumentStore) -> DocumentState:
    for _ in range(_WAITS):
        held = await claims.claim(documents, step)
        if held is not None:
            return held
        await asyncio.sleep(_WAIT_S)
    raise ConflictError("The document is being ingested.", "Try again when it is ready.")


async def _update(step: IngestStep, documents: DocumentStore, change: dict[str, object]) -> DocumentState:
    try:
        return await claims.update(documents, step, partial(_with, change=change))
    except ClaimLostError:
        raise ConflictError("The document was taken over by an ingestion.", "Try again.") from None


def _with(state: DocumentState, change: dict[str, object]) -> DocumentState:
    return state.model_copy(update=change)


def _editable(state: DocumentState) -> tuple[object, ...]:
    """What people change, and what a correction is about."""
    return state.corrections, state.wanted_rights, state.content_hash


def _is_indexed(state: DocumentState, settings: Settings) -> bool:
    return state.content_hash != "" and state.pipeline == pipeline(settings)


def _gone(state: DocumentState) -> DocumentNotFoundError:
    return DocumentNotFoundError(f"The file of {state.filename!r} is gone.", "It was deleted just now.")
