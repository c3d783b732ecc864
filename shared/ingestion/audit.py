"""Read-only audit that compares files, document states, index rows, blocks and version folders."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice

from shared.documents.figure_store import is_picture, picture_blob
from shared.documents.ids import VERSIONS, IdWindow
from shared.documents.versions import is_of_version
from shared.ingestion.acceptance import pipeline
from shared.ingestion.inventory import (
    Inventory,
    compare,
    compare_blocks,
    fitting_window,
    place_in_report,
    take_inventory,
)
from shared.ingestion.models import AuditCounts, AuditReport, Difference, UnreadableDocument
from shared.ingestion.services import IngestionServices
from shared.ingestion.task import now
from shared.platform.blobs import BlobStore
from shared.platform.names import WORK

# Maximum number of differences that a report lists. The counts include all of them.
MAX_DIFFERENCES = 500


async def audit(services: IngestionServices, count: int = 0) -> AuditReport:
    """Compare stored files, document states and indexes, and report the differences. Documents that are being
    ingested also count as differences.

    Args:
        count: selects the part to compare if everything is too much (see `IdWindow`).
    """
    await services.ensure_prepared()
    window = await fitting_window(services, count)
    inventory = await take_inventory(services, window, window)
    files = await _version_files(services.blobs, window)
    differences = [
        *_of_documents(inventory, pipeline(services.settings)),
        *_of_figures(inventory, files),
        *_leftover_differences(inventory, files),
    ]
    return AuditReport(
        agrees=not differences,
        at=now(),
        share=window.share,
        counts=_counts(inventory, files),
        difference_count=len(differences),
        differences=tuple(differences[:MAX_DIFFERENCES]),
        unreadable=tuple(islice(_unreadable(inventory), MAX_DIFFERENCES)),
    )


def _unreadable(inventory: Inventory) -> Iterator[UnreadableDocument]:
    for doc_id, seen in inventory.seen.items():
        state = seen.state
        if state is not None and not state.wanted_rights.acl and not state.thread_id:
            yield UnreadableDocument(
                doc_id=doc_id,
                filename=state.filename,
                status=state.status,
                warning=state.wanted_rights.warning,
            )


def _of_documents(inventory: Inventory, current_pipeline: str) -> Iterator[Difference]:
    for seen in inventory.seen.values():
        if difference := compare(seen, current_pipeline):
            yield difference
        if seen.settled and (difference := compare_blocks(seen, seen.settled)):
            yield difference
    for doc_id, filename in inventory.orphaned_rows.items():
        detail = f"{filename} has an index row, but neither a file nor a state."
        yield Difference(kind="row_orphaned", place=doc_id, detail=detail)
    for doc_id, count in inventory.orphaned_blocks.items():
        yield Difference(
            kind="blocks_orphaned", place=doc_id, detail=f"{count} blocks belong to no document."
        )


def _of_figures(inventory: Inventory, files: dict[str, set[str]]) -> Iterator[Difference]:
    for doc_id, seen in inventory.seen.items():
        if seen.settled is None or not seen.settled.version_key:
            continue
        folder = picture_blob(seen.settled.folder, "")
        stored = {name.removeprefix(folder) for name in files.get(doc_id, set()) if name.startswith(folder)}
        indexed_pictures = {name.rpartition("/")[2] for name in seen.blocks.figures}
        if missing := len(indexed_pictures - stored):
            yield seen.difference("figures_missing", f"{missing} pictures are missing.")
        if orphaned := len(stored - indexed_pictures):
            yield seen.difference("figures_orphaned", f"{orphaned} pictures belong to no block.")


def _leftover_differences(inventory: Inventory, files: dict[str, set[str]]) -> Iterator[Difference]:
    """Yield one difference for each document that has leftover files from a deletion, an old version or a
    failed ingestion.
    """
    for doc_id, names in files.items():
        seen = inventory.seen.get(doc_id)
        if seen is not None and seen.state is not None and seen.settled is None:
            # An ingestion may be in progress, so its files can't be classified yet.
            continue
        folder = seen.settled.folder if seen and seen.settled and seen.settled.version_key else None
        current_files = {name for name in names if folder and is_of_version(name, folder)}
        if left := len(names - current_files):
            detail = f"{left} files of other versions or of an ended ingestion remain."
            place = place_in_report(seen.name) if seen else doc_id
            yield Difference(kind="work_left", place=place, detail=detail)


async def _version_files(blobs: BlobStore, window: IdWindow) -> dict[str, set[str]]:
    """Return the names of all blobs in version folders, grouped by document id, for ids in the window."""
    files: dict[str, set[str]] = defaultdict(set)
    async for blob in blobs.list_blobs(WORK, VERSIONS + window.prefix):
        doc_id = blob.name.removeprefix(VERSIONS).partition("/")[0]
        if window.holds(doc_id):
            files[doc_id].add(blob.name)
    return dict(files)


def _counts(inventory: Inventory, files: dict[str, set[str]]) -> AuditCounts:
    seen = inventory.seen.values()
    return AuditCounts(
        files=sum(one.etag is not None for one in seen),
        states=sum(one.state is not None for one in seen),
        rows=sum(one.row is not None for one in seen) + len(inventory.orphaned_rows),
        blocks=sum(one.blocks.count for one in seen) + sum(inventory.orphaned_blocks.values()),
        figures=sum(is_picture(name) for names in files.values() for name in names),
        failed=sum(one.state is not None and one.state.status == "failed" for one in seen),
    )
