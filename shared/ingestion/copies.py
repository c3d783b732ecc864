"""Reuse of ingestion results for identical files. It is limited to copies whose readers may all read the
original.

A moved file is a copy whose original is deleted afterwards, so its owner's corrections move to the new name.
If the original is deleted first, `adopt_corrections` moves them; otherwise `steps.remove` does, using
`is_new_name`.
"""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta

from shared.access.security_filter import PUBLIC
from shared.documents import figure_store
from shared.documents.ids import block_id_in
from shared.documents.models import Block, Caption, Original
from shared.documents.state import DocumentState, Rights
from shared.documents.state_store import DocumentStore
from shared.ingestion.acceptance import pipeline
from shared.ingestion.task import IngestTask
from shared.platform.blobs import BlobStore
from shared.platform.names import DOCUMENTS
from shared.platform.odata import all_of, quote, search_in
from shared.platform.search import SearchIndex, SearchRequest

# Maximum number of documents with the same bytes to check. Each check reads a row.
MAX_CANDIDATES = 20
_VECTORS = ("content_vector", "image_caption_vector")
# A copy counts as a renamed file if the old file is deleted within this time. Moving a folder copies all
# files before it deletes the originals (unmeasured).
RENAME_WINDOW = timedelta(minutes=15)


def covers(wider: Rights, narrower: Rights) -> bool:
    """Return whether everyone who may read a document with the permissions `narrower` may also read one with
    `wider`. Return False if `narrower` admits no readers.
    """
    readers = set(narrower.acl)
    return bool(readers) and (PUBLIC in wider.acl or readers <= set(wider.acl))


def may_reuse(copy: DocumentState, original: DocumentState, content_hash: str, pipeline: str) -> bool:
    """Return whether a copy may reuse the vectors, captions and metadata of the original.

    Args:
        content_hash, pipeline: values of the copy after its ingestion.
    """
    is_same = (original.content_hash, original.pipeline) == (content_hash, pipeline)
    return is_same and original.doc_id != copy.doc_id and _may_see_original(original, copy)


def has_same_owner(one: DocumentState, other: DocumentState) -> bool:
    """Return whether two documents have the same owner. Documents without an owner never match."""
    owner = one.wanted_rights.owner_id
    return bool(owner) and owner == other.wanted_rights.owner_id


def is_new_name(old: DocumentState, other: DocumentState, moment: datetime) -> bool:
    """Return whether `other` is a renamed copy of `old`, whose file was deleted at `moment`.

    That requires an uncorrected copy by the same owner, first ingested within `RENAME_WINDOW`.
    """
    is_fresh = other.version == 1 and bool(other.phases) and moment - other.phases[0].at <= RENAME_WINDOW
    is_same = other.doc_id != old.doc_id and other.content_hash == old.content_hash
    return (
        is_fresh
        and is_same
        and not other.corrections
        and has_same_owner(old, other)
        and _may_see_original(old, other)
    )


def _may_see_original(original: DocumentState, copy: DocumentState) -> bool:
    """Return whether every reader of the copy may also read the original. Both the current and the pending
    permissions of the original must allow it.
    """
    pending = copy.wanted_rights
    return (
        original.rights.project_id == original.wanted_rights.project_id == pending.project_id
        and covers(original.rights, pending)
        and covers(original.wanted_rights, pending)
    )


async def find_original(task: IngestTask) -> Original:
    """Return a document with the same bytes whose vectors, captions and metadata can be reused. If there is
    none, return an empty `Original`.
    """
    state, current_pipeline = await task.current_state(), pipeline(task.services.settings)
    index = task.services.documents_index
    async for other in same_bytes(state, task.content_hash, index, task.documents):
        if may_reuse(state, other, task.content_hash, current_pipeline):
            moving = other.corrections if has_same_owner(state, other) else {}
            return Original(
                doc_id=other.doc_id, blob_name=other.blob_name, folder=other.folder, corrections=moving
            )
    return Original()


async def same_bytes(
    state: DocumentState, content_hash: str, documents_index: SearchIndex, documents: DocumentStore
) -> AsyncIterator[DocumentState]:
    """Yield up to `MAX_CANDIDATES` other documents of the project that have the same bytes. Each has at least
    one reader in common with this document.

    Files attached to one conversation are neither reused nor given results of other documents.
    """
    pending = state.wanted_rights
    if not pending.acl or state.thread_id:
        return
    project = "null" if pending.project_id is None else quote(pending.project_id)
    condition = all_of(
        f"content_hash eq {quote(content_hash)}",
        f"project_id eq {project}",
        "thread_id eq null",
        f"doc_id ne {quote(state.doc_id)}",
        # Filter by a single reader. This excludes most unreadable documents, and `may_reuse` then checks all
        # readers.
        f"access_control_list/any(acl: {search_in('acl', (PUBLIC, pending.acl[0]))})",
    )
    request = SearchRequest(filter=condition, select=("doc_id",), order_by=("doc_id",), top=MAX_CANDIDATES)
    for row in (await documents_index.search(request)).rows:
        other = await documents.get(str(row["doc_id"]))
        if other is not None and not other.thread_id:
            yield other


async def captions_of(original: Original, blobs: BlobStore) -> dict[str, Caption]:
    """Return the original's model-written captions by picture key."""
    if original.doc_id is None:
        return {}
    captions = await figure_store.captions(blobs, original.folder)
    return {key: caption for key, caption in captions.items() if caption.by_model}


async def vectors_of(
    original: str, blocks: Sequence[Block], content_index: SearchIndex
) -> dict[str, Sequence[float]]:
    """Return the vectors of the original's blocks that the copy also contains, keyed by block id of the
    copy.
    """
    by_original_id = {block_id_in(original, block.block_id): block for block in blocks}
    request = SearchRequest(
        filter=f"doc_id eq {quote(original)} and {search_in('block_id', by_original_id)}",
        select=("block_id", "image_caption", *_VECTORS),
        top=len(by_original_id),
    )
    vectors: dict[str, Sequence[float]] = {}
    for row in (await content_index.search(request)).rows:
        block = by_original_id[str(row["block_id"])]
        vector = row.get(_VECTORS[block.block_type == "image"])
        if vector and row.get("image_caption") == block.image_caption:
            vectors[block.block_id] = vector
    return vectors


async def adopt_corrections(task: IngestTask, original: Original) -> None:
    """Adopt the corrections of the original if its file is gone, because the file was only renamed."""
    if not original.corrections or (await task.current_state()).version:
        return
    if await task.blobs.properties(DOCUMENTS, original.blob_name) is not None:
        return

    def corrected(current: DocumentState) -> DocumentState:
        merged = {**original.corrections, **current.corrections}
        return current.model_copy(update={"corrections": merged, "rows_outdated": True})

    await task.update(corrected)
