"""The last steps: close an ingestion, or remove a document that is gone. Both end the claim."""

from shared.documents import figure_store, index_rows, page_files
from shared.documents.ids import document_id
from shared.documents.state import DocumentState
from shared.ingestion import claims, extracted, work_files
from shared.ingestion.accepting import pipeline
from shared.ingestion.changes import correct
from shared.ingestion.claims import now
from shared.ingestion.copies import is_new_name, same_bytes
from shared.ingestion.models import BlockChanges, Closed, CloseRequest, IngestStep, ParsedFile
from shared.ingestion.record_manager import make_blocks, make_figure_blocks
from shared.ingestion.services import IngestionServices
from shared.platform.blobs import BlobStore
from shared.platform.errors import ConflictError, DependencyError, GroundworkError, NotFoundError
from shared.platform.names import FIGURES
from shared.platform.search import SearchIndex
from shared.platform.settings import Settings
from shared.platform.telemetry import get_logger


async def hand_over(step: IngestStep, state: DocumentState, services: IngestionServices) -> None:
    """Give the corrections of a document whose file is gone to the one that is its new name, if there is one.

    Raises:
        DependencyError: somebody works on that one. On the last attempt the corrections go.
    """
    if not state.corrections:
        return
    moment = now()
    async for other in same_bytes(state, state.content_hash, services.documents_index, services.documents):
        if not is_new_name(state, other, moment):
            continue
        try:
            # Whoever left it a note meanwhile looks after it by himself (`holders.check_holder`).
            await correct(other, state.corrections, services)
        except ConflictError:
            if not step.last_attempt:
                raise DependencyError("The copy of the document is in work.", "It is tried again.") from None
        return


async def clear_up(step: IngestStep, state: DocumentState, services: IngestionServices) -> None:
    """Remove what the ingestion that fails now wrote; twice does no harm.

    Raises:
        GroundworkError: a service failed.
    """
    is_whole = (state.content_hash, state.pipeline) == (state.tried_hash, pipeline(services.settings))
    if not state.content_hash:
        await _remove_all(state.doc_id, services.content_index, services.documents_index, services.blobs)
        await page_files.remove_all(services.blobs, state.doc_id)
    elif not is_whole:
        await _remove_new(
            step.model_copy(update={"content_hash": state.tried_hash}),
            state,
            services.settings,
            services.content_index,
            services.blobs,
        )
        await page_files.keep_only(services.blobs, state.doc_id, state.content_hash)
    await work_files.remove_all(services.blobs, state.doc_id)


async def _remove_all(
    doc_id: str, content_index: SearchIndex, documents_index: SearchIndex, blobs: BlobStore
) -> None:
    await documents_index.delete([doc_id])
    await index_rows.remove_blocks(content_index, doc_id)
    await blobs.delete_prefix(FIGURES, f"{doc_id}/")


async def _remove_new(
    step: IngestStep, state: DocumentState, settings: Settings, content_index: SearchIndex, blobs: BlobStore
) -> None:
    """Remove the new version's own blocks, and the pictures that no block of the old one shows."""
    try:
        parsed = await work_files.get(blobs, step, work_files.PARSED, ParsedFile)
        changes = await work_files.get(blobs, step, work_files.CHANGES, BlockChanges)
    except NotFoundError:
        return  # it failed before anything was written
    model = settings.models.embedding
    captions = await figure_store.captions(blobs, state.doc_id)
    texts = make_blocks(state.doc_id, parsed.chunks, model)
    new: set[str] = set()
    for known in (captions, {}):  # a figure's block may have been written under either id
        blocks = texts + make_figure_blocks(state.doc_id, parsed.figures, known, model)
        new |= {blocks[position].block_id for position in changes.new}
    await content_index.delete(sorted(new))
    shown = await index_rows.figure_keys(content_index, state.doc_id, without=new)
    await figure_store.keep_only(blobs, state.doc_id, shown)


async def close(request: CloseRequest, services: IngestionServices) -> Closed:
    """Note how it ended."""
    if request.status == "failed":
        await _clear_up(request.step, services)
    return await claims.close(services.documents, request)


async def remove(step: IngestStep, services: IngestionServices) -> Closed:
    """Remove every trace of a document whose blob is gone; its state last, so that a crash is made good."""
    state = await claims.update(services.documents, step, lambda current: current)
    await hand_over(step, state, services)
    doc_id = document_id(step.blob_name)
    # The row first: a document in the list must be searchable in full.
    await services.documents_index.delete([doc_id])
    await index_rows.remove_blocks(services.content_index, doc_id)
    await services.blobs.delete_prefix(FIGURES, f"{doc_id}/")
    await work_files.remove_all(services.blobs, doc_id)
    await extracted.remove(services.blobs, doc_id)
    await page_files.remove_all(services.blobs, doc_id)
    return await claims.forget(services.documents, step)


async def _clear_up(step: IngestStep, services: IngestionServices) -> None:
    """Before the claim ends: what comes after it belongs to the next one."""
    state = await claims.update(services.documents, step, lambda current: current)
    try:
        await clear_up(step, state, services)
    except GroundworkError as failed:
        # That it failed, and why, must be told in any case; what is left, the next ingestion replaces.
        get_logger().warning("ingestion.not_cleared", doc_id=state.doc_id, error_type=failed.code)
