"""Whether files, states, rows, blocks, figures and work files agree. Changes nothing.

Reads all of it, or, where that is more than can be held, another part each time.
"""

from collections import defaultdict
from collections.abc import Iterator

from shared.documents import page_files
from shared.documents.ids import IdWindow
from shared.documents.state import DocumentState
from shared.ingestion.acceptance import pipeline
from shared.ingestion.audit_rules import ENDED, SeenBlocks, compare, compare_blocks
from shared.ingestion.claims import now
from shared.ingestion.inventory import Inventory, fitting_window, read_blocks, take_inventory
from shared.ingestion.metadata import EXTRACTED_FOLDER
from shared.ingestion.models import AuditCounts, AuditReport, Difference, DifferenceKind
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
    window = await fitting_window(services.documents_index, services.blobs, count)
    blocks = await read_blocks(services.content_index, window)
    inventory = await take_inventory(services.documents_index, services.blobs, services.documents, window)
    figures = await _read_by_document(services.blobs, window, FIGURES, "")
    work = await _read_by_document(services.blobs, window, WORK, "ingest/")
    said = await _read_by_document(services.blobs, window, WORK, EXTRACTED_FOLDER)
    read = await _read_by_document(services.blobs, window, WORK, page_files.FOLDER)
    differences = [
        *_of_documents(inventory, pipeline(services.settings)),
        *_of_blocks(inventory, blocks),
        *_of_figures(inventory, blocks, figures),
        *_of_work(inventory, work),
        *_of_work(inventory, {doc_id: said[doc_id] for doc_id in said.keys() - inventory.seen.keys()}),
        *_of_work(inventory, {doc_id: read[doc_id] for doc_id in read.keys() - inventory.seen.keys()}),
    ]
    return AuditReport(
        agrees=not differences,
        at=now(),
        share=window.share,
        counts=_counts(inventory, blocks, figures),
        difference_count=len(differences),
        differences=tuple(differences[:MAX_DIFFERENCES]),
    )


def _of_documents(inventory: Inventory, current_pipeline: str) -> Iterator[Difference]:
    for seen in inventory.seen.values():
        difference = compare(seen, current_pipeline)
        if difference is not None:
            yield difference
    for doc_id, row in inventory.orphaned.items():
        yield _auditing_difference(
            "row_orphaned", doc_id, f"{row.filename} has a row, and neither file nor state."
        )


def _of_blocks(inventory: Inventory, blocks: dict[str, SeenBlocks]) -> Iterator[Difference]:
    for doc_id, state in _settled(inventory):
        difference = compare_blocks(state, blocks.get(doc_id, SeenBlocks()))
        if difference is not None:
            yield difference
    for doc_id in blocks.keys() - inventory.seen.keys():
        yield _auditing_difference(
            "blocks_orphaned", doc_id, f"{blocks[doc_id].count} blocks of no document."
        )


def _of_figures(
    inventory: Inventory, blocks: dict[str, SeenBlocks], figures: dict[str, set[str]]
) -> Iterator[Difference]:
    for doc_id, state in _settled(inventory):
        shown, stored = blocks.get(doc_id, SeenBlocks()).figures, figures.get(doc_id, set())
        if shown - stored:
            yield _auditing_difference(
                "figures_missing", state.blob_name, f"{len(shown - stored)} pictures are gone."
            )
        if stored - shown:
            detail = f"{len(stored - shown)} pictures belong to no block."
            yield _auditing_difference("figures_orphaned", state.blob_name, detail)
    for doc_id in figures.keys() - inventory.seen.keys():
        yield _auditing_difference(
            "figures_orphaned", doc_id, f"{len(figures[doc_id])} pictures of no document."
        )


def _of_work(inventory: Inventory, work: dict[str, set[str]]) -> Iterator[Difference]:
    for doc_id, files in work.items():
        seen = inventory.seen.get(doc_id)
        state = seen.state if seen is not None else None
        if state is None or (state.status in ENDED and state.holder is None):
            place = state.blob_name if state is not None else doc_id
            yield _auditing_difference("work_left", place, f"{len(files)} work files are left.")


def _settled(inventory: Inventory) -> Iterator[tuple[str, DocumentState]]:
    """Documents whose ingestion ended: of the others it is known that they do not agree."""
    for doc_id, seen in inventory.seen.items():
        state = seen.state
        if state is not None and state.status in ENDED and state.holder is None:
            yield doc_id, state


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


def _counts(inventory: Inventory, blocks: dict[str, SeenBlocks], figures: dict[str, set[str]]) -> AuditCounts:
    seen = inventory.seen.values()
    return AuditCounts(
        files=sum(one.etag is not None for one in seen),
        states=sum(one.state is not None for one in seen),
        rows=sum(one.row is not None for one in seen) + len(inventory.orphaned),
        blocks=sum(one.count for one in blocks.values()),
        figures=sum(len(names) for names in figures.values()),
        failed=sum(one.state is not None and one.state.status == "failed" for one in seen),
    )


def _auditing_difference(kind: DifferenceKind, place: str, detail: str) -> Difference:
    return Difference(kind=kind, place=place, detail=detail)
