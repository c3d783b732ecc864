"""Delayed comparison of a document's blocks with its manifest, after an execution was fenced off.

An execution that is fenced off may have a request in flight. It checks its fence before each batch, but the
batch may arrive later, and delete blocks of a newer version or write blocks of an older one.
"""

from datetime import timedelta

from shared.documents import index_rows, versions
from shared.documents.open_work import SecondLook
from shared.ingestion.changes import repair
from shared.ingestion.services import IngestionServices
from shared.ingestion.task import now
from shared.platform.errors import ConflictError, GroundworkError
from shared.platform.telemetry import get_logger

# Delay of the comparison. A fenced-off execution has no request in flight after this time, which is longer
# than any batch or activity takes.
LATER = timedelta(minutes=15)


async def look_again(services: IngestionServices) -> int:
    """For documents that were fenced off a while ago, compare the indexed blocks with the manifests, and
    request repairs. Return the number of documents that differ.

    Raises:
        GroundworkError: the row store failed. Other failures are logged, and the document is checked later.
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
        # Compare the document after its ingestion or removal has ended.
        return False
    present = set(await index_rows.block_hashes(services.content_index, look.doc_id))
    if state is None:
        # Delete only the blocks listed above, and only if there is still no state, because the file may have
        # been uploaded again.
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
                # An ingestion has just started. Compare the document after it has ended.
                return False
    await documents.open_work.forget_second_look(look)
    return differs
