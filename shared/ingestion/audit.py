"""Whether files, states, rows, blocks, figures and work files agree. Changes nothing."""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from itertools import islice

from shared.documents import page_files
from shared.documents.ids import IdWindow
from shared.ingestion.acceptance import pipeline
from shared.ingestion.claims import WORK_FOLDER, now
from shared.ingestion.inventory import Inventory, compare, compare_blocks, fitting_window, take_inventory
from shared.ingestion.metadata import EXTRACTED_FOLDER
from shared.ingestion.models import AuditCounts, AuditReport, Difference, UnreadableDocument
from shared.ingestion.services import IngestionServices
from shared.platform.blobs import BlobStore
from shared.platform.names import FIGURES, WORK

MAX_DIFFERENCES = 500  # that are named; all are counted


async def audit(services: IngestionServices, count: int = 0) -> AuditReport:
    """Compare everything. While documents are in work, it says so and does not agree.

    Args:
        count: chooses which part, where everything is too much (see `IdWindow`).
    """
    await services.ensure_prepared()
    window = await fitting_window(services, count)
    inventory = await take_inventory(services, window, window)
    figures = await _read_by_document(services.blobs, window, FIGURES, "")
    differences = [
        *_of_documents(inventory, pipeline(services.settings)),
        *_of_figures(inventory, figures),
        *[one async for one in _of_work(inventory, services.blobs, window)],
    ]
    return AuditReport(
        agrees=not differences,
        at=now(),
        share=window.share,
        counts=_counts(inventory, figures),
        difference_count=len(differences),
        differences=tuple(differences[:MAX_DIFFERENCES]),
        unreadable=tuple(islice(_unreadable(inventory), MAX_DIFFERENCES)),
    )


def _unreadable(inventory: Inventory) -> Iterator[UnreadableDocument]:
    for doc_id, seen in inventory.seen.items():
        state = seen.state
        if state is not None and not state.wanted_rights.acl:
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
        detail = f"{filename} has a row, and neither file nor state."
        yield Difference(kind="row_orphaned", place=doc_id, detail=detail)
    for doc_id, count in inventory.orphaned_blocks.items():
        yield Difference(kind="blocks_orphaned", place=doc_id, detail=f"{count} blocks of no document.")


def _of_figures(inventory: Inventory, figures: dict[str, set[str]]) -> Iterator[Difference]:
    for doc_id, seen in inventory.seen.items():
        shown, stored = seen.blocks.figures, figures.get(doc_id, set())
        if seen.settled and shown - stored:
            yield seen.difference("figures_missing", f"{len(shown - stored)} pictures are gone.")
        if seen.settled and stored - shown:
            yield seen.difference("figures_orphaned", f"{len(stored - shown)} pictures belong to no block.")
    for doc_id in figures.keys() - inventory.seen.keys():
        detail = f"{len(figures[doc_id])} pictures of no document."
        yield Difference(kind="figures_orphaned", place=doc_id, detail=detail)


async def _of_work(inventory: Inventory, blobs: BlobStore, window: IdWindow) -> AsyncIterator[Difference]:
    # Files of the first folder live as long as an ingestion, the others as long as their document.
    for folder in (WORK_FOLDER, EXTRACTED_FOLDER, page_files.FOLDER):
        for doc_id, files in (await _read_by_document(blobs, window, WORK, folder)).items():
            seen = inventory.seen.get(doc_id)
            if seen is None or (folder == WORK_FOLDER and (seen.state is None or seen.settled)):
                detail = f"{len(files)} work files are left."
                yield Difference(kind="work_left", place=seen.name if seen else doc_id, detail=detail)


async def _read_by_document(
    blobs: BlobStore, window: IdWindow, container: str, prefix: str
) -> dict[str, set[str]]:
    """Names of blobs by the document of the window whose id comes first after the prefix."""
    found: dict[str, set[str]] = defaultdict(set)
    async for blob in blobs.list_blobs(container, prefix + window.prefix):
        doc_id = blob.name.removeprefix(prefix).partition("/")[0]
        if window.holds(doc_id):
            found[doc_id].add(blob.name)
    return dict(found)


def _counts(inventory: Inventory, figures: dict[str, set[str]]) -> AuditCounts:
    seen = inventory.seen.values()
    return AuditCounts(
        files=sum(one.etag is not None for one in seen),
        states=sum(one.state is not None for one in seen),
        rows=sum(one.row is not None for one in seen) + len(inventory.orphaned_rows),
        blocks=sum(one.blocks.count for one in seen) + sum(inventory.orphaned_blocks.values()),
        figures=sum(len(names) for names in figures.values()),
        failed=sum(one.state is not None and one.state.status == "failed" for one in seen),
    )
