"""Reconciliation: starts the ingestion of documents that don't match their files because events were missed.

Each run is bounded, and the next one continues. Documents being ingested are skipped. If there are more
documents than fit into memory, successive runs read different parts. Blocks are far more numerous, so the
timer reads those of a smaller part.
"""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from datetime import datetime, timedelta

from shared.documents import index_rows, versions
from shared.documents.ids import IdWindow
from shared.ingestion.acceptance import pipeline
from shared.ingestion.changes import repair
from shared.ingestion.inventory import (
    Inventory,
    SeenDocument,
    compare,
    compare_blocks,
    fitting_window,
    take_inventory,
)
from shared.ingestion.models import ReconcileReport
from shared.ingestion.rights import note_event
from shared.ingestion.services import IngestionServices
from shared.ingestion.task import is_quarantined, now, request_ingestion
from shared.ingestion.uploads import TICKET_LIFETIME_S
from shared.platform.blobs import BlobProperties
from shared.platform.errors import GroundworkError
from shared.platform.hashing import digest
from shared.platform.names import DOCUMENTS
from shared.platform.settings import Settings
from shared.platform.telemetry import get_logger

# Maximum number of ingestions that a run starts. With a run every five minutes, this makes 1,200 documents an
# hour and leaves capacity for answers.
MAX_STARTS = 100
# Differences of a document are ignored for this long after it was written, because the search service shows
# new writes with a delay.
SETTLED = timedelta(minutes=2)
# Time after which a run starts no further removal. The host ends a function after ten minutes.
REMOVALS_S = 120.0
# Age at which an access list without a file is deleted. An upload may continue after its URL has expired.
UPLOAD_EXPIRY = timedelta(seconds=2 * TICKET_LIFETIME_S)
# Delay before a failed ingestion is tried again. By then, a failed service may have recovered.
RETRY_AFTER = timedelta(minutes=15)

_ROWS_DIFFER = frozenset({"row_missing", "row_differs", "blocks_missing", "blocks_differ"})

StartIngestions = Callable[[], Awaitable[None]]
"""Starts the ingestion of documents in the backlog."""


async def reconcile(
    services: IngestionServices, start: StartIngestions, count: int = 0, block_bits: int = 0
) -> ReconcileReport:
    """Compare documents with their files, states and index rows, and start missing ingestions. Documents in
    the backlog are skipped, because their ingestion is already scheduled.

    Args:
        count: selects the part to compare if there are too many (see `IdWindow`).
        block_bits: bits of the narrower window whose blocks are also compared; each bit halves the window.
    """
    # Prepare the services in every run, so that a deleted index is recreated.
    await services.prepare()
    window = await fitting_window(services, count)
    of_blocks = window.narrow(count, block_bits)
    read_at = now()
    inventory = await take_inventory(services, window, of_blocks)
    # Read the backlog after the states, so that a document added in between is in at least one of the two.
    backlog = {work.blob_name for work in await services.documents.open_work.backlog(is_fresh=True)}
    idle = [seen for seen in inventory.seen.values() if seen.name not in backlog]
    due = [(seen, kind) for seen in idle if (kind := _due(seen, services.settings))]
    due += _differing_blocks(inventory, of_blocks, read_at, {seen.name for seen, _ in due})
    started: Counter[str] = Counter()
    for seen, kind in due[:MAX_STARTS]:
        if await _request_due_ingestion(seen, kind, services):
            started[kind] += 1
    if started:
        await start()
    orphans = inventory.orphaned_rows.keys() | inventory.orphaned_blocks.keys()
    removed = await _remove_orphans(orphans, services, count)
    expired = await _remove_unused(inventory.unused_uploads, services)
    left = len(due) - started.total() + len(orphans) - removed
    share = window.share
    totals = {"removed": removed, "expired_uploads": expired, "left": left, "share": share}
    get_logger().info("documents.reconciled", started=dict(started), **totals)
    return ReconcileReport(started=dict(started), removed_orphans=removed, left=left, share=share)


def _due(seen: SeenDocument, settings: Settings) -> str | None:
    """Return the reason why the document must be ingested, or None if it needn't be."""
    difference, state = compare(seen, pipeline(settings)), seen.state
    if state is None:
        return "not_ingested"
    age = now() - state.updated_at
    if difference is None:
        is_due = state.status == "failed" and not is_quarantined(state) and age > RETRY_AFTER
        return "failed" if is_due else None
    if difference.kind == "in_work":
        return "stuck" if age > SETTLED else None
    if difference.kind in ("row_missing", "row_differs") and age < SETTLED:
        return None
    return difference.kind


def _differing_blocks(
    inventory: Inventory, window: IdWindow, read_at: datetime, excluded: set[str]
) -> list[tuple[SeenDocument, str]]:
    """Return the documents whose blocks differ from their state, except those in `excluded`."""
    differing: list[tuple[SeenDocument, str]] = []
    for doc_id, seen in inventory.seen.items():
        state = seen.settled
        # Skip documents that may have been written while their blocks were read. A later run will compare
        # them.
        is_old = state is not None and read_at - state.updated_at >= SETTLED
        if state is None or not is_old or seen.name in excluded or not window.holds(doc_id):
            continue
        difference = compare_blocks(seen, state)
        # If the newest version failed, `repair` can restrict the access to the published blocks but can't
        # rewrite them.
        is_repairable = state.status == "ready" or not state.content_hash or seen.is_too_open
        if difference and is_repairable:
            differing.append((seen, difference.kind))
    return differing


async def _request_due_ingestion(seen: SeenDocument, kind: str, services: IngestionServices) -> bool:
    """Request the ingestion of a document for the given kind of difference. Return False if the request
    couldn't be stored.
    """
    try:
        if kind in _ROWS_DIFFER and seen.state is not None:
            # Mark the document for repair. Otherwise, the ingestion would find nothing to do.
            await repair(seen.state, services)
        elif kind == "stuck" and seen.state is not None:
            # The backlog row was lost, so create it again.
            await request_ingestion(seen.state, services.documents)
        else:
            await note_event(seen.name, services)
    except GroundworkError as failed:
        get_logger().warning("document.reconcile_failed", error_type=failed.code)
        return False
    return True


async def _remove_unused(sidecars: Collection[BlobProperties], services: IngestionServices) -> int:
    """Delete access lists and table hints whose upload URL has expired without a file. Return the number of
    deleted blobs.

    Files that were renewed meanwhile are kept, because another upload may have started.
    """
    removed = 0
    for blob in sidecars:
        if blob.modified_at is not None and now() - blob.modified_at > UPLOAD_EXPIRY:
            try:
                removed += await services.blobs.delete_version(DOCUMENTS, blob.name, etag=blob.etag)
            except GroundworkError as failed:
                get_logger().warning("document.reconcile_failed", error_type=failed.code)
    return removed


async def _remove_orphans(doc_ids: Collection[str], services: IngestionServices, count: int) -> int:
    """Remove the index rows and files of documents that no longer exist, and return the number of documents
    removed. Each run uses another order, so that a document that can't be removed doesn't block the others.
    """
    ends = time.monotonic() + REMOVALS_S
    removed = 0
    for doc_id in sorted(doc_ids, key=lambda doc_id: digest(str(count), doc_id))[:MAX_STARTS]:
        if time.monotonic() >= ends:
            break
        removed += await _remove_orphan(doc_id, services)
    return removed


async def _remove_orphan(doc_id: str, services: IngestionServices) -> bool:
    """Remove the index rows and files of a document without a state. Return False if it has a state now, or
    if a service failed.

    Rows that the search service doesn't show yet are deleted by the next run.
    """
    try:
        # List blocks and folders before reading the state. If the file is uploaded again meanwhile, its new
        # blocks and folders are then not deleted.
        keys = list(await index_rows.block_hashes(services.content_index, doc_id))
        folders = await versions.stored_folders(services.blobs, doc_id)
        if await services.documents.get(doc_id) is not None:
            return False
        await services.documents_index.delete([doc_id])
        await services.content_index.delete(keys)
        for folder in folders:
            await versions.remove_folder(services.blobs, folder)
    except GroundworkError as failed:
        get_logger().warning("document.reconcile_failed", error_type=failed.code)
        return False
    return True
