"""Details, records and files of single documents that a user may read."""

from dataclasses import dataclass

from shared.access.models import UserContext
from shared.documents.corrections import with_corrections
from shared.documents.presentation import detail_of, view_of_record, view_of_state, with_status
from shared.documents.rights import may_see
from shared.documents.services import DocumentServices
from shared.documents.state import DocumentState
from shared.documents.views import DocumentDetail
from shared.platform.blobs import BlobProperties
from shared.platform.errors import ConflictError, DocumentNotFoundError
from shared.platform.names import DOCUMENTS
from shared.retrieval.document_rows import RowsReadOnce
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.models import DocumentRecord
from shared.retrieval.secured_index import SecuredIndex


def document_search(
    user: UserContext, services: DocumentServices, rows: RowsReadOnce | None = None
) -> DocumentSearch:
    """Return a search over the documents that the user may read. Callers that also need stored rows pass
    their `rows`, so that each row is read only once.
    """
    rows = rows or RowsReadOnce(services.documents)
    return DocumentSearch(SecuredIndex(services.documents_index, user, rows))


async def get_document(doc_id: str, user: UserContext, services: DocumentServices) -> DocumentDetail:
    """Return the details of a document, complete or in progress, with the history of its last ingestion.

    Raises:
        DocumentNotFoundError: the document is missing or forbidden, without distinction.
    """
    state = await services.documents.get(doc_id)
    if state is not None and state.status != "ready" and may_see(user, state):
        return detail_of(view_of_state(state), state, user)
    record = await document_search(user, services).get(doc_id)
    if state is None:
        return DocumentDetail(**dict(view_of_record(record)))
    if state.has_unshown_corrections:
        record = with_corrections(record, state.corrections)
    detail = detail_of(with_status(view_of_record(record), state), state, user)
    return detail.model_copy(update=record.model_dump(include={"summary_standard", "edited_fields"}))


async def get_own_document(
    state: DocumentState, user: UserContext, services: DocumentServices
) -> DocumentDetail:
    """Return the details of a document that the user may change. An administrator who may not read it gets
    only its name and progress.
    """
    try:
        return await get_document(state.doc_id, user, services)
    except DocumentNotFoundError:
        return detail_of(view_of_state(state), state, user)


@dataclass(frozen=True)
class ReadableDocument:
    """A document that the user may read: its record in the search index and its stored state."""

    record: DocumentRecord
    state: DocumentState


async def readable_document(doc_id: str, user: UserContext, services: DocumentServices) -> ReadableDocument:
    """Return a document if the user may read it under both its current and its pending permissions.

    Raises:
        DocumentNotFoundError: the document is missing or forbidden, without distinction.
    """
    record = await document_search(user, services).get(doc_id)
    state = await services.documents.get(doc_id)
    if state is None or not may_see(user, state):
        raise DocumentNotFoundError(
            f"There is no document {doc_id[:64]!r}.", "List the documents to see which exist."
        )
    return ReadableDocument(record, state)


async def readable_blob(doc_id: str, user: UserContext, services: DocumentServices) -> BlobProperties:
    """Return the properties of the blob with a document's file. Fail if the user may not read the version
    that it contains.

    Raises:
        DocumentNotFoundError: the document is missing or forbidden, without distinction.
        ConflictError: the container has a newer version whose permissions are not applied yet.
    """
    state = (await readable_document(doc_id, user, services)).state
    blob = await services.blobs.properties(DOCUMENTS, state.blob_name)
    if blob is None:
        raise DocumentNotFoundError(
            f"There is no document {doc_id[:64]!r}.", "The document has just been deleted."
        )
    # The user's permission applies to the ingested version. The blob may already contain a newer version with
    # other readers.
    if blob.etag != state.blob_etag:
        raise ConflictError("The document is being replaced.", "Retry when its new version is ready.")
    return blob
