"""First step of an ingestion: fence off other executions, compare the blob with its row, and decide what to
do.

Content is not read. `is_duplicate_event` decides whether an event needs an ingestion at all.
"""

from collections.abc import Mapping
from functools import partial

from shared.documents.figure_store import CAPTION_VERSION
from shared.documents.ids import document_id, document_of_blob, has_own_sidecar, hints_of, is_sidecar
from shared.documents.state import DocumentState, Rights
from shared.ingestion.models import Accepted
from shared.ingestion.rights import apply_newest, apply_to_published, read_rights
from shared.ingestion.row_changes import apply_corrections
from shared.ingestion.services import IngestionServices
from shared.ingestion.task import (
    IngestTask,
    is_quarantined,
    is_small,
    mark_deleted,
    reset_after_deletion,
    with_status,
)
from shared.platform.blobs import BlobProperties
from shared.platform.errors import DependencyError
from shared.platform.hashing import digest
from shared.platform.names import DOCUMENTS
from shared.platform.settings import Settings

# Version of the parsing, chunking and naming rules. Raising it reingests every document.
RULES_VERSION = "11"


async def accept(task: IngestTask) -> Accepted:
    """Compare a document's blob with the indexed version, and return the work to do in this ingestion.

    Raises:
        GroundworkError: a service failed.
    """
    services, blob_name = task.services, task.step.blob_name
    await services.ensure_prepared()
    if await task.blobs.properties(DOCUMENTS, blob_name) is None and not await mark_deleted(
        task.doc_id, task.documents
    ):
        if not await task.end_without_document():
            raise DependencyError("The document was created a moment ago.", "The step will be retried.")
        return Accepted(outcome="nothing")
    state = await task.acquire()
    # Read the blob after the row. If the blob changes later, its event increases the row's wish counter, and
    # another ingestion follows this one.
    properties = await task.blobs.properties(DOCUMENTS, blob_name)
    if properties is None:
        return Accepted(outcome="gone", **task.observed_values)
    return await _compare_blob(task, reset_after_deletion(state), properties)


async def _compare_hints(task: IngestTask, state: DocumentState, blob_name: str) -> DocumentState:
    """Mark the document's index rows as outdated if its table hints have changed since the last ingestion.
    Return the document's state.
    """
    hints = hints_of(blob_name)
    hints_blob = await task.blobs.properties(DOCUMENTS, hints) if hints else None
    hints_etag = hints_blob.etag if hints_blob is not None else ""
    if state.hints_etag == hints_etag:
        return state
    return await task.update(hints_etag=hints_etag, pipeline="", failed_tries=0)


def _needs_ingestion(state: DocumentState, properties: BlobProperties, settings: Settings) -> bool:
    """Return whether the file must be ingested: its current bytes, settings and rules aren't indexed yet, and
    the file isn't quarantined.
    """
    has_rows = state.content_hash != "" and state.pipeline == pipeline(settings)
    is_refused = is_quarantined(state) and state.wanted_etag == properties.etag
    # An attempt that died in its last step leaves stale index rows and files, so the content only counts as
    # current if the last ingestion finished.
    has_ended = state.status in ("ready", "failed")
    is_current = has_rows and state.blob_etag == properties.etag and has_ended
    return not is_current and not is_refused


async def _compare_blob(task: IngestTask, state: DocumentState, properties: BlobProperties) -> Accepted:
    """Compare an existing blob with the row of its document, update the row, and return the work to do in
    this ingestion.
    """
    services, blob_name = task.services, properties.name
    rights, sidecar_etag = await read_rights(properties, services)
    if has_own_sidecar(blob_name) and not sidecar_etag and not state.content_hash:
        # The app writes the access list before the file. Without an access list, the file came through an
        # upload URL that outlived the erasure of its sender, so it must not become a document.
        await task.blobs.delete(DOCUMENTS, blob_name)
        return Accepted(outcome="gone", **task.observed_values)
    state = await _compare_hints(task, state, blob_name)
    content_changed = _needs_ingestion(state, properties, services.settings)
    # Copy a narrower access list to the index rows even if the ingestion is about to replace them. Rows whose
    # permissions were never copied are only rewritten here if no ingestion follows.
    copies_lag = state.rows_outdated and not content_changed
    # An unpublished file must not widen the access to the published version. Narrower access needs no action
    # here: queries already honour `wanted_rights` in the document's row.
    is_shown = state.content_hash != "" and apply_to_published(properties, sidecar_etag, state)
    rights_changed = is_shown and (state.rights != rights or copies_lag)
    is_changed = content_changed or rights_changed
    small = content_changed and is_small(blob_name, properties.size_bytes)
    task.blob = properties

    if is_changed or (state.wanted_rights, state.sidecar_etag) != (rights, sidecar_etag):
        read = {"wanted_rights": rights, "sidecar_etag": sidecar_etag}
        begin = partial(_begin, looked_at=state.wanted_rights, read=read, etag=properties.etag)
        state = await task.update(
            lambda current: reset_to_queued(begin(current)) if content_changed else begin(current)
        )
    # If the content changed, the ingestion that follows writes the corrections.
    if state.has_unshown_corrections and not content_changed:
        await apply_corrections(task)
    if state.wish != task.step.wish:
        # An event arrived after the row was read, so the permissions read above may be out of date.
        await apply_newest(blob_name, services)
    return Accepted(
        outcome="changed" if is_changed else "current",
        content_changed=content_changed,
        rights_changed=rights_changed,
        small=small,
        **task.observed_values,
    )


def _begin(current: DocumentState, looked_at: Rights, read: Mapping[str, object], etag: str) -> DocumentState:
    # If other permissions were written to the row after it was read, keep them: they are newer than those in
    # `read`.
    update = read if current.wanted_rights == looked_at else {}
    return reset_after_deletion(current.model_copy(update=update)).model_copy(update={"wanted_etag": etag})


async def is_duplicate_event(blob: BlobProperties, services: IngestionServices) -> bool:
    """Return whether an event for this document or sidecar can be ignored, because an ingestion would find
    nothing to do.

    Besides starting an ingestion itself, an upload raises two events, which usually arrive after the
    ingestion has finished. An orchestration for each would cost two thirds of a short document's ingestion.
    If in doubt, the result is False.


    Raises:
        GroundworkError: a service failed.
    """
    blob_name = document_of_blob(blob.name)
    state = await services.documents.get(document_id(blob_name))
    if state is None:
        # There is no document yet. The event for its file will start an ingestion, which also reads this
        # sidecar.
        return is_sidecar(blob.name)
    is_settled = (
        state.status == "ready"
        and not state.is_open
        and not state.rows_outdated
        and not state.has_unshown_corrections
        and not state.is_deleted
        and state.rights == state.wanted_rights
        and state.pipeline == pipeline(services.settings)
    )
    if not is_sidecar(blob.name):
        return is_settled and state.blob_etag == blob.etag
    known_etag = state.hints_etag if blob.name == hints_of(blob_name) else state.sidecar_etag
    return known_etag == blob.etag and (is_settled or state.is_open)


def pipeline(settings: Settings) -> str:
    """Return a hash of the settings and rules that determine a document's blocks, in addition to its file."""
    parser_services = (settings.ingestion.parser_backend, settings.ingestion.text_recognition)
    return digest(
        RULES_VERSION,
        CAPTION_VERSION,
        settings.models.embedding,
        str(settings.models.embedding_dimensions),
        str(settings.ingestion.max_block_tokens),
        settings.search.content_index,
        settings.search.documents_index,
        *(() if parser_services == ("local", "tesseract") else parser_services),
    )[:16]


def version_key(content_hash: str, hints_etag: str, settings: Settings) -> str:
    """Return the key of the version produced from a file with this content hash, these table hints and
    settings.
    """
    made_by = pipeline(settings)
    return f"{content_hash}-{digest(made_by, hints_etag)[:16] if hints_etag else made_by}"


def with_number(state: DocumentState, version_key: str) -> DocumentState:
    """Return the state with the version number for this key. A new key gets the next unused number."""
    if version_key in (state.version_key, state.begun_key):
        return state
    number = max(state.version, state.begun_version) + 1
    return state.model_copy(update={"begun_key": version_key, "begun_version": number})


def number_of(state: DocumentState, version_key: str) -> int:
    """Return the version number that `with_number` assigned to this key."""
    return state.version if version_key == state.version_key else state.begun_version


def reset_to_queued(state: DocumentState) -> DocumentState:
    """Return the state with the status "queued" and without the results of the last ingestion.

    The reason for a failure is kept in `tried_reason` and `tried_failure`.
    """
    last_failure = (
        (state.reason, state.failure) if state.reason else (state.tried_reason, state.tried_failure)
    )
    cleared: dict[str, object] = {"phases": (), "reason": None, "hint": None, "failure": None}
    cleared |= {"tried_reason": last_failure[0], "tried_failure": last_failure[1]}
    if not state.content_hash:
        # Keep the warnings of an indexed version: the new file may have the same bytes, and the warnings then
        # still apply.
        cleared["warnings"] = ()
    return with_status(state.model_copy(update=cleared), "queued")
