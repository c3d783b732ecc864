"""The first step: claim the document, look at its blob, and say what there is to do. Reads no content."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import PurePosixPath

from shared.documents.figure_store import CAPTION_VERSION
from shared.documents.ids import SIDECAR_SUFFIX, document_id, is_upload
from shared.documents.index_rows import merge_rights, rights_fields
from shared.documents.rights import decide_rights
from shared.documents.state import DocumentState, DocumentStore, Rights
from shared.ingestion.claims import claim, is_change, now, update, with_status
from shared.ingestion.models import Accepted, Closed, IngestStep
from shared.ingestion.quarantine import keeps_out
from shared.ingestion.services import IngestionServices
from shared.platform.blobs import BlobProperties, BlobStore
from shared.platform.errors import ConflictError, DependencyError, NotFoundError
from shared.platform.hashing import digest
from shared.platform.names import DOCUMENTS
from shared.platform.search import IndexRow, SearchIndex
from shared.platform.settings import Settings

MAX_BYTES = 32 * 1024  # some 9,000 tokens: one request for their vectors, and seconds until all is done
_SUFFIXES = frozenset({".txt", ".md", ".markdown", ".csv", ".tsv", ".html", ".htm", ".eml", ".vtt", ".srt"})


def is_small(properties: BlobProperties) -> bool:
    """Whether a blob goes the short way."""
    return is_short_text(properties.name, properties.size_bytes)


def is_short_text(filename: str, size_bytes: int) -> bool:
    """Whether it takes no longer to read than to ask."""
    return size_bytes <= MAX_BYTES and PurePosixPath(filename).suffix.lower() in _SUFFIXES


HasEnded = Callable[[str], Awaitable[bool]]
"""Takes the id of an orchestration's instance; True when it will do nothing any more."""


async def check_holder(step: IngestStep, documents: DocumentStore, has_ended: HasEnded) -> Closed:
    """Free the document if its holder is dead; `again` = nobody works on it, and our event is still open.

    Raises:
        DependencyError: a change by a person is under way; soon it is not, or its lease has run out.
    """
    while True:
        state = await documents.get(document_id(step.blob_name))
        if state is None or not state.pending:
            return Closed(again=False)  # somebody has looked at the blob since we left our note
        if state.holder is None or state.holder == step.instance_id:
            return Closed(again=True)
        if not await _is_dead(state, has_ended):
            return Closed(again=False)
        try:
            await documents.replace(state.model_copy(update={"holder": None, "held_until": None}))
        except ConflictError:
            continue
        return Closed(again=True)


async def _is_dead(state: DocumentState, has_ended: HasEnded) -> bool:
    if state.held_until is None or state.held_until <= now():
        return True
    if state.holder is None or not is_change(state.holder):
        return state.holder is None or await has_ended(state.holder)
    raise DependencyError("The document is being changed just now.", "It is looked at again.")


_MAX_SIDECAR_BYTES = 64 * 1024
_TRIES = 8  # of a compare-and-write


async def read_rights(settings: Settings, blobs: BlobStore, properties: BlobProperties) -> tuple[Rights, str]:
    """What the blob's rights are now, and the etag of the sidecar that was read; empty when there is none."""
    name = properties.name + SIDECAR_SUFFIX
    found = await blobs.properties(DOCUMENTS, name)
    sidecar = None if found is None else await _read_sidecar(blobs, found)
    if is_upload(properties.name):
        # Whoever holds a signed address writes the blob's metadata; and no default was meant for uploads.
        rights = decide_rights({}, sidecar, default_access="")
    else:
        rights = decide_rights(properties.metadata, sidecar, settings.ingestion.default_access)
    return rights, "" if found is None or sidecar is None else found.etag


async def note_newest(blob_name: str, services: IngestionServices) -> None:
    """Make a document's rights of now hold in the rows that there are, while somebody else works on it.

    Raises:
        DependencyError: a service failed, or too many change the document at once.
    """
    for _ in range(_TRIES):
        # In this order: rights that are told under an unchanged revision are none that somebody replaced.
        state = await services.documents.get(document_id(blob_name))
        properties = await services.blobs.properties(DOCUMENTS, blob_name)
        if state is None or properties is None:
            return
        rights, sidecar_etag = await read_rights(services.settings, services.blobs, properties)
        if rights == state.wanted_rights and not state.rows_outdated:
            if rights != state.rights:  # whoever works on it has noted them, and may write them much later
                await _merge_newest(
                    state.doc_id, rights, services.content_index, services.documents_index, services.documents
                )
            return
        noted = {
            "wanted_rights": rights,
            "sidecar_etag": sidecar_etag,
            "rows_outdated": True,
            "pending": True,
        }
        try:
            await services.documents.replace(state.model_copy(update=noted))
        except ConflictError:
            continue
        await _merge_newest(
            state.doc_id, rights, services.content_index, services.documents_index, services.documents
        )
        return
    raise DependencyError("The document's state is being changed by too many at once.", "Try again.")


async def upload_blocks(
    rows: Sequence[IndexRow],
    doc_id: str,
    rights: Rights,
    content_index: SearchIndex,
    documents: DocumentStore,
) -> None:
    """Write rows that carry `rights`; if others are wanted by the time they are written, those as well.

    If the document was removed meanwhile, by whoever took it over, they go again.
    """
    await content_index.upload(rows)
    keys = [str(row["block_id"]) for row in rows]
    while (state := await documents.get(doc_id)) is not None and state.wanted_rights != rights:
        rights = state.wanted_rights
        fields = rights_fields(rights)
        await content_index.merge([{"block_id": key, **fields} for key in keys])
    if state is None:
        await content_index.delete(keys)


async def _merge_newest(
    doc_id: str,
    rights: Rights,
    content_index: SearchIndex,
    documents_index: SearchIndex,
    documents: DocumentStore,
) -> None:
    """Write rights into every row that there is, and again if newer ones came meanwhile."""
    while True:
        await merge_rights(content_index, documents_index, doc_id, rights)
        state = await documents.get(doc_id)
        if state is None or state.wanted_rights == rights:
            return
        rights = state.wanted_rights


async def _read_sidecar(blobs: BlobStore, found: BlobProperties) -> str | None:
    if found.size_bytes > _MAX_SIDECAR_BYTES:
        return ""  # not JSON: closed to all but the owner
    try:
        return (await blobs.read(DOCUMENTS, found.name)).decode("utf-8-sig", "replace")
    except NotFoundError:  # removed in between
        return None


RULES_VERSION = "3"  # of parsing, chunking and naming: a new one makes every document new


async def accept(step: IngestStep, services: IngestionServices) -> Accepted:
    """Compare the blob with what the indexes hold.

    Raises:
        GroundworkError: a service failed.
    """
    await services.ensure_prepared()
    if await _never_was(step, services.blobs, services.documents):
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
    rights, sidecar_etag = await read_rights(services.settings, services.blobs, properties)
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
        settings.models.embedding,
        str(settings.models.embedding_dimensions),
        str(settings.ingestion.max_block_tokens),
        settings.search.content_index,
        settings.search.documents_index,
        *_parser_services(settings),
    )[:16]


def _parser_services(settings: Settings) -> tuple[str, ...]:
    """Nothing where there are none: what our own parsers read stays as it is."""
    choice = (settings.ingestion.parser_backend, settings.ingestion.text_recognition)
    return () if choice == ("local", "tesseract") else choice


async def _never_was(step: IngestStep, blobs: BlobStore, documents: DocumentStore) -> bool:
    if await blobs.properties(DOCUMENTS, step.blob_name) is not None:
        return False
    return await documents.get(document_id(step.blob_name)) is None


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
