"""Changes to a document's row by users and events, which may arrive during an ingestion.

The row is authoritative, so it is written first, with an increased wish counter, which requests an ingestion.
The copies in the indexes are written next. If no ingestion was due and nobody else wrote the row meanwhile,
the copies are up to date, and the request is settled. Otherwise newer copies may have been overwritten, and
the ingestion writes them again.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from shared.documents import index_rows
from shared.documents.corrections import with_corrections
from shared.documents.models import Corrections
from shared.documents.open_work import OpenWork
from shared.documents.requests import MetadataCorrection
from shared.documents.state import DocumentState
from shared.documents.state_store import DocumentStore
from shared.ingestion.services import IngestionServices
from shared.ingestion.task import MAX_WRITE_ATTEMPTS, IngestTask, contention_error, request_ingestion
from shared.platform.errors import ConflictError, GroundworkError
from shared.platform.telemetry import get_logger

# Correctable fields that are copied to the index row of each block.
_COPIED = frozenset({"document_type", "department"})


@dataclass(frozen=True)
class RowChange:
    """Change of a document's row: the row before and after the change, and the backlog row of the ingestion
    that it requests.
    """

    before: DocumentState
    after: DocumentState
    work: OpenWork


async def change_row(
    doc_id: str,
    documents: DocumentStore,
    change: Callable[[DocumentState], Awaitable[DocumentState | None]],
) -> RowChange | None:
    """Change a document's row with optimistic locking, and request an ingestion. Return None if there is no
    row or nothing changes.

    Args:
        change: returns the changed row, or None for no change. It is called again if another writer was
            faster.

    Raises:
        DependencyError: the store failed, or there were too many concurrent changes.
    """
    for _ in range(MAX_WRITE_ATTEMPTS):
        before = await documents.get(doc_id)
        changed = await change(before) if before is not None else None
        if before is None or changed is None:
            return None
        try:
            after, work = await request_ingestion(changed, documents, "change")
        except ConflictError:
            continue
        return RowChange(before, after, work)
    raise contention_error()


async def write_copies(
    change: RowChange,
    documents: DocumentStore,
    copy: Callable[[], Awaitable[DocumentState | None]],
    lagging: Mapping[str, object],
) -> bool:
    """Copy a changed row to the indexes. Return whether an ingestion must repeat this.

    Args:
        copy: writes the copies, and returns the row to store; None = leave the row to an ingestion.
        lagging: fields that mark a row whose copies may be outdated.

    Raises:
        DependencyError: the row store failed. The change itself was stored before.
    """
    try:
        copied = await copy()
        if copied is not None and not change.before.is_open:
            await documents.replace(copied.model_copy(update={"settled": change.after.wish}))
            await documents.open_work.delete(change.after.doc_id, change.work.revision or "")
            return False
    except ConflictError:
        pass
    except GroundworkError as failed:
        get_logger().warning("document.copies_failed", doc_id=change.after.doc_id, error_type=failed.code)

    async def outdated(state: DocumentState) -> DocumentState:
        return state.model_copy(update=lagging)

    await change_row(change.after.doc_id, documents, outdated)
    return True


async def copy_corrections(
    state: DocumentState, services: IngestionServices, copied_hash: str
) -> DocumentState:
    """Write a document's corrections to the indexes. Return the state that records this, which the caller
    must store.

    Only corrected fields are written: a version may be published at the same time and change the others.

    Args:
        copied_hash: the row's `copied_hash` before the change.
    """
    record = await index_rows.document_record(services.documents_index, state.doc_id)
    changes: dict[str, object] = {"shown_corrections": state.corrections}
    if record is not None:
        corrected = with_corrections(record, state.corrections)
        if index_rows.copied_hash(corrected) != state.copied_hash:
            keys = await index_rows.block_hashes(services.content_index, state.doc_id)
            fields = corrected.model_dump(mode="json", include={*_COPIED})
            await services.content_index.merge([{"block_id": key, **fields} for key in keys])
            agreed = copied_hash == index_rows.copied_hash(record)
            changes["copied_hash"] = index_rows.copied_hash(corrected) if agreed else ""
        # As in an ingestion, write the document's record last: a filter by its new values must already find
        # its blocks.
        names = {*state.corrections} & {*MetadataCorrection.model_fields} | {"doc_id", "edited_fields"}
        await services.documents_index.merge([corrected.model_dump(mode="json", include=names)])
    return state.model_copy(update=changes)


async def apply_corrections(task: IngestTask) -> None:
    """Write the document's corrections to the indexes, unless they contain them already.

    Raises:
        FencedError: another execution has taken over the document, or it was deleted.
    """
    state = await task.current_state()
    copied = await copy_corrections(state, task.services, state.copied_hash)
    await task.update(shown_corrections=copied.shown_corrections, copied_hash=copied.copied_hash)


def corrected(state: DocumentState, corrections: Corrections) -> DocumentState:
    """Return the state with these corrections added."""
    changed: dict[str, object] = {"corrections": {**state.corrections, **corrections}}
    if _COPIED & corrections.keys():
        # An empty hash means that the indexed blocks don't have these values yet.
        changed["copied_hash"] = ""
    return state.model_copy(update=changed)
