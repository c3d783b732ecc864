"""Whether the event of a written blob tells anything that its document does not know already.

An upload raises two events beside its own start, and most come when all is done: an orchestration for each
would be two thirds of the cost of a short document. Whoever is not sure says no, and the ingestion finds out.
"""

from shared.documents.ids import document_id, document_of_blob, is_sidecar
from shared.documents.state import DocumentState, DocumentStore
from shared.ingestion.accepting import pipeline
from shared.ingestion.claims import now
from shared.platform.blobs import BlobProperties, BlobStore
from shared.platform.names import DOCUMENTS
from shared.platform.settings import Settings


async def is_old_news(
    written: BlobProperties, settings: Settings, blobs: BlobStore, documents: DocumentStore
) -> bool:
    """True when nothing is to be done for this version of a document or of its sidecar.

    Raises:
        GroundworkError: a service failed.
    """
    blob_name = document_of_blob(written.name)
    state = await documents.get(document_id(blob_name))
    if not is_sidecar(written.name):
        return state is not None and state.blob_etag == written.etag and _is_settled(state, settings)
    if state is None:
        # Rights of a file that is still to come: its own event will have them read.
        return await blobs.properties(DOCUMENTS, blob_name) is None
    if state.sidecar_etag != written.etag:
        return False
    return _is_settled(state, settings) or _is_in_work(state) or _is_announced(state)


def _is_settled(state: DocumentState, settings: Settings) -> bool:
    """Whether the indexes hold what they are to hold, and nobody works on the document."""
    return (
        state.status == "ready"
        and state.holder is None
        and not state.pending
        and not state.rows_outdated
        and state.rights == state.wanted_rights
        and state.pipeline == pipeline(settings)
    )


def _is_in_work(state: DocumentState) -> bool:
    """Whether somebody works on it, and so with the rights that the state tells."""
    return state.holder is not None and state.held_until is not None and state.held_until > now()


def _is_announced(state: DocumentState) -> bool:
    """Whether it was sent through the API, and nobody has begun: its own start and event are to come."""
    return state.status == "queued" and state.holder is None and not state.content_hash
