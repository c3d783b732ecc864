"""The blocks of a window's documents, counted row by row. Reads only."""

from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass

from shared.documents.ids import EVERYTHING, IdWindow, document_id, document_of_blob, is_sidecar
from shared.documents.state import DocumentState, DocumentStore
from shared.ingestion.audit_rules import SeenBlocks, SeenDocument
from shared.platform.blobs import BlobStore
from shared.platform.names import DOCUMENTS, FIGURES
from shared.platform.odata import all_of, quote
from shared.platform.search import IndexRow, SearchIndex, SearchRequest
from shared.retrieval.models import DocumentRecord

_PAGE_ROWS = 1000
MOST_DOCUMENTS = 10_000  # looked at at once: some 130 MB (13 KB each: measured)

# What is compared. A row has far more: summaries, names, every word of its document.
_COMPARED = (
    "doc_id",
    "filename",
    "upload_date",
    "content_hash",
    "version",
    "owner_id",
    "project_id",
    "access_control_list",
)


@dataclass(frozen=True)
class Inventory:
    """Documents by id, from every side.

    Attributes:
        seen: those with a file or a state.
        orphaned: rows whose documents have neither.
    """

    seen: dict[str, SeenDocument]
    orphaned: dict[str, DocumentRecord]


async def fitting_window(documents_index: SearchIndex, blobs: BlobStore, count: int) -> IdWindow:
    """The documents that are looked at now: all of them, or the part due at `count` that can be held."""
    window = EVERYTHING
    while await _has_many_rows(documents_index, window):
        window = window.narrowed(count)
    held: list[str] = []
    async for blob in blobs.list_blobs(DOCUMENTS):
        if not is_sidecar(blob.name) and window.holds(doc_id := document_id(blob.name)):
            held.append(doc_id)
        while len(held) > MOST_DOCUMENTS:
            window = window.narrowed(count)
            held = [doc_id for doc_id in held if window.holds(doc_id)]
    return window


async def take_inventory(
    documents_index: SearchIndex, blobs: BlobStore, documents: DocumentStore, window: IdWindow = EVERYTHING
) -> Inventory:
    """Read all of the window's documents.

    Rows are read before states and states before files, against the order in which an ingestion writes: what
    is seen first was there when the rest is looked at, unless it was removed.
    """
    rows = {record.doc_id: record async for record in _records(documents_index, window)}
    states = {state.doc_id: state async for state in documents.all(window.low, window.high)}
    etags: dict[str, str] = {}
    sidecars: dict[str, str] = {}
    async for blob in blobs.list_blobs(DOCUMENTS):
        document = document_of_blob(blob.name)
        if window.holds(document_id(document)):
            (etags if document == blob.name else sidecars)[document] = blob.etag
    names = {document_id(name): name for name in etags} | {
        state.doc_id: state.blob_name for state in states.values()
    }
    seen = {
        doc_id: _seen(name, etags, sidecars, states.get(doc_id), rows.get(doc_id))
        for doc_id, name in names.items()
    }
    return Inventory(seen, {doc_id: row for doc_id, row in rows.items() if doc_id not in seen})


async def all_rows(
    index: SearchIndex, key: str, select: tuple[str, ...], condition: str | None = None
) -> AsyncIterator[IndexRow]:
    """Every row of an index that meets the condition, by key; `select` empty = all fields."""
    # By key and not by skip: skip ends at 100,000 rows, and rows that vanish meanwhile would shift the pages.
    last = ""
    while True:
        further = all_of(f"{key} gt {quote(last)}", condition)
        page = await index.search(
            SearchRequest(filter=further, select=select, order_by=(key,), top=_PAGE_ROWS)
        )
        for row in page.rows:
            yield row
        if len(page.rows) < _PAGE_ROWS:
            return
        last = str(page.rows[-1][key])


async def _has_many_rows(index: SearchIndex, window: IdWindow) -> bool:
    """Whether the window has more rows than can be held; ends as soon as that is known."""
    seen = 0
    async for _ in all_rows(index, "doc_id", ("doc_id",), window.condition("doc_id")):
        seen += 1
        if seen > MOST_DOCUMENTS:
            return True
    return False


async def _records(index: SearchIndex, window: IdWindow) -> AsyncIterator[DocumentRecord]:
    async for row in all_rows(index, "doc_id", _COMPARED, window.condition("doc_id")):
        known = {name: row[name] for name in DocumentRecord.model_fields if row.get(name) is not None}
        yield DocumentRecord.model_validate(known)


def _seen(
    name: str,
    etags: dict[str, str],
    sidecars: dict[str, str],
    state: DocumentState | None,
    row: DocumentRecord | None,
) -> SeenDocument:
    return SeenDocument(name, etags.get(name), sidecars.get(name, ""), state, row)


WINDOW_BITS = 8  # of what the timer looks at each time: one of 256 parts, so each block within 21 hours
_FIELDS = ("block_id", "doc_id", "access_control_list", "image_url")


async def read_blocks(content_index: SearchIndex, window: IdWindow) -> dict[str, SeenBlocks]:
    """The blocks of the window's documents, by document."""
    condition = window.condition("doc_id")
    found: dict[str, SeenBlocks] = defaultdict(SeenBlocks)
    async for row in all_rows(content_index, "block_id", _FIELDS, condition):
        blocks = found[str(row["doc_id"])]
        blocks.count += 1
        blocks.access_lists.add(tuple(sorted(row.get("access_control_list") or ())))
        if row.get("image_url"):
            blocks.figures.add(str(row["image_url"]).removeprefix(f"{FIGURES}/"))
    return dict(found)
