"""The first step: claim the document, look at its blob, and say what there is to do. Reads no content."""

from functools import partial

from shared.core.document_ids import digest, document_id
from shared.core.figures import CAPTION_VERSION
from shared.ingestion.claims import claim, update, with_status
from shared.ingestion.prepare import ensure_ready
from shared.ingestion.quarantine import keeps_out
from shared.ingestion.rights import note_newest, read_rights
from shared.ingestion.small_files import is_small
from shared.models.blobs import BlobProperties
from shared.models.ingestion import Accepted, DocumentState, IngestStep, Rights
from shared.models.names import DOCUMENTS
from shared.services import Services
from shared.settings import Settings

RULES_VERSION = "3"  # of parsing, chunking and naming: a new one makes every document new


async def accept(step: IngestStep, services: Services) -> Accepted:
    """Compare the blob with what the indexes hold.

    Raises:
        GroundworkError: a service failed.
    """
    await ensure_ready(services)
    if await _never_was(step, services):
        return Accepted(outcome="nothing")
    state = await claim(services.documents, step)
    if state is None:
        # Now, and not when the holder has ended: a narrower list must not wait for a long ingestion.
        await note_newest(step.blob_name, services)
        return Accepted(outcome="noted")
    # Looked at under the claim: an event that comes from now on leaves a note.
    properties = await services.blobs.properties(DOCUMENTS, step.blob_name)
    if properties is None:
        return Accepted(outcome="gone")
    rights, sidecar_etag = await read_rights(services, properties)
    accepted = _compare(state, properties, rights, pipeline(services.settings))
    if accepted.outcome == "changed" or state.sidecar_etag != sidecar_etag:
        begun = partial(_begun, properties=properties, accepted=accepted)
        read = partial(_with_rights, claimed=state, rights=rights, sidecar_etag=sidecar_etag)
        state = await update(services.documents, step, lambda current: begun(read(current)))
    if state.pending:
        await note_newest(step.blob_name, services)  # what was read above may be older than the note
    return accepted


def pipeline(settings: Settings) -> str:
    """A hash of everything beside the file that decides its blocks, and of where they are."""
    return digest(
        RULES_VERSION,
        CAPTION_VERSION,
        settings.embedding_model,
        str(settings.embedding_dimensions),
        str(settings.max_block_tokens),
        settings.azure_search_content_index,
        settings.azure_search_documents_index,
        *_parser_services(settings),
    )[:16]


def _parser_services(settings: Settings) -> tuple[str, ...]:
    """Nothing where there are none: what our own parsers read stays as it is."""
    choice = (settings.parser_backend, settings.text_recognition)
    return () if choice == ("local", "tesseract") else choice


async def _never_was(step: IngestStep, services: Services) -> bool:
    if await services.blobs.properties(DOCUMENTS, step.blob_name) is not None:
        return False
    return await services.documents.get(document_id(step.blob_name)) is None


def _compare(
    state: DocumentState, properties: BlobProperties, rights: Rights, current_pipeline: str
) -> Accepted:
    has_rows = state.content_hash != "" and state.pipeline == current_pipeline
    content_changed = (state.blob_etag != properties.etag or not has_rows) and not keeps_out(
        state, properties.etag
    )
    # Also if the rows are those of other settings: a narrower list holds before they are replaced.
    rights_changed = state.content_hash != "" and state.rights != rights
    if not content_changed and not rights_changed:
        return Accepted(outcome="current")
    return Accepted(
        outcome="changed",
        content_changed=content_changed,
        rights_changed=rights_changed,
        small=content_changed and is_small(properties),
    )


def _with_rights(
    state: DocumentState, claimed: DocumentState, rights: Rights, sidecar_etag: str
) -> DocumentState:
    """The rights that were read under the claim, unless somebody noted others since: theirs are newer."""
    if state.wanted_rights != claimed.wanted_rights:
        return state
    return state.model_copy(update={"wanted_rights": rights, "sidecar_etag": sidecar_etag})


def _begun(state: DocumentState, properties: BlobProperties, accepted: Accepted) -> DocumentState:
    """The state as an ingestion begins: what is wanted, and the story of the last one wiped.

    Warnings stay while they tell of what is in the indexes: it may be the same bytes again.
    """
    wanted = state.model_copy(update={"wanted_etag": properties.etag})
    if not accepted.content_changed:
        return wanted
    tried_reason = state.reason or state.tried_reason
    told: dict[str, object] = {"phases": (), "reason": None, "hint": None, "tried_reason": tried_reason}
    if not state.content_hash:
        told["warnings"] = ()
    return with_status(wanted.model_copy(update=told), "queued")
