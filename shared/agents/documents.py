"""Documents from the outside: which a user may see, complete or in work, and where their content lies."""

from datetime import UTC, datetime

from shared.core.document_authority import may_change, may_see
from shared.core.document_order import Place, older_than, read_cursor, write_cursor
from shared.core.upload_names import upload_folder
from shared.errors import ConflictError, DocumentNotFoundError
from shared.models.blobs import BlobProperties
from shared.models.document_views import DocumentDetail, DocumentList, DocumentView, PhaseView
from shared.models.documents import DocumentRecord
from shared.models.identity import UserContext
from shared.models.ingestion import DocumentState
from shared.models.names import DOCUMENTS
from shared.models.search import Filters
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.secured_index import SecuredIndex
from shared.services import Services

_MAX_LISTED = 100
_ENDS = frozenset({"ready", "failed"})
_SHOWN = set(DocumentView.model_fields) & set(DocumentRecord.model_fields)


async def list_documents(
    user: UserContext, services: Services, filters: Filters, limit: int = _MAX_LISTED, cursor: str = ""
) -> DocumentList:
    """The user's documents: those in work or failed first, then the complete ones, newest first.

    `filters` apply to complete documents; with any filter, only those are listed. A document whose new
    version is in work, or failed, is listed as the complete one that it is still.

    Raises:
        CallerError: the cursor is none of this list.
    """
    place = read_cursor(cursor)
    found: list[DocumentView] = []
    if not filters and (place is None or place.filename is not None):
        found = await _in_work(user, services, place, limit + 1)
    places = [Place(doc_id=view.doc_id, filename=view.filename) for view in found]
    if len(found) <= limit:
        behind = older_than(place.upload_date, place.doc_id) if place and place.upload_date else None
        complete = await _search(user, services).page(filters, behind, limit + 1 - len(found))
        places += [Place(doc_id=one.doc_id, upload_date=one.upload_date) for one in complete]
        found += [_view_of_record(record) for record in complete]
    shown = tuple(found[:limit])
    further = write_cursor(places[limit - 1]) if len(found) > limit else None
    return DocumentList(documents=shown, count=len(shown), cursor=further)


async def _in_work(
    user: UserContext, services: Services, place: Place | None, most: int
) -> list[DocumentView]:
    """The first of those that the index does not tell of, behind the place."""
    states = [state async for state in services.documents.unfinished() if may_see(user, state)]
    views = sorted((view_of_state(state) for state in states), key=_name_and_id)
    if place is not None:
        views = [view for view in views if _name_and_id(view) > (place.filename or "", place.doc_id)]
    found: list[DocumentView] = []
    for start in range(0, len(views), _MAX_LISTED):
        some = views[start : start + _MAX_LISTED]
        complete = await _search(user, services).get_many([view.doc_id for view in some])
        found += [view for view in some if view.doc_id not in complete]
        if len(found) >= most:
            break
    return found[:most]


def _name_and_id(view: DocumentView) -> tuple[str, str]:
    return view.filename, view.doc_id


async def get_document(doc_id: str, user: UserContext, services: Services) -> DocumentDetail:
    """One document, complete or in work, with the history of its last ingestion.

    Raises:
        DocumentNotFoundError: there is none, or the user may not see it; the two cannot be told apart.
    """
    state = await services.documents.get(doc_id)
    if state is not None and state.status != "ready" and may_see(user, state):
        return _detail(view_of_state(state), state, user)
    record = await _search(user, services).get(doc_id)
    view = _view_of_record(record)
    if state is None:
        return DocumentDetail(**dict(view))
    detail = _detail(view.model_copy(update={"warnings": state.warnings}), state, user)
    return detail.model_copy(update=record.model_dump(include={"summary_standard", "edited_fields"}))


async def get_own_document(state: DocumentState, user: UserContext, services: Services) -> DocumentDetail:
    """A document that the user may change, whose state is at hand. Who may change it need not be able to read
    it: then no more is told than its name and how far it is."""
    try:
        return await get_document(state.doc_id, user, services)
    except DocumentNotFoundError:
        return _detail(view_of_state(state), state, user)


async def readable_blob(doc_id: str, user: UserContext, services: Services) -> BlobProperties:
    """The blob with the document's content, for a user who may read it by the rights of that very version.

    Raises:
        DocumentNotFoundError: there is none, or the user may not read it.
        ConflictError: a newer version lies in the container, whose rights are not applied yet.
    """
    await _search(user, services).get(doc_id)
    state = await services.documents.get(doc_id)
    blob = None if state is None else await services.blobs.properties(DOCUMENTS, state.blob_name)
    if state is None or blob is None or not may_see(user, state):
        raise DocumentNotFoundError(f"There is no document {doc_id[:64]!r}.", "It was deleted just now.")
    # The index tells of the version that was ingested; the blob may be another one, for other readers.
    if blob.etag != state.blob_etag:
        raise ConflictError("The document is being replaced.", "Try again when its new version is ready.")
    return blob


def _search(user: UserContext, services: Services) -> DocumentSearch:
    return DocumentSearch(SecuredIndex(services.documents_index, user))


def _view_of_record(record: DocumentRecord) -> DocumentView:
    return DocumentView.model_validate(record.model_dump(include=_SHOWN))


def _detail(view: DocumentView, state: DocumentState, user: UserContext) -> DocumentDetail:
    changeable = may_change(user, state)
    return DocumentDetail(
        **dict(view),
        edited_fields=tuple(sorted(state.corrections)),
        may_change=changeable,
        owner_id=state.wanted_rights.owner_id if changeable else None,
        acl=state.wanted_rights.acl if changeable else None,
        folder=upload_folder(state.blob_name) if changeable else None,
        content_hash=state.content_hash if changeable else None,
        history=_history(state),
        failed_tries=state.failed_tries,
    )


def _history(state: DocumentState) -> tuple[PhaseView, ...]:
    ends = [phase.at for phase in state.phases[1:]] + [datetime.now(UTC)]
    return tuple(
        PhaseView(
            status=phase.status,
            at=phase.at,
            seconds=None if phase.status in _ENDS else round((end - phase.at).total_seconds(), 3),
            model_calls=phase.model_calls,
        )
        for phase, end in zip(state.phases, ends, strict=False)
    )


def view_of_state(state: DocumentState) -> DocumentView:
    """A document of which no more is told than how far it is."""
    return DocumentView(
        doc_id=state.doc_id,
        filename=state.filename,
        status=state.status,
        page_count=state.page_count,
        project_id=state.wanted_rights.project_id,
        version=state.version or None,
        status_reason=state.reason,
        hint=state.hint,
        warnings=state.warnings,
    )
