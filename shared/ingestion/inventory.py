"""All records of documents, and whether file, state, row and blocks agree. Read-only.

If there are more documents than fit into memory, each call reads another part.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from shared.documents.ids import (
    EVERYTHING,
    HINTS_SUFFIX,
    SIDECAR_SUFFIX,
    IdWindow,
    document_id,
    document_of_blob,
    has_own_sidecar,
    hints_of,
    is_conversation_file,
    is_conversation_id,
    is_sidecar,
)
from shared.documents.index_rows import all_rows
from shared.documents.state import DocumentState
from shared.ingestion.models import Difference, DifferenceKind
from shared.ingestion.services import IngestionServices
from shared.platform.blobs import BlobProperties, BlobStore
from shared.platform.names import DOCUMENTS
from shared.platform.search import SearchIndex
from shared.retrieval.models import DocumentRecord

MOST_DOCUMENTS = 10_000  # per call: about 130 MB (13 KB each, measured)
WINDOW_BITS = 8  # of the timer's window: one of 256 parts, so that each block is read within 21 hours

# What is compared. A row of a document has far more: summaries, names, every word of its document.
_ROW_FIELDS = (
    "doc_id",
    "filename",
    "upload_date",
    "content_hash",
    "version",
    "owner_id",
    "project_id",
    "access_control_list",
)
_BLOCK_FIELDS = ("block_id", "doc_id", "access_control_list", "image_url")


def shown_place(blob_name: str) -> str:
    """Return how a report names a document. Administrators don't see names of files for one conversation."""
    return document_id(blob_name) if is_conversation_file(blob_name) else blob_name


@dataclass
class SeenBlocks:
    """The blocks of one document in the index."""

    count: int = 0
    access_lists: set[tuple[str, ...]] = field(default_factory=set)
    figures: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class SeenDocument:
    """All records of one document; None or "" = missing.

    Attributes:
        etag: of its file.
        sidecar_etag: of its access list.
        hints_etag: of its table hints.
        blocks: counted only in the window whose blocks were read.
    """

    name: str
    etag: str | None
    sidecar_etag: str
    state: DocumentState | None
    row: DocumentRecord | None
    blocks: SeenBlocks
    hints_etag: str = ""

    @property
    def settled(self) -> DocumentState | None:
        """The state if the last ingestion ended; other documents can't agree yet."""
        state = self.state
        is_ended = state is not None and state.status in ("ready", "failed") and not state.is_open
        return state if is_ended else None

    @property
    def is_too_open(self) -> bool:
        """Whether a block in the index is readable by others than its document."""
        return self.state is not None and bool(
            self.blocks.access_lists - {tuple(sorted(self.state.rights.acl))}
        )

    def difference(self, kind: DifferenceKind, detail: str) -> Difference:
        """Return a difference about this document, without the name of a file for one conversation."""
        return Difference(kind=kind, place=shown_place(self.name), detail=detail)


@dataclass(frozen=True)
class Inventory:
    """Documents by id.

    Attributes:
        seen: documents with a file or a state.
        orphaned_rows: file names in rows of documents with neither.
        orphaned_blocks: number of blocks of documents with neither.
        unused_uploads: access lists and hints of uploads whose files never arrived.
    """

    seen: dict[str, SeenDocument]
    orphaned_rows: dict[str, str]
    orphaned_blocks: dict[str, int]
    unused_uploads: tuple[BlobProperties, ...]


async def fitting_window(services: IngestionServices, count: int) -> IdWindow:
    """Return the documents to read now: all, or the part due at `count` that fits into memory."""
    window = EVERYTHING
    while await _has_many_rows(services.documents_index, window):
        window = window.narrowed(count)
    held: list[str] = []
    async for blob in services.blobs.list_blobs(DOCUMENTS):
        if not is_sidecar(blob.name) and window.holds(doc_id := document_id(blob.name)):
            held.append(doc_id)
        while len(held) > MOST_DOCUMENTS:
            window = window.narrowed(count)
            held = [doc_id for doc_id in held if window.holds(doc_id)]
    return window


async def take_inventory(services: IngestionServices, window: IdWindow, of_blocks: IdWindow) -> Inventory:
    """Read all of the window's documents, and the blocks of those in the narrower window `of_blocks`.

    Blocks are read before rows, rows before states and states before files, against the order of writes:
    anything seen first still existed when the rest was read, unless it was deleted.
    """
    blocks = await _read_blocks(services.content_index, of_blocks)
    condition = window.condition("doc_id")
    rows = {
        str(row["doc_id"]): DocumentRecord.of_row(row)
        async for row in all_rows(services.documents_index, "doc_id", _ROW_FIELDS, condition)
    }
    states = {state.doc_id: state async for state in services.documents.all(window.low, window.high)}
    files = {document_id(name): found for name, found in (await _read_files(services.blobs, window)).items()}
    names = {doc_id: found[""].name for doc_id, found in files.items() if "" in found}
    names |= {state.doc_id: state.blob_name for state in states.values()}

    def etag_of(doc_id: str, suffix: str) -> str | None:
        found = files.get(doc_id, {}).get(suffix)
        return None if found is None else found.etag

    seen = {
        doc_id: SeenDocument(
            name,
            etag_of(doc_id, ""),
            etag_of(doc_id, SIDECAR_SUFFIX) or "",
            states.get(doc_id),
            rows.get(doc_id),
            blocks.get(doc_id) or SeenBlocks(),
            etag_of(doc_id, HINTS_SUFFIX) or "",
        )
        for doc_id, name in names.items()
    }
    return Inventory(
        seen,
        {
            doc_id: doc_id if is_conversation_id(doc_id) else row.filename
            for doc_id, row in rows.items()
            if doc_id not in seen
        },
        {doc_id: found.count for doc_id, found in blocks.items() if doc_id not in seen},
        tuple(
            blob
            for found in files.values()
            for blob in found.values()
            if has_own_sidecar(blob.name) and "" not in found
        ),
    )


def compare(seen: SeenDocument, pipeline: str) -> Difference | None:
    """Return the first difference between file, state and row; None if they agree.

    Args:
        pipeline: of the current settings; documents ingested with others are outdated.
    """
    state = seen.state
    if state is None:
        return seen.difference("not_ingested", "The file was never ingested: its event was missed.")
    if seen.etag is None:
        return seen.difference("file_gone", "The file is gone, but its data is still there.")
    if seen.settled is None:
        return seen.difference("in_work", f"Status {state.status}, wish {state.wish} of {state.settled}.")
    return _compare_content(seen, state, pipeline) or _compare_row(seen, state)


def compare_blocks(seen: SeenDocument, state: DocumentState) -> Difference | None:
    """Compare the indexed blocks with the state of a document whose ingestion ended."""
    wanted, count = state.block_count if state.content_hash else 0, seen.blocks.count
    if count != wanted:
        kind: DifferenceKind = "blocks_missing" if count < wanted else "blocks_differ"
        return seen.difference(kind, f"{count} blocks are indexed, {wanted} belong to it.")
    if seen.is_too_open:
        return seen.difference("blocks_differ", "Blocks have another access list.")
    return None


def _compare_content(seen: SeenDocument, state: DocumentState, pipeline: str) -> Difference | None:
    tried_etag = state.wanted_etag if state.status == "failed" else state.blob_etag
    if tried_etag != seen.etag:
        return seen.difference("outdated", "The file was replaced after it was ingested.")
    if state.status == "ready" and state.pipeline != pipeline:
        return seen.difference("outdated", "It was ingested with other settings or rules.")
    if state.hints_etag != seen.hints_etag:
        return seen.difference("outdated", "The hints about its tables changed.")
    # A failed version's permissions are not applied to the visible one.
    is_indexed = state.content_hash != "" and (state.status != "failed" or state.blob_etag == seen.etag)
    if state.sidecar_etag != seen.sidecar_etag or (
        is_indexed and (state.rights != state.wanted_rights or state.rows_outdated)
    ):
        return seen.difference("rights_differ", "Its access list changed and was not applied.")
    if state.has_unshown_corrections:
        return seen.difference("outdated", "Its metadata was corrected, and the indexes lack that.")
    return None


def _compare_row(seen: SeenDocument, state: DocumentState) -> Difference | None:
    row, rights = seen.row, state.rights
    if not state.content_hash:
        return None if row is None else seen.difference("row_differs", "It has a row but no content.")
    if row is None:
        return seen.difference("row_missing", "It is ready, but not in the index of documents.")
    indexed = (row.content_hash, row.version, row.owner_id, row.project_id, set(row.access_control_list))
    known = (state.content_hash, state.version, rights.owner_id, rights.project_id, set(rights.acl))
    if indexed != known:
        return seen.difference("row_differs", "Its row belongs to another version, or has other permissions.")
    return None


async def _has_many_rows(index: SearchIndex, window: IdWindow) -> bool:
    """Return whether the window has more rows than fit, reading no more than needed."""
    seen = 0
    async for _ in all_rows(index, "doc_id", ("doc_id",), window.condition("doc_id")):
        seen += 1
        if seen > MOST_DOCUMENTS:
            return True
    return False


async def _read_files(blobs: BlobStore, window: IdWindow) -> dict[str, dict[str, BlobProperties]]:
    """Return each document's file and sidecars, by document name and by their suffix to it."""
    files: defaultdict[str, dict[str, BlobProperties]] = defaultdict(dict)
    async for blob in blobs.list_blobs(DOCUMENTS):
        document = document_of_blob(blob.name)
        suffix = blob.name.removeprefix(document)
        has_place = suffix != HINTS_SUFFIX or hints_of(document) is not None
        if has_place and window.holds(document_id(document)):
            files[document][suffix] = blob
    return files


async def _read_blocks(content_index: SearchIndex, window: IdWindow) -> dict[str, SeenBlocks]:
    """Return the blocks of the window's documents, by document."""
    found: dict[str, SeenBlocks] = defaultdict(SeenBlocks)
    async for row in all_rows(content_index, "block_id", _BLOCK_FIELDS, window.condition("doc_id")):
        blocks = found[str(row["doc_id"])]
        blocks.count += 1
        blocks.access_lists.add(tuple(sorted(row.get("access_control_list") or ())))
        if row.get("image_url"):
            blocks.figures.add(str(row["image_url"]))
    return dict(found)
