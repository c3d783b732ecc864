"""What a failed ingestion leaves: the version that was whole before it, and no blocks or files of its own.

Half a document must not be found; another try pays again for what it embeds and captions.
"""

from shared.core.record_manager import make_blocks, make_figure_blocks
from shared.errors import NotFoundError
from shared.ingestion import figure_store, index_rows, page_files, work_files
from shared.ingestion.accepting import pipeline
from shared.models.ingestion import BlockChanges, DocumentState, IngestStep, ParsedFile
from shared.models.names import FIGURES
from shared.services import Services


async def clear_up(step: IngestStep, state: DocumentState, services: Services) -> None:
    """Remove what the ingestion that fails now wrote; twice does no harm.

    Raises:
        GroundworkError: a service failed.
    """
    is_whole = (state.content_hash, state.pipeline) == (state.tried_hash, pipeline(services.settings))
    if not state.content_hash:
        await _remove_all(state.doc_id, services)
        await page_files.remove_all(services.blobs, state.doc_id)
    elif not is_whole:
        await _remove_new(step.model_copy(update={"content_hash": state.tried_hash}), state, services)
        await page_files.keep_only(services.blobs, state.doc_id, state.content_hash)
    await work_files.remove_all(services.blobs, state.doc_id)


async def _remove_all(doc_id: str, services: Services) -> None:
    await services.documents_index.delete([doc_id])
    await index_rows.remove_blocks(services.content_index, doc_id)
    await services.blobs.delete_prefix(FIGURES, f"{doc_id}/")


async def _remove_new(step: IngestStep, state: DocumentState, services: Services) -> None:
    """Remove the new version's own blocks, and the pictures that no block of the old one shows."""
    try:
        parsed = await work_files.get(services.blobs, step, work_files.PARSED, ParsedFile)
        changes = await work_files.get(services.blobs, step, work_files.CHANGES, BlockChanges)
    except NotFoundError:
        return  # it failed before anything was written
    model = services.settings.embedding_model
    captions = await figure_store.captions(services.blobs, state.doc_id)
    texts = make_blocks(state.doc_id, parsed.chunks, model)
    new: set[str] = set()
    for known in (captions, {}):  # a figure's block may have been written under either id
        blocks = texts + make_figure_blocks(state.doc_id, parsed.figures, known, model)
        new |= {blocks[position].block_id for position in changes.new}
    await services.content_index.delete(sorted(new))
    shown = await index_rows.figure_keys(services.content_index, state.doc_id, without=new)
    await figure_store.keep_only(services.blobs, state.doc_id, shown)
