"""Reading and writing of the rows that represent documents and blocks in the search indexes."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from pathlib import PurePosixPath

from shared.documents.models import Block, Chunk
from shared.documents.state import Rights
from shared.platform.errors import DependencyError
from shared.platform.hashing import digest
from shared.platform.odata import all_of, quote, search_in
from shared.platform.search import IndexRow, SearchIndex, SearchRequest
from shared.retrieval.models import DocumentRecord
from shared.retrieval.terms import document_name_terms, document_words

MIN_NAMED_BLOCKS = 4
_PAGE_ROWS = 1000
# Pauses between attempts to delete all rows. After the last one, the whole step fails and is retried.
_REMOVAL_PAUSES_S = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)


def copied_fields(record: DocumentRecord) -> IndexRow:
    """Return the document fields that are copied to the row of each of its blocks, so that blocks can be
    filtered by them.
    """
    return {
        "project_id": record.project_id,
        "filename": record.filename,
        "document_type": record.document_type,
        "department": record.department,
        "version": record.version,
        "access_control_list": list(record.access_control_list),
        "thread_id": record.thread_id,
    }


def copied_hash(record: DocumentRecord) -> str:
    """Return a hash of the document fields that are copied to each block's row. While it is unchanged, the
    rows of unchanged blocks needn't be written.
    """
    fields = copied_fields(record)
    # A document's thread never changes, so it needs no place in the hash.
    del fields["thread_id"]
    return digest(*(repr(value) for _, value in sorted(fields.items())))[:32]


def block_row(block: Block, record: DocumentRecord, vector: Sequence[float]) -> IndexRow:
    """Return the complete index row of a block, including its vector. The row of a figure has a caption
    instead of content.
    """
    is_image = block.block_type == "image"
    row = block.model_dump(mode="json", exclude_none=True, exclude={"content"} if is_image else None)
    field = "image_caption_vector" if is_image else "content_vector"
    return {**row, **copied_fields(record), field: list(vector)}


def moved_row(block: Block, record: DocumentRecord) -> IndexRow:
    """Return the fields to update in the row of a block that moved within its document. Text, picture and
    vector are unchanged and are left out.
    """
    stays = {"doc_id", "block_type", "content", "image_url", "image_caption"}
    row = block.model_dump(mode="json", exclude=stays)
    return {**row, **copied_fields(record)}


def naming_fields(record: DocumentRecord, chunks: Sequence[Chunk]) -> IndexRow:
    """Return the index fields with the names and characteristic words by which a question may refer to a
    document.

    A short document gets no names: its few blocks contain them, and counting them twice ranks worse (decision
    0006).
    """
    texts = [chunk.text for chunk in chunks]
    has_names = len(chunks) >= MIN_NAMED_BLOCKS
    names = document_name_terms(record.filename, record.title, texts) if has_names else ()
    return {"names": list(names), "words": " ".join(document_words(names, texts))}


def rights_fields(rights: Rights) -> IndexRow:
    """Return the permission fields that the rows of both search indexes contain. The owner is only in rows of
    documents.
    """
    return {"access_control_list": list(rights.acl), "project_id": rights.project_id}


async def block_hashes(index: SearchIndex, doc_id: str) -> dict[str, str]:
    """Return the content hashes of all blocks of a document, keyed by block id."""
    rows = all_rows(index, "block_id", ("block_id", "content_hash"), f"doc_id eq {quote(doc_id)}")
    return {str(row["block_id"]): str(row.get("content_hash") or "") async for row in rows}


async def hashes_of(index: SearchIndex, block_ids: Sequence[str]) -> dict[str, str]:
    """Return the content hashes of the given blocks, keyed by block id. Blocks missing from the index are
    left out. At most 1,000 blocks may be requested.
    """
    if not block_ids:
        return {}
    condition, select = search_in("block_id", block_ids), ("block_id", "content_hash")
    page = await index.search(SearchRequest(filter=condition, select=select, top=len(block_ids)))
    return {str(row["block_id"]): str(row.get("content_hash") or "") for row in page.rows}


async def remove_blocks(index: SearchIndex, doc_id: str) -> None:
    """Delete all rows of a document. Searches may return recent writes late, so the deletion is repeated
    until a search finds no rows.

    Raises:
        DependencyError: searches still return rows.
    """
    for pause_s in (0.0, *_REMOVAL_PAUSES_S):
        # Pause before listing the rows, because a row may have been rewritten since they were last listed.
        await asyncio.sleep(pause_s)
        keys = list(await block_hashes(index, doc_id))
        if not keys:
            return
        await index.delete(keys)
    raise DependencyError("The search index still returns deleted blocks.", "The deletion is retried.")


async def figure_keys(index: SearchIndex, doc_id: str, *, without: Collection[str]) -> set[str]:
    """Return the picture keys that a document's index rows refer to. Rows of the blocks in `without` are
    ignored.
    """
    rows = all_rows(index, "block_id", ("block_id", "image_url"), f"doc_id eq {quote(doc_id)}")
    return {
        PurePosixPath(str(row["image_url"])).stem
        async for row in rows
        if row.get("image_url") and row["block_id"] not in without
    }


async def all_rows(
    index: SearchIndex, key: str, select: tuple[str, ...], condition: str | None = None
) -> AsyncIterator[IndexRow]:
    """Yield all rows that match a condition, in key order. An empty `select` returns all fields."""
    # Start each page after the last key of the previous one. `skip` is limited to 100,000 rows, and a
    # deletion between two pages would make it miss rows.
    last = ""
    while True:
        further = all_of(f"{key} gt {quote(last)}", condition)
        request = SearchRequest(filter=further, select=select, order_by=(key,), top=_PAGE_ROWS)
        rows = (await index.search(request)).rows
        for row in rows:
            yield row
        if len(rows) < _PAGE_ROWS:
            return
        last = str(rows[-1][key])


async def merge_rights(
    content_index: SearchIndex, documents_index: SearchIndex, doc_id: str, rights: Rights
) -> int:
    """Write permissions to the row of a document, then to the rows of its blocks. Return the number of
    blocks.
    """
    fields = rights_fields(rights)
    if await document_record(documents_index, doc_id) is not None:
        owner = rights.model_dump(include={"owner_id", "source_url", "published_by"})
        await documents_index.merge([{"doc_id": doc_id, **owner, **fields}])
    keys = await block_hashes(content_index, doc_id)
    await content_index.merge([{"block_id": key, **fields} for key in keys])
    return len(keys)


async def document_record(index: SearchIndex, doc_id: str) -> DocumentRecord | None:
    """Return the row of a document in the index, or None if it has none."""
    rows = (await index.search(SearchRequest(filter=f"doc_id eq {quote(doc_id)}", top=1))).rows
    return DocumentRecord.of_row(rows[0]) if rows else None
