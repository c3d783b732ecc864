"""Makes a document's rights hold in the rows of both indexes, even while another instance works on it."""

from collections.abc import Sequence
from functools import partial

from shared.documents.ids import SIDECAR_SUFFIX, document_id, is_upload
from shared.documents.index_rows import merge_rights, rights_fields
from shared.documents.rights import decide_rights
from shared.documents.state import DocumentState, Rights
from shared.ingestion.claims import MAX_WRITE_ATTEMPTS, IngestTask, contended
from shared.ingestion.models import Done
from shared.ingestion.services import IngestionServices
from shared.platform.blobs import BlobProperties
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.names import DOCUMENTS
from shared.platform.search import IndexRow

_MAX_SIDECAR_BYTES = 64 * 1024


async def read_rights(properties: BlobProperties, services: IngestionServices) -> tuple[Rights, str]:
    """The blob's present rights, and the etag of the sidecar that was read; empty when there is none."""
    found = await services.blobs.properties(DOCUMENTS, properties.name + SIDECAR_SUFFIX)
    sidecar: str | None = None
    if found is not None:
        try:
            # One that is too large is read as "": not JSON, so closed to all but the owner.
            is_readable = found.size_bytes <= _MAX_SIDECAR_BYTES
            content = await services.blobs.read(DOCUMENTS, found.name) if is_readable else b""
            sidecar = content.decode("utf-8-sig", "replace")
        except NotFoundError:  # removed in between
            found = None
    if is_upload(properties.name):
        # The sender of a signed upload writes the blob's metadata; and no default was meant for uploads.
        rights = decide_rights({}, sidecar, default_access="")
    else:
        rights = decide_rights(properties.metadata, sidecar, services.settings.ingestion.default_access)
    return rights, found.etag if found is not None else ""


async def apply_rights(task: IngestTask) -> Done:
    """Write the wanted rights into every row of the document; content and vectors stay as they are."""
    services, state = task.services, await task.update()
    while True:  # until those that were written are those that are wanted: they may change meanwhile
        written = state.wanted_rights
        await merge_rights(services.content_index, services.documents_index, state.doc_id, written)
        state = await task.update(partial(with_rights, written=written))
        if state.wanted_rights == written:
            return Done()


async def note_newest(blob_name: str, services: IngestionServices) -> None:
    """Make the present rights of a document hold in the existing rows while somebody else works on it.

    Raises:
        DependencyError: a service failed, or too many change the document at once.
    """
    documents = services.documents
    for _ in range(MAX_WRITE_ATTEMPTS):
        # In this order: rights that were replaced meanwhile are never written under an unchanged revision.
        state = await documents.get(document_id(blob_name))
        properties = await services.blobs.properties(DOCUMENTS, blob_name)
        if state is None or properties is None:
            return
        rights, sidecar_etag = await read_rights(properties, services)
        if rights == state.wanted_rights == state.rights and not state.rows_outdated:
            return
        if rights != state.wanted_rights or state.rows_outdated:
            noted = {
                "wanted_rights": rights,
                "sidecar_etag": sidecar_etag,
                "rows_outdated": True,
                "pending": True,
            }
            try:
                await documents.replace(state.model_copy(update=noted))
            except ConflictError:
                continue
        # Noted rights are written here, too: the holder may write them much later.
        while True:
            await merge_rights(services.content_index, services.documents_index, state.doc_id, rights)
            newest = await documents.get(state.doc_id)
            if newest is None or newest.wanted_rights == rights:
                return
            rights = newest.wanted_rights
    raise contended()


async def upload_blocks(task: IngestTask, rows: Sequence[IndexRow], rights: Rights) -> None:
    """Write rows that carry `rights`; if others are wanted by the time they are written, those as well.

    If the document was deleted meanwhile, they are removed again: its new holder may not have seen them.
    """
    content_index = task.services.content_index
    await content_index.upload(rows)
    keys = [str(row["block_id"]) for row in rows]
    while (state := await task.documents.get(task.doc_id)) is not None and state.wanted_rights != rights:
        rights = state.wanted_rights
        fields = rights_fields(rights)
        await content_index.merge([{"block_id": key, **fields} for key in keys])
    if state is None or state.is_deleted:
        await content_index.delete(keys)


def with_rights(state: DocumentState, written: Rights) -> DocumentState:
    """The state once these rights hold in the rows; the warning of the old ones goes."""
    kept = [warning for warning in state.warnings if warning != state.rights.warning]
    warnings = dict.fromkeys([*kept, written.warning] if written.warning else kept)
    is_outdated = state.wanted_rights != written
    return state.model_copy(
        update={"rights": written, "rows_outdated": is_outdated, "warnings": tuple(warnings)}
    )
