"""The first step of an ingestion: fence the document, compare its blob, and determine the work.

Content is not read. `is_duplicate_event` decides whether an event needs an ingestion at all.
"""

from collections.abc import Mapping
from functools import partial

from shared.documents.figure_store import CAPTION_VERSION
from shared.documents.ids import document_id, document_of_blob, has_own_sidecar, hints_of, is_sidecar
from shared.documents.state import DocumentState, Rights
from shared.ingestion.models import Accepted
from shared.ingestion.rights import apply_newest, are_of_shown, read_rights
from shared.ingestion.row_changes import apply_corrections
from shared.ingestion.services import IngestionServices
from shared.ingestion.task import (
    IngestTask,
    is_quarantined,
    is_small,
    mark_deleted,
    revived,
    with_status,
)
from shared.platform.blobs import BlobProperties
from shared.platform.errors import DependencyError
from shared.platform.hashing import digest
from shared.platform.names import DOCUMENTS
from shared.platform.settings import Settings

RULES_VERSION = "9"  # of parsing, chunking and naming; raising it reingests every document


async def accept(task: IngestTask) -> Accepted:
    """Compare the blob with the indexed version.

    Raises:
        GroundworkError: a service failed.
    """
    services, blob_name = task.services, task.step.blob_name
    await services.ensure_prepared()
    if await task.blobs.properties(DOCUMENTS, blob_name) is None and not await mark_deleted(
        task.doc_id, task.documents
    ):
        if not await task.end_nothing():
            raise DependencyError("The document was created just now.", "It will be read.")
        return Accepted(outcome="nothing")
    state = await task.take()
    # Read after the wish, so that later events are looked at next time.
    properties = await task.blobs.properties(DOCUMENTS, blob_name)
    if properties is None:
        return Accepted(outcome="gone", **task.looked)
    return await _compared(task, revived(state), properties)


async def _compared(task: IngestTask, state: DocumentState, properties: BlobProperties) -> Accepted:
    """Return the work for the existing blob of a document."""
    services, blob_name = task.services, properties.name
    rights, sidecar_etag = await read_rights(properties, services)
    if has_own_sidecar(blob_name) and not sidecar_etag and not state.content_hash:
        # Its access list comes first, and goes when its sender is erased: an address that is still open then
        # makes no document any more.
        await task.blobs.delete(DOCUMENTS, blob_name)
        return Accepted(outcome="gone", **task.looked)
    hints = hints_of(blob_name)
    found = await task.blobs.properties(DOCUMENTS, hints) if hints else None
    hints_etag = found.etag if found is not None else ""
    if state.hints_etag != hints_etag:  # until an ingestion has ended, the content counts as new
        state = await task.update(hints_etag=hints_etag, pipeline="", failed_tries=0)
    has_rows = state.content_hash != "" and state.pipeline == pipeline(services.settings)
    is_refused = is_quarantined(state) and state.wanted_etag == properties.etag
    # An attempt that died in the last step leaves stale rows and files.
    has_ended = state.status in ("ready", "failed")
    is_current = has_rows and state.blob_etag == properties.etag and has_ended
    content_changed = not is_current and not is_refused
    # Also for rows of other settings: a narrower list applies before they are replaced.
    # Outdated copies are rewritten; an ingestion does so anyway.
    copies_lag = state.rows_outdated and not content_changed
    # Until a new version is shown, its metadata only narrow, by the wanted rights in the row.
    is_shown = state.content_hash != "" and are_of_shown(properties, sidecar_etag, state)
    rights_changed = is_shown and (state.rights != rights or copies_lag)
    is_changed = content_changed or rights_changed
    small = content_changed and is_small(blob_name, properties.size_bytes)
    task.blob = properties

    if is_changed or (state.wanted_rights, state.sidecar_etag) != (rights, sidecar_etag):
        read = {"wanted_rights": rights, "sidecar_etag": sidecar_etag}
        begun = partial(_begun, looked_at=state.wanted_rights, read=read, etag=properties.etag)
        state = await task.update(
            lambda current: queued(begun(current)) if content_changed else begun(current)
        )
    if state.has_unshown_corrections and not content_changed:  # else the ingestion writes them
        await apply_corrections(task)
    if state.wish != task.step.wish:
        await apply_newest(blob_name, services)  # the values read above may be older than the newest wish
    return Accepted(
        outcome="changed" if is_changed else "current",
        content_changed=content_changed,
        rights_changed=rights_changed,
        small=small,
        **task.looked,
    )


def _begun(current: DocumentState, looked_at: Rights, read: Mapping[str, object], etag: str) -> DocumentState:
    # Permissions written since the look are newer than those read after it.
    noted = read if current.wanted_rights == looked_at else {}
    return revived(current.model_copy(update=noted)).model_copy(update={"wanted_etag": etag})


async def is_duplicate_event(written: BlobProperties, services: IngestionServices) -> bool:
    """Return whether this version of a document or sidecar needs no work.

    An upload raises two events besides its own start, mostly after all is done; an orchestration for each
    would cost two thirds of a short document's ingestion. If in doubt, return False: the ingestion finds out.

    Raises:
        GroundworkError: a service failed.
    """
    blob_name = document_of_blob(written.name)
    state = await services.documents.get(document_id(blob_name))
    if state is None:
        # A sidecar of an unread file: the ingestion started by the file's own event reads both.
        return is_sidecar(written.name)
    is_settled = (
        state.status == "ready"
        and not state.is_open
        and not state.rows_outdated
        and not state.has_unshown_corrections
        and not state.is_deleted
        and state.rights == state.wanted_rights
        and state.pipeline == pipeline(services.settings)
    )
    if not is_sidecar(written.name):
        return is_settled and state.blob_etag == written.etag
    known_etag = state.hints_etag if written.name == hints_of(blob_name) else state.sidecar_etag
    return known_etag == written.etag and (is_settled or state.is_open)


def pipeline(settings: Settings) -> str:
    """Return a hash of the settings and rules that, together with the file, determine its blocks."""
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
    """Return the key of the version made from these bytes, hints and settings."""
    made_by = pipeline(settings)
    return f"{content_hash}-{digest(made_by, hints_etag)[:16] if hints_etag else made_by}"


def with_number(state: DocumentState, version_key: str) -> DocumentState:
    """Return the state in which the version has a number never used before."""
    if version_key in (state.version_key, state.begun_key):
        return state
    number = max(state.version, state.begun_version) + 1
    return state.model_copy(update={"begun_key": version_key, "begun_version": number})


def number_of(state: DocumentState, version_key: str) -> int:
    """Return the number assigned by `with_number`."""
    return state.version if version_key == state.version_key else state.begun_version


def queued(state: DocumentState) -> DocumentState:
    """Return the state of a document whose new version hasn't been read.

    The last ingestion's outcome is cleared, except why its bytes failed.
    """
    tried = (state.reason, state.failure) if state.reason else (state.tried_reason, state.tried_failure)
    cleared: dict[str, object] = {"phases": (), "reason": None, "hint": None, "failure": None}
    cleared |= {"tried_reason": tried[0], "tried_failure": tried[1]}
    if not state.content_hash:
        cleared["warnings"] = ()  # otherwise they describe the indexed version, possibly the same bytes
    return with_status(state.model_copy(update=cleared), "queued")
