"""Document permissions: read from the sidecar, blob metadata or the default, and applied to row and indexes.

Fails closed: with invalid permissions only the owner can read the document, and without an owner nobody can.
A change takes effect when the document's row is written, even during an ingestion. The copies in the indexes
are updated afterwards; until then, `rows_outdated` is set. They only narrow searches.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Literal

from shared.documents.ids import (
    SIDECAR_SUFFIX,
    document_id,
    document_of_blob,
    has_own_sidecar,
    is_synchronised,
)
from shared.documents.index_rows import merge_rights, rights_fields
from shared.documents.open_work import Urgency
from shared.documents.requests import MAX_PRINCIPALS
from shared.documents.state import DocumentState, Rights
from shared.evidence.source_links import web_address
from shared.ingestion.models import Done
from shared.ingestion.row_changes import change_row, write_copies
from shared.ingestion.services import IngestionServices
from shared.ingestion.task import (
    MAX_WRITE_ATTEMPTS,
    FencedError,
    IngestTask,
    contention_error,
    fresh_state,
    mark_deleted,
    request_ingestion,
)
from shared.platform.blobs import BlobProperties
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.names import DOCUMENTS
from shared.platform.search import IndexRow

_TEXTS = ("owner_id", "project_id", "source_url", "published_by")
_MAX_SIDECAR_BYTES = 64 * 1024


class _UnreadableError(ValueError):
    """Raised if the permissions supplied with a file are invalid."""


def decide_rights(metadata: Mapping[str, str], sidecar: str | None, default_access: str) -> Rights:
    """Return the permissions of a document: its readers, owner and project, and a warning if the access list
    is missing or invalid.

    For each field, the sidecar takes precedence over the blob metadata, which takes precedence over the
    default.

    Args:
        metadata: blob metadata with lower-case keys: `acl` and the fields in `_TEXTS`.
        sidecar: content of NAME.acl.json: a list of principals, or an object with the same fields; None =
            no sidecar.
        default_access: comma-separated principals for documents without an access list.
    """
    texts = _texts(metadata)
    acl: tuple[str, ...] = ()
    warning = None
    try:
        fields = _read_sidecar(sidecar) if sidecar is not None else {}
        texts |= _texts(fields)
        acl = _principals(fields.get("acl", metadata.get("acl", default_access)))
    except _UnreadableError as error:
        warning = f"{error} Only the owner can read the document."
    if "owner_id" in texts:
        acl = (*acl, texts["owner_id"])
    elif not acl and warning is None:
        warning = "Nobody can read the document, because it has no access list and no owner."
    return Rights(acl=tuple(sorted(set(acl))), warning=warning, **texts)


def _texts(fields: Mapping[str, object]) -> dict[str, str]:
    """Return the owner, project, source and publisher in `fields`. Empty values and sources that aren't plain
    web URLs are left out.
    """
    texts = {}
    for name in _TEXTS:
        value = fields.get(name, "")
        if not isinstance(value, str | None):
            raise _UnreadableError("Owner, project, source and publisher must be strings.")
        text = (value or "").strip()
        if text and (name != "source_url" or web_address(text)):
            texts[name] = text
    return texts


def _read_sidecar(sidecar: str) -> Mapping[str, object]:
    try:
        content = json.loads(sidecar)
    except ValueError:
        raise _UnreadableError("The sidecar is not valid JSON.") from None
    fields = {"acl": content} if isinstance(content, list) else content
    if not isinstance(fields, dict) or not {"acl", *_TEXTS}.issuperset(fields):
        raise _UnreadableError(
            f"The sidecar must be a list, or an object with the keys acl, {', '.join(_TEXTS)}."
        )
    return fields


def _principals(value: object) -> tuple[str, ...]:
    """Parse principals from a list, a JSON list or comma-separated text."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            raise _UnreadableError('The access list starts with "[" but is not valid JSON.') from None
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _UnreadableError("The access list is not a list of names.")
    if len(names) > MAX_PRINCIPALS:
        raise _UnreadableError(f"The access list has more than {MAX_PRINCIPALS} entries.")
    return tuple(name.strip() for name in names if name.strip())


async def read_rights(properties: BlobProperties, services: IngestionServices) -> tuple[Rights, str]:
    """Return a blob's current permissions and the etag of its sidecar. The etag is "" if there is no
    sidecar.
    """
    sidecar: str | None = None
    etag = ""
    with suppress(NotFoundError):
        # The content of an oversized sidecar is returned as "", which is invalid JSON, so only the owner can
        # read the document.
        content, etag = await services.blobs.read_version(
            DOCUMENTS, properties.name + SIDECAR_SUFFIX, most_bytes=_MAX_SIDECAR_BYTES
        )
        sidecar = content.decode("utf-8-sig", "replace")
    if has_own_sidecar(properties.name) or is_synchronised(properties.name):
        # Ignore the blob metadata, which the sender of a signed upload controls, and the default access list,
        # which is meant neither for uploads nor for synchronised files.
        rights = decide_rights({}, sidecar, default_access="")
    else:
        rights = decide_rights(properties.metadata, sidecar, services.settings.ingestion.default_access)
    return rights, etag


def apply_to_published(properties: BlobProperties, sidecar_etag: str, state: DocumentState) -> bool:
    """Return whether newly read permissions also apply to the published version.

    A new sidecar applies to all versions. The metadata of a new file must not open the content that it
    replaces, because it may never be published.
    """
    return properties.etag == state.blob_etag or sidecar_etag != state.sidecar_etag


async def apply_rights(task: IngestTask) -> Done:
    """Publish the pending permissions in the document's row, then copy them to the indexes."""
    services = task.services
    # Repeat this if newer permissions arrived meanwhile.
    while True:
        applied = (await task.update(_apply_pending)).rights
        await merge_rights(services.content_index, services.documents_index, task.doc_id, applied)
        state = await task.update(partial(with_rights, applied=applied))
        if state.wanted_rights == applied:
            return Done()


def _apply_pending(state: DocumentState) -> DocumentState:
    """Return the state with the pending permissions in effect, and with its index rows marked as outdated."""
    return with_rights(state, state.wanted_rights).model_copy(update={"rows_outdated": True})


async def apply_newest(blob_name: str, services: IngestionServices) -> bool:
    """Put the current permissions of a document's file into effect immediately, even during an ingestion.

    They are written to the document's row, then to the existing index rows; an ingestion in progress writes
    them to its new rows. Permissions of an unpublished version only narrow access.

    Returns:
        Whether the caller must start an ingestion.

    Raises:
        DependencyError: a service failed, or there were too many concurrent changes.
    """
    documents = services.documents
    is_shown = False

    async def newest(state: DocumentState) -> DocumentState | None:
        nonlocal is_shown
        # Read the permissions after the row. If both change meanwhile, the etag of the row makes the outdated
        # write fail.
        properties = await services.blobs.properties(DOCUMENTS, blob_name)
        if properties is None:
            return None
        rights, sidecar_etag = await read_rights(properties, services)
        is_shown = apply_to_published(properties, sidecar_etag, state)
        is_applied = rights == state.wanted_rights and not state.rows_outdated
        if is_applied and (rights == state.rights or not is_shown):
            return None
        read: dict[str, object] = {"wanted_rights": rights, "sidecar_etag": sidecar_etag}
        if is_shown:
            read["rights"] = rights
        return state.model_copy(update={**read, "rows_outdated": True})

    change = await change_row(document_id(blob_name), documents, newest)
    if change is None:
        return False
    state = change.after

    async def copy() -> DocumentState | None:
        # Update the indexes now, because newly added readers would otherwise wait until a long ingestion
        # ends.
        content_index, documents_index = services.content_index, services.documents_index
        await merge_rights(content_index, documents_index, state.doc_id, state.wanted_rights)
        return with_rights(state, state.wanted_rights) if is_shown else None

    return await write_copies(change, documents, copy, {"rows_outdated": True})


Noted = Literal["noted", "known", "nothing"]


async def note_event(changed_blob: str, services: IngestionServices) -> Noted:
    """Update a document's row after an event that its file, access list or table hints were written or
    deleted.

    A deleted file is hidden immediately. During an ingestion, new permissions are applied immediately.

    Returns:
        "noted": an ingestion is requested. "known": the file's current state was recorded before.
        "nothing": there is neither a file nor a document.

    Raises:
        DependencyError: a service failed, or there were too many concurrent changes.
    """
    documents, blob_name = services.documents, document_of_blob(changed_blob)
    doc_id = document_id(blob_name)
    for _ in range(MAX_WRITE_ATTEMPTS):
        state = await documents.get(doc_id)
        properties = await services.blobs.properties(DOCUMENTS, blob_name)
        if properties is None:
            return "noted" if await mark_deleted(doc_id, documents) else "nothing"
        try:
            is_new = state is None
            state = state or fresh_state(blob_name)
            is_known = properties.etag in (state.noted_etag, state.wanted_etag)
            if is_known and changed_blob == blob_name and state.is_open and not state.is_deleted:
                return "known"
            new_state = state.model_copy(update={"noted_etag": properties.etag})
            urgency: Urgency | None = None if changed_blob == blob_name else "change"
            await request_ingestion(new_state, documents, urgency, properties.size_bytes)
            if is_new:
                return "noted"
        except ConflictError:
            continue
        if state.is_open:
            await apply_newest(blob_name, services)
        return "noted"
    raise contention_error()


async def upload_blocks(task: IngestTask, rows: Sequence[IndexRow], rights: Rights) -> None:
    """Write rows with these permissions to the content index. If newer permissions are pending afterwards,
    update the rows again.

    If the document was deleted meanwhile, the rows are deleted again, because the removal of the document
    may have missed them.

    Raises:
        FencedError: the document was deleted.
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
        raise FencedError


def with_rights(state: DocumentState, applied: Rights) -> DocumentState:
    """Return the state after these permissions were written to the index rows. Their warning replaces the
    warning of the previous permissions.
    """
    other_warnings = [warning for warning in state.warnings if warning != state.rights.warning]
    warnings = dict.fromkeys([*other_warnings, applied.warning] if applied.warning else other_warnings)
    is_outdated = state.wanted_rights != applied
    return state.model_copy(
        update={"rights": applied, "rows_outdated": is_outdated, "warnings": tuple(warnings)}
    )
