"""Who may read a document: read beside its file, and made to hold while others work on it.

Whoever changes rights tells the state first, then changes the rows that there are; whoever writes rows looks
at the state after writing them. So each row is changed by one of the two, whatever happens in between.
"""

from collections.abc import Sequence

from shared.core.document_ids import SIDECAR_SUFFIX, document_id
from shared.core.document_rights import decide_rights
from shared.core.upload_names import is_upload
from shared.errors import ConflictError, DependencyError, NotFoundError
from shared.ingestion import index_rows
from shared.models.blobs import BlobProperties
from shared.models.ingestion import Rights
from shared.models.names import DOCUMENTS
from shared.models.search import IndexRow
from shared.ports import BlobStore
from shared.services import Services

_MAX_SIDECAR_BYTES = 64 * 1024
_TRIES = 8  # of a compare-and-write


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


async def note_newest(blob_name: str, services: Services) -> None:
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
        rights, sidecar_etag = await read_rights(services, properties)
        if rights == state.wanted_rights and not state.rows_outdated:
            if rights != state.rights:  # whoever works on it has noted them, and may write them much later
                await _merge_newest(state.doc_id, rights, services)
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
        await _merge_newest(state.doc_id, rights, services)
        return
    raise DependencyError("The document's state is being changed by too many at once.", "Try again.")


async def upload_blocks(rows: Sequence[IndexRow], doc_id: str, rights: Rights, services: Services) -> None:
    """Write rows that carry `rights`; if others are wanted by the time they are written, those as well.

    If the document was removed meanwhile, by whoever took it over, they go again.
    """
    await services.content_index.upload(rows)
    keys = [str(row["block_id"]) for row in rows]
    while (state := await services.documents.get(doc_id)) is not None and state.wanted_rights != rights:
        rights = state.wanted_rights
        fields = index_rows.rights_fields(rights)
        await services.content_index.merge([{"block_id": key, **fields} for key in keys])
    if state is None:
        await services.content_index.delete(keys)


async def _merge_newest(doc_id: str, rights: Rights, services: Services) -> None:
    """Write rights into every row that there is, and again if newer ones came meanwhile."""
    while True:
        await index_rows.merge_rights(services, doc_id, rights)
        state = await services.documents.get(doc_id)
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
