"""Documents from the outside: which a user may see, complete or in work, and where their content lies."""

from shared.core.security_filter import may_read
from shared.errors import DocumentNotFoundError
from shared.models.document_views import DocumentList, DocumentView
from shared.models.documents import DocumentRecord
from shared.models.identity import UserContext
from shared.models.ingestion import DocumentState
from shared.models.search import Filters
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.secured_index import SecuredIndex
from shared.services import Services

_MAX_LISTED = 100
_SHOWN = set(DocumentView.model_fields) & set(DocumentRecord.model_fields)


async def list_documents(
    user: UserContext, services: Services, filters: Filters, limit: int = _MAX_LISTED
) -> DocumentList:
    """The user's documents: those in work or failed first, then the complete ones, newest first.

    `filters` apply to complete documents; with any filter, only those are listed.
    """
    complete = await _search(user, services).list_documents(filters, limit=limit)
    views = [_view_of_record(record) for record in complete]
    if not filters:
        listed = {view.doc_id for view in views}
        in_work = [
            _view_of_state(state)
            async for state in services.documents.unfinished()
            if state.doc_id not in listed and _may_see(user, state)
        ]
        views = [*sorted(in_work, key=lambda view: view.filename), *views]
    shown = tuple(views[:limit])
    return DocumentList(documents=shown, count=len(shown))


async def get_document(doc_id: str, user: UserContext, services: Services) -> DocumentView:
    """One document, complete or in work.

    Raises:
        DocumentNotFoundError: there is none, or the user may not see it; the two cannot be told apart.
    """
    state = await services.documents.get(doc_id)
    if state is not None and state.status != "ready" and _may_see(user, state):
        return _view_of_state(state)
    record = await _search(user, services).get(doc_id)
    warnings = state.warnings if state is not None else ()
    return _view_of_record(record).model_copy(update={"warnings": warnings})


async def readable_blob_name(doc_id: str, user: UserContext, services: Services) -> str:
    """The blob with the document's content, for a user who may read it (by the index's rights).

    Raises:
        DocumentNotFoundError: there is none, or the user may not read it.
    """
    await _search(user, services).get(doc_id)
    state = await services.documents.get(doc_id)
    if state is None:
        raise DocumentNotFoundError(f"There is no document {doc_id[:64]!r}.", "It was deleted just now.")
    return state.blob_name


def _search(user: UserContext, services: Services) -> DocumentSearch:
    return DocumentSearch(SecuredIndex(services.documents_index, user))


def _may_see(user: UserContext, state: DocumentState) -> bool:
    """Rights that are wanted count as well as those applied only where both admit the user.

    While rights change, the narrower of the two holds; before the first success only the wanted ones exist.
    """
    applied = may_read(user, state.rights.acl) or not state.blob_etag
    return applied and may_read(user, state.wanted_rights.acl)


def _view_of_record(record: DocumentRecord) -> DocumentView:
    return DocumentView.model_validate(record.model_dump(include=_SHOWN))


def _view_of_state(state: DocumentState) -> DocumentView:
    return DocumentView(
        doc_id=state.doc_id,
        filename=state.filename,
        status=state.status,
        page_count=state.page_count,
        version=state.version or None,
        status_reason=state.reason,
        hint=state.hint,
        warnings=state.warnings,
    )
