"""Whether files, states, rows, blocks, figures and work files agree. Reads all of it, changes nothing."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from shared.core.document_audit import ENDED, compare
from shared.ingestion.accepting import pipeline
from shared.ingestion.claims import now
from shared.ingestion.inventory import Inventory, all_rows, take_inventory
from shared.ingestion.prepare import ensure_ready
from shared.models.audit import AuditCounts, AuditReport, Difference, DifferenceKind
from shared.models.ingestion import DocumentState
from shared.models.names import FIGURES, WORK
from shared.services import Services

MAX_DIFFERENCES = 500  # that are named; all are counted
_BLOCK_FIELDS = ("block_id", "doc_id", "access_control_list", "image_url")


@dataclass
class _Blocks:
    """The blocks of one document."""

    count: int = 0
    access_lists: set[tuple[str, ...]] = field(default_factory=set)
    figures: set[str] = field(default_factory=set)


async def audit(services: Services) -> AuditReport:
    """Compare everything. While documents are in work, it says so and does not agree."""
    await ensure_ready(services)
    blocks = await _read_blocks(services)
    inventory = await take_inventory(services)
    figures = await _read_by_document(services, FIGURES, "")
    work = await _read_by_document(services, WORK, "ingest/")
    differences = [
        *_of_documents(inventory, pipeline(services.settings)),
        *_of_blocks(inventory, blocks),
        *_of_figures(inventory, blocks, figures),
        *_of_work(inventory, work),
    ]
    return AuditReport(
        agrees=not differences,
        at=now(),
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
        yield _difference("row_orphaned", doc_id, f"{row.filename} has a row, and neither file nor state.")


def _of_blocks(inventory: Inventory, blocks: dict[str, _Blocks]) -> Iterator[Difference]:
    for doc_id, state in _settled(inventory):
        found = blocks.get(doc_id, _Blocks())
        wanted = state.block_count if state.content_hash else 0
        if found.count != wanted:
            detail = f"{found.count} blocks are indexed, {wanted} belong to it."
            yield _difference(
                "blocks_missing" if found.count < wanted else "blocks_differ", state.blob_name, detail
            )
        elif found.access_lists - {tuple(sorted(state.rights.acl))}:
            yield _difference("blocks_differ", state.blob_name, "Blocks have another access list.")
    for doc_id in blocks.keys() - inventory.seen.keys():
        yield _difference("blocks_orphaned", doc_id, f"{blocks[doc_id].count} blocks of no document.")


def _of_figures(
    inventory: Inventory, blocks: dict[str, _Blocks], figures: dict[str, set[str]]
) -> Iterator[Difference]:
    for doc_id, state in _settled(inventory):
        shown, stored = blocks.get(doc_id, _Blocks()).figures, figures.get(doc_id, set())
        if shown - stored:
            yield _difference("figures_missing", state.blob_name, f"{len(shown - stored)} pictures are gone.")
        if stored - shown:
            detail = f"{len(stored - shown)} pictures belong to no block."
            yield _difference("figures_orphaned", state.blob_name, detail)
    for doc_id in figures.keys() - inventory.seen.keys():
        yield _difference("figures_orphaned", doc_id, f"{len(figures[doc_id])} pictures of no document.")


def _of_work(inventory: Inventory, work: dict[str, set[str]]) -> Iterator[Difference]:
    for doc_id, files in work.items():
        seen = inventory.seen.get(doc_id)
        state = seen.state if seen is not None else None
        if state is None or state.status == "ready":
            place = state.blob_name if state is not None else doc_id
            yield _difference("work_left", place, f"{len(files)} work files are left.")


def _settled(inventory: Inventory) -> Iterator[tuple[str, DocumentState]]:
    """Documents whose ingestion ended: of the others it is known that they do not agree."""
    for doc_id, seen in inventory.seen.items():
        state = seen.state
        if state is not None and state.status in ENDED and state.holder is None:
            yield doc_id, state


async def _read_blocks(services: Services) -> dict[str, _Blocks]:
    found: dict[str, _Blocks] = defaultdict(_Blocks)
    async for row in all_rows(services.content_index, "block_id", _BLOCK_FIELDS):
        blocks = found[str(row["doc_id"])]
        blocks.count += 1
        blocks.access_lists.add(tuple(sorted(row.get("access_control_list") or ())))
        if row.get("image_url"):
            blocks.figures.add(str(row["image_url"]).removeprefix(f"{FIGURES}/"))
    return dict(found)


async def _read_by_document(services: Services, container: str, prefix: str) -> dict[str, set[str]]:
    """Names of blobs by the document whose id comes first after the prefix."""
    found: dict[str, set[str]] = defaultdict(set)
    async for blob in services.blobs.list_blobs(container, prefix):
        found[blob.name.removeprefix(prefix).partition("/")[0]].add(blob.name)
    return dict(found)


def _counts(inventory: Inventory, blocks: dict[str, _Blocks], figures: dict[str, set[str]]) -> AuditCounts:
    seen = inventory.seen.values()
    return AuditCounts(
        files=sum(one.etag is not None for one in seen),
        states=sum(one.state is not None for one in seen),
        rows=sum(one.row is not None for one in seen) + len(inventory.orphaned),
        blocks=sum(one.count for one in blocks.values()),
        figures=sum(len(names) for names in figures.values()),
        failed=sum(one.state is not None and one.state.status == "failed" for one in seen),
    )


def _difference(kind: DifferenceKind, place: str, detail: str) -> Difference:
    return Difference(kind=kind, place=place, detail=detail)
