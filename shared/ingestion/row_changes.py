"""Changes of a document's row by users and events, also while an ingestion is at work.

The row decides, so it is written first, with a new wish: an ingestion must look at the document. The
indexes' copies come next. If no ingestion was due and nobody else wrote the row meanwhile, they are the
newest, and the wish is settled. Otherwise newer copies may have been overwritten: then the ingestion writes
them again.
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
from shared.ingestion.task import MAX_WRITE_ATTEMPTS, IngestTask, asked, contended
from shared.platform.errors import ConflictError, GroundworkError
from shared.platform.telemetry import get_logger

_COPIED = frozenset({"document_type", "department"})  # corrected fields that each block's row repeats


@dataclass(frozen=True)
class RowChange:
    """A document's row before and after a change, and its row in the backlog."""

    before: DocumentState
    after: DocumentState
    work: OpenWork


async def change_row(
    doc_id: str,
    documents: DocumentStore,
    change: Callable[[DocumentState], Awaitable[DocumentState | None]],
) -> RowChange | None:
    """Change a row under its etag, with a new wish. None = no row, or nothing to change.

    Args:
        change: returns the changed row, or None. Called again if somebody else wrote the row meanwhile.

    Raises:
        DependencyError: the store failed, or there were too many changes at once.
    """
    for _ in range(MAX_WRITE_ATTEMPTS):
        before = await documents.get(doc_id)
        changed = await change(before) if before is not None else None
        if before is None or changed is None:
            return None
        try:
            after, work = await asked(changed, documents, "change")
        except ConflictError:
            continue
        return RowChange(before, after, work)
    raise contended()


async def write_copies(
    change: RowChange,
    documents: DocumentStore,
    copy: Callable[[], Awaitable[DocumentState | None]],
    lagging: Mapping[str, object],
) -> bool:
    """Write the indexes' copies of a changed row. Return whether an ingestion must write them again.

    Args:
        copy: writes them, and returns the row that says so; None = an ingestion must say so.
        lagging: fields of a row whose copies may lag.

    Raises:
        DependencyError: the store of rows failed. The change itself holds.
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
    """Write a row's corrections to the indexes, and return the row that says so.

    Only corrected fields are written: the others may be those of a version that is just being published.

    Args:
        copied_hash: the row's `copied_hash` before the change.
    """
    record = await index_rows.document_record(services.documents_index, state.doc_id)
    written: dict[str, object] = {"shown_corrections": state.corrections}
    if record is not None:
        corrected = with_corrections(record, state.corrections)
        if index_rows.copied_hash(corrected) != state.copied_hash:
            keys = await index_rows.block_hashes(services.content_index, state.doc_id)
            fields = corrected.model_dump(mode="json", include={*_COPIED})
            await services.content_index.merge([{"block_id": key, **fields} for key in keys])
            agreed = copied_hash == index_rows.copied_hash(record)
            written["copied_hash"] = index_rows.copied_hash(corrected) if agreed else ""
        # Last, as in an ingestion, so that blocks can be filtered by the listed values.
        names = {*state.corrections} & {*MetadataCorrection.model_fields} | {"doc_id", "edited_fields"}
        await services.documents_index.merge([corrected.model_dump(mode="json", include=names)])
    return state.model_copy(update=written)


async def apply_corrections(task: IngestTask) -> None:
    """Write the corrections that the indexes lack.

    Raises:
        FencedError: this instance no longer holds the document.
    """
    state = await task.look()
    copied = await copy_corrections(state, task.services, state.copied_hash)
    await task.update(shown_corrections=copied.shown_corrections, copied_hash=copied.copied_hash)


def corrected(state: DocumentState, corrections: Corrections) -> DocumentState:
    """Return the row with these corrections added."""
    changed: dict[str, object] = {"corrections": {**state.corrections, **corrections}}
    if _COPIED & corrections.keys():
        changed["copied_hash"] = ""  # until the blocks have them
    return state.model_copy(update=changed)
