"""The last steps: close an ingestion, or remove a document that is gone. Both end the claim."""

from shared.core.document_ids import document_id
from shared.errors import GroundworkError
from shared.ingestion import claims, extracted, index_rows, page_files, work_files
from shared.ingestion.renaming import hand_over
from shared.ingestion.undoing import clear_up
from shared.models.ingestion import Closed, CloseRequest, IngestStep
from shared.models.names import FIGURES
from shared.services import Services
from shared.telemetry import get_logger


async def close(request: CloseRequest, services: Services) -> Closed:
    """Note how it ended."""
    if request.status == "failed":
        await _clear_up(request.step, services)
    return await claims.close(services.documents, request)


async def remove(step: IngestStep, services: Services) -> Closed:
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


async def _clear_up(step: IngestStep, services: Services) -> None:
    """Before the claim ends: what comes after it belongs to the next one."""
    state = await claims.update(services.documents, step, lambda current: current)
    try:
        await clear_up(step, state, services)
    except GroundworkError as failed:
        # That it failed, and why, must be told in any case; what is left, the next ingestion replaces.
        get_logger().warning("ingestion.not_cleared", doc_id=state.doc_id, error_type=failed.code)
