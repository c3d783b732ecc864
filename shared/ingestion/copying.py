"""Copies of a file: what was made of the same bytes under another name is used again, and no model is asked.

The lookup is one filtered query of the index of documents. Which document may serve is decided in
`core/copies.py`; the copy has its own rights, rows and pictures, and lives on when the other one goes.
"""

from collections.abc import AsyncIterator, Sequence

from shared.core.copies import has_same_owner, may_reuse
from shared.core.document_ids import block_id_in
from shared.core.odata import all_of, quote, search_in
from shared.core.security_filter import PUBLIC
from shared.errors import InvalidQueryError, NotFoundError
from shared.ingestion import figure_store, work_files
from shared.ingestion.accepting import pipeline
from shared.ingestion.claims import update
from shared.models.blocks import Block, Caption
from shared.models.ingestion import Corrections, DocumentState, IngestStep
from shared.models.names import DOCUMENTS
from shared.models.search import SearchRequest
from shared.models.work_files import Original
from shared.services import Services

MAX_CANDIDATES = 20  # documents of the same bytes that are looked at: one query, and a table row for each
_VECTORS = ("content_vector", "image_caption_vector")


async def find_original(step: IngestStep, state: DocumentState, services: Services) -> Original:
    """The document whose blocks, captions and metadata serve this one, too; noted for the later steps."""
    found = Original()
    async for other in same_bytes(state, step.content_hash, services):
        if may_reuse(state, other, step.content_hash, pipeline(services.settings)):
            moving = other.corrections if has_same_owner(state, other) else {}
            found = Original(doc_id=other.doc_id, blob_name=other.blob_name, corrections=moving)
            break
    await work_files.put(services.blobs, step, work_files.ORIGINAL, found)
    return found


async def same_bytes(
    state: DocumentState, content_hash: str, services: Services
) -> AsyncIterator[DocumentState]:
    """Other documents of these bytes in the project, as far as a reader of this one may read them."""
    wanted = state.wanted_rights
    if not wanted.acl:
        return
    project = "null" if wanted.project_id is None else quote(wanted.project_id)
    condition = all_of(
        f"content_hash eq {quote(content_hash)}",
        f"project_id eq {project}",
        f"doc_id ne {quote(state.doc_id)}",
        # One reader is enough to leave the closed ones out; all of them are looked at in `core/copies.py`.
        f"access_control_list/any(acl: {search_in('acl', (PUBLIC, wanted.acl[0]))})",
    )
    request = SearchRequest(filter=condition, select=("doc_id",), order_by=("doc_id",), top=MAX_CANDIDATES)
    for row in (await services.documents_index.search(request)).rows:
        other = await services.documents.get(str(row["doc_id"]))
        if other is not None:
            yield other


async def original_of(step: IngestStep, services: Services) -> str | None:
    """The id of the document that this one is a copy of, as an earlier step found out."""
    return (await _noted(step, services)).doc_id


async def captions_of(step: IngestStep, services: Services) -> dict[str, Caption]:
    """The captions that a model gave the original's figures, by the picture's key."""
    original = await original_of(step, services)
    if original is None:
        return {}
    known = await figure_store.captions(services.blobs, original)
    return {key: caption for key, caption in known.items() if caption.by_model}


async def vectors_of(
    original: str, blocks: Sequence[Block], services: Services
) -> dict[str, Sequence[float]]:
    """The vectors that the original has for these blocks of its copy, by the ids of the latter."""
    wanted = {block_id_in(original, block.block_id): block for block in blocks}
    request = SearchRequest(
        filter=f"doc_id eq {quote(original)} and {search_in('block_id', wanted)}",
        select=("block_id", "image_caption", *_VECTORS),
        top=len(wanted),
    )
    try:
        page = await services.content_index.search(request)
    except InvalidQueryError:  # an index from before its vectors could be read
        return {}
    found: dict[str, Sequence[float]] = {}
    for row in page.rows:
        block = wanted[str(row["block_id"])]
        vector = row.get(_VECTORS[block.block_type == "image"])
        if vector and row.get("image_caption") == block.image_caption:
            found[block.block_id] = vector
    return found


async def take_corrections(step: IngestStep, state: DocumentState, services: Services) -> DocumentState:
    """Take over what the owner corrected in the original, if its file is gone: then this is its new name."""
    original = await _noted(step, services)
    if not original.corrections or state.version:
        return state
    if await services.blobs.properties(DOCUMENTS, original.blob_name) is not None:
        return state
    return await update(services.documents, step, lambda current: _taken(current, original.corrections))


def _taken(state: DocumentState, corrections: Corrections) -> DocumentState:
    merged = {**corrections, **state.corrections}
    return state.model_copy(update={"corrections": merged, "rows_outdated": True})


async def _noted(step: IngestStep, services: Services) -> Original:
    try:
        return await work_files.get(services.blobs, step, work_files.ORIGINAL, Original)
    except NotFoundError:  # an ingestion that began before copies were looked for
        return Original()
