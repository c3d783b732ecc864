"""The first step: claim the document, look at its blob, and say what there is to do. Reads no content."""

from functools import partial

from shared.core.document_ids import SIDECAR_SUFFIX, digest, document_id
from shared.core.document_rights import decide_rights
from shared.core.figures import CAPTION_VERSION
from shared.core.upload_names import is_upload
from shared.errors import NotFoundError
from shared.ingestion.claims import claim, update, with_status
from shared.ingestion.prepare import ensure_ready
from shared.ingestion.quarantine import keeps_out
from shared.models.blobs import BlobProperties
from shared.models.ingestion import Accepted, DocumentState, IngestStep, Rights
from shared.models.names import DOCUMENTS
from shared.ports import BlobStore
from shared.services import Services
from shared.settings import Settings

RULES_VERSION = "2"  # of parsing and chunking: a new one makes every document new
_MAX_SIDECAR_BYTES = 64 * 1024


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
        return Accepted(outcome="noted")
    # Looked at under the claim: an event that comes from now on leaves a note.
    properties = await services.blobs.properties(DOCUMENTS, step.blob_name)
    if properties is None:
        return Accepted(outcome="gone")
    rights, sidecar_etag = await read_rights(services, properties)
    accepted = _compare(state, properties, rights, pipeline(services.settings))
    if accepted.outcome == "changed" or state.sidecar_etag != sidecar_etag:
        begun = partial(_begun, properties=properties, rights=rights, accepted=accepted)
        seen = {"sidecar_etag": sidecar_etag}
        await update(services.documents, step, lambda current: begun(current).model_copy(update=seen))
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
    rights_changed = has_rows and state.rights != rights
    if not content_changed and not rights_changed:
        return Accepted(outcome="current")
    return Accepted(outcome="changed", content_changed=content_changed, rights_changed=rights_changed)


def _begun(
    state: DocumentState, properties: BlobProperties, rights: Rights, accepted: Accepted
) -> DocumentState:
    """The state as an ingestion begins: what is wanted, and the story of the last one wiped."""
    wanted = state.model_copy(update={"wanted_etag": properties.etag, "wanted_rights": rights})
    if not accepted.content_changed:
        return wanted
    tried_reason = state.reason or state.tried_reason
    told = {"phases": (), "warnings": (), "reason": None, "hint": None, "tried_reason": tried_reason}
    return with_status(wanted.model_copy(update=told), "queued")


async def read_rights(services: Services, properties: BlobProperties) -> tuple[Rights, str]:
    """What the blob's rights are now, and the etag of the sidecar that was read; empty when there is none."""
    name = properties.name + SIDECAR_SUFFIX
    found = await services.blobs.properties(DOCUMENTS, name)
    sidecar = None if found is None else await _read_sidecar(services.blobs, found)
    if is_upload(properties.name):
        # Whoever holds a signed address writes the blob's metadata; and no default was meant for uploads.
        rights = decide_rights({}, sidecar, default_access="")
    else:
        rights = decide_rights(properties.metadata, sidecar, services.settings.default_access)
    return rights, "" if found is None or sidecar is None else found.etag


async def _read_sidecar(blobs: BlobStore, found: BlobProperties) -> str | None:
    if found.size_bytes > _MAX_SIDECAR_BYTES:
        return ""  # not JSON: closed to all but the owner
    try:
        return (await blobs.read(DOCUMENTS, found.name)).decode("utf-8-sig", "replace")
    except NotFoundError:  # removed in between
        return None
