"""Read-only inventory of documents, and comparison of their files, states, index rows and blocks.

If there are more documents than fit into memory, successive calls read different parts.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
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

# Maximum number of documents per call. They take about 130 MB of memory (measured: 13 KB per document).
MOST_DOCUMENTS = 10_000
# Each timer call reads the blocks of one of 2^8 = 256 windows, so that all blocks are read within 21 hours.
WINDOW_BITS = 8

# Read only the fields that are compared. The others, such as summaries, are large.
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


def place_in_report(blob_name: str) -> str:
    """Return the name of a document in a report: its blob name, or its id if it is a conversation file, whose
    name administrators must not see.
    """
    return document_id(blob_name) if is_conversation_file(blob_name) else blob_name


@dataclass
class SeenBlocks:
    """Summary of one document's rows in the content index."""

    count: int = 0
    access_lists: set[tuple[str, ...]] = field(default_factory=set)
    figures: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class SeenDocument:
    """Everything stored about one document: file, access list, state, index row and blocks. None or "" means
    that the record is missing.

    Attributes:
        etag: etag of the file.
        sidecar_etag: etag of the access list.
        hints_etag: etag of the table hints.
        blocks: summary of the blocks; empty outside the window whose blocks were read.
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
        """State of the document, or None during an ingestion, when the stores can't be compared."""
        state = self.state
        is_ended = state is not None and state.status in ("ready", "failed") and not state.is_open
        return state if is_ended else None

    @property
    def is_too_open(self) -> bool:
        """Whether the access list of an indexed block differs from the document's."""
        return self.state is not None and bool(
            self.blocks.access_lists - {tuple(sorted(self.state.rights.acl))}
        )

    def difference(self, kind: DifferenceKind, detail: str) -> Difference:
        """Return a difference of this document for a report. The name of a conversation file is replaced with
        its id.
        """
        return Difference(kind=kind, place=place_in_report(self.name), detail=detail)


@dataclass(frozen=True)
class Inventory:
    """Inventory of stored documents, with all records of a document under its id.

    Attributes:
        seen: documents with a file or a state.
        orphaned_rows: file names (ids for conversation files) in index rows without file and state.
        orphaned_blocks: number of blocks of documents without file and state.
        unused_uploads: access lists and hints of uploads whose files never arrived.
    """

    seen: dict[str, SeenDocument]
    orphaned_rows: dict[str, str]
    orphaned_blocks: dict[str, int]
    unused_uploads: tuple[BlobProperties, ...]


async def fitting_window(services: IngestionServices, count: int) -> IdWindow:
    """Return the window of documents to read in this call: all documents if they fit into memory, otherwise
    the part selected by `count`.
    """
    window = EVERYTHING
    while await _has_many_rows(services.documents_index, window):
        window = window.narrow(count)
    doc_ids: list[str] = []
    async for blob in services.blobs.list_blobs(DOCUMENTS):
        if not is_sidecar(blob.name) and window.holds(doc_id := document_id(blob.name)):
            doc_ids.append(doc_id)
        while len(doc_ids) > MOST_DOCUMENTS:
            window = window.narrow(count)
            doc_ids = [doc_id for doc_id in doc_ids if window.holds(doc_id)]
    return window


async def take_inventory(services: IngestionServices, window: IdWindow, of_blocks: IdWindow) -> Inventory:
    """Read all records of the documents in `window`. Blocks are only read for documents in `of_blocks`, a
    window inside it.

    Blocks are read before rows, rows before states, and states before files, in the reverse order of writes.
    So for each record that is read, the records written before it are found, too, unless they were deleted.
    """
    blocks = await _read_blocks(services.content_index, of_blocks)
    condition = window.condition("doc_id")
    rows = {
        str(row["doc_id"]): DocumentRecord.of_row(row)
        async for row in all_rows(services.documents_index, "doc_id", _ROW_FIELDS, condition)
    }
    states = {state.doc_id: state async for state in services.documents.all(window.low, window.high)}
    files = {document_id(name): blobs for name, blobs in (await _read_files(services.blobs, window)).items()}
    names = {doc_id: blobs[""].name for doc_id, blobs in files.items() if "" in blobs}
    names |= {state.doc_id: state.blob_name for state in states.values()}

    def etag_of(doc_id: str, suffix: str) -> str | None:
        blob = files.get(doc_id, {}).get(suffix)
        return None if blob is None else blob.etag

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
        {doc_id: summary.count for doc_id, summary in blocks.items() if doc_id not in seen},
        _sidecars_without_file(files.values()),
    )


def _sidecars_without_file(files: Iterable[Mapping[str, BlobProperties]]) -> tuple[BlobProperties, ...]:
    """Return the access lists and table hints of uploads whose file never arrived. Each mapping in `files`
    contains the blobs of one document by suffix.
    """
    return tuple(
        blob for blobs in files for blob in blobs.values() if has_own_sidecar(blob.name) and "" not in blobs
    )


def compare(seen: SeenDocument, pipeline: str) -> Difference | None:
    """Return the first difference between a document's file, state and index row, or None if all three agree.

    Args:
        pipeline: hash of the current settings and rules; documents ingested with others are outdated.
    """
    state = seen.state
    if state is None:
        return seen.difference("not_ingested", "The file was never ingested: its event was missed.")
    if seen.etag is None:
        return seen.difference("file_gone", "The file is gone, but its data still exists.")
    if seen.settled is None:
        return seen.difference(
            "in_work", f"Status {state.status}, request {state.wish} (processed: {state.settled})."
        )
    return _compare_content(seen, state, pipeline) or _compare_row(seen, state)


def compare_blocks(seen: SeenDocument, state: DocumentState) -> Difference | None:
    """Return a difference if the number or access lists of the indexed blocks disagree with the state."""
    expected, count = state.block_count if state.content_hash else 0, seen.blocks.count
    if count != expected:
        kind: DifferenceKind = "blocks_missing" if count < expected else "blocks_differ"
        return seen.difference(kind, f"{count} blocks are indexed, but the document has {expected}.")
    if seen.is_too_open:
        return seen.difference("blocks_differ", "Some blocks have another access list than the document.")
    return None


def _compare_content(seen: SeenDocument, state: DocumentState, pipeline: str) -> Difference | None:
    tried_etag = state.wanted_etag if state.status == "failed" else state.blob_etag
    if tried_etag != seen.etag:
        return seen.difference("outdated", "The file was replaced after it was ingested.")
    if state.status == "ready" and state.pipeline != pipeline:
        return seen.difference("outdated", "The document was ingested with other settings or rules.")
    if state.hints_etag != seen.hints_etag:
        return seen.difference("outdated", "The table hints of the document changed.")
    # The permissions that came with a failed version never apply to the published version.
    is_indexed = state.content_hash != "" and (state.status != "failed" or state.blob_etag == seen.etag)
    if state.sidecar_etag != seen.sidecar_etag or (
        is_indexed and (state.rights != state.wanted_rights or state.rows_outdated)
    ):
        return seen.difference("rights_differ", "The access list changed and was not applied.")
    if state.has_unshown_corrections:
        return seen.difference(
            "outdated", "The metadata was corrected, but the indexes lack the corrections."
        )
    return None


def _compare_row(seen: SeenDocument, state: DocumentState) -> Difference | None:
    row, rights = seen.row, state.rights
    if not state.content_hash:
        return (
            None
            if row is None
            else seen.difference("row_differs", "The document has an index row but no content.")
        )
    if row is None:
        return seen.difference("row_missing", "The document is ready but missing from the document index.")
    indexed = (row.content_hash, row.version, row.owner_id, row.project_id, set(row.access_control_list))
    expected = (state.content_hash, state.version, rights.owner_id, rights.project_id, set(rights.acl))
    if indexed != expected:
        return seen.difference(
            "row_differs", "The index row belongs to another version or has other permissions."
        )
    return None


async def _has_many_rows(index: SearchIndex, window: IdWindow) -> bool:
    """Return whether the window has more than `MOST_DOCUMENTS` rows. Rows beyond the limit are not read."""
    seen = 0
    async for _ in all_rows(index, "doc_id", ("doc_id",), window.condition("doc_id")):
        seen += 1
        if seen > MOST_DOCUMENTS:
            return True
    return False


async def _read_files(blobs: BlobStore, window: IdWindow) -> dict[str, dict[str, BlobProperties]]:
    """Return the files of the documents in the window: blob properties by document name and suffix, where ""
    is the document itself.
    """
    files: defaultdict[str, dict[str, BlobProperties]] = defaultdict(dict)
    async for blob in blobs.list_blobs(DOCUMENTS):
        document = document_of_blob(blob.name)
        suffix = blob.name.removeprefix(document)
        has_place = suffix != HINTS_SUFFIX or hints_of(document) is not None
        if has_place and window.holds(document_id(document)):
            files[document][suffix] = blob
    return files


async def _read_blocks(content_index: SearchIndex, window: IdWindow) -> dict[str, SeenBlocks]:
    """Return a summary of the indexed blocks for each document in the window."""
    by_document: dict[str, SeenBlocks] = defaultdict(SeenBlocks)
    async for row in all_rows(content_index, "block_id", _BLOCK_FIELDS, window.condition("doc_id")):
        blocks = by_document[str(row["doc_id"])]
        blocks.count += 1
        blocks.access_lists.add(tuple(sorted(row.get("access_control_list") or ())))
        if row.get("image_url"):
            blocks.figures.add(str(row["image_url"]))
    return dict(by_document)
