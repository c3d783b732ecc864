"""Compares a document's blocks with its manifest some time after an execution was fenced off.

An execution that lost its fence may be in the middle of a request. It compares its fence before each batch,
but the batch may arrive later and delete blocks that a newer version wrote, or write blocks of an older one.
"""

from datetime import timedelta

from shared.documents import index_rows, versions
from shared.documents.open_work import SecondLook
from shared.ingestion.changes import repair
from shared.ingestion.services import IngestionServices
from shared.ingestion.task import now
from shared.platform.errors import ConflictError, GroundworkError
from shared.platform.telemetry import get_logger

LATER = timedelta(minutes=15)  # longer than any batch and any activity


async def look_again(services: IngestionServices) -> int:
    """Compare every document that is due, and start a repair of each that differs. Return their number.

    Raises:
        GroundworkError: the store of rows failed.
    """
    differing = 0
    for look in await services.documents.open_work.second_looks(now() - LATER):
        try:
            differing += await _differs(look, services)
        except GroundworkError as failed:
            get_logger().warning("document.reconcile_failed", error_type=failed.code)
    return differing


async def _differs(look: SecondLook, services: IngestionServices) -> bool:
    documents = services.documents
    state = await documents.get(look.doc_id)
    if state is not None and (state.is_open or state.is_deleted):
        return False  # after its ingestion
    present = set(await index_rows.block_hashes(services.content_index, look.doc_id))
    if state is None:
        # Listed before the state was read again, so that blocks of a file that was sent again stay.
        if present and await documents.get(look.doc_id) is None:
            await services.content_index.delete(sorted(present))
        differs = False
    else:
        manifest = await versions.read_manifest(services.blobs, state.folder) if state.version_key else None
        differs = present != set(manifest.block_ids if manifest else ())
        if differs:
            try:
                await repair(state, services)
            except ConflictError:
                return False  # its ingestion has just started
    await documents.open_work.forget_second_look(look)
    return differs
