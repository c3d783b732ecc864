"""Documents from the outside: which a user may see, complete or in work, and where their content lies."""

import base64
import binascii
from datetime import UTC, datetime
from typing import Literal

from pydantic import AwareDatetime, Field, ValidationError

from shared.access.models import UserContext
from shared.documents.ids import upload_folder
from shared.documents.rights import may_change, may_see
from shared.documents.services import DocumentServices
from shared.documents.state import DocumentState, DocumentStore
from shared.platform.blobs import BlobProperties, BlobStore
from shared.platform.errors import CallerError, ConflictError, DocumentNotFoundError
from shared.platform.models import Model
from shared.platform.names import DOCUMENTS
from shared.platform.odata import quote
from shared.platform.search import Filters, SearchIndex
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.models import DocumentRecord, DocumentStatus
from shared.retrieval.secured_index import SecuredIndex


class DocumentView(Model):
    """One document of a list: complete ones with their metadata, others with how far they are.

    Attributes:
        source_url: where it was taken from, if somebody said so.
        status_reason, hint: why it failed and what its owner can do; None while all is well.
        warnings: what is not as it could be with a document that is ready all the same.
    """

    doc_id: str
    filename: str
    status: DocumentStatus
    title: str | None = None
    document_type: str | None = None
    department: str | None = None
    author: str | None = None
    language: str | None = None
    tags: tuple[str, ...] = ()
    project_id: str | None = None
    page_count: int | None = None
    upload_date: datetime | None = None
    summary_brief: str | None = None
    source_url: str | None = None
    version: int | None = None
    status_reason: str | None = None
    hint: str | None = None
    warnings: tuple[str, ...] = ()


class DocumentList(Model):
    """Answer of GET /api/documents. `cursor` gives the next page; null on the last one."""

    documents: tuple[DocumentView, ...]
    count: int
    cursor: str | None = None


class PhaseView(Model):
    """One phase of a document's last ingestion.

    Attributes:
        seconds: how long it took; of the phase that goes on, how long so far; None of an end.
        model_calls: answers of models that it cost.
    """

    status: DocumentStatus
    at: datetime
    seconds: float | None
    model_calls: int


class DocumentDetail(DocumentView):
    """Answer of GET /api/documents/{doc_id}.

    Attributes:
        edited_fields: metadata that a person corrected.
        may_change: whether the caller may correct, open, close and delete it.
        owner_id, acl: who owns it and who may read it; told only to those who may change it.
        folder: where its sender put it, so that the same folder and name replace it; None when it came
            otherwise than through the API. content_hash: sha256 hex of the version that is ready; "" before.
            Both are told only to those who may change it.
        history: phases of the last ingestion, in order.
        failed_tries: how often this version failed; after three it is left alone.
    """

    summary_standard: str | None = None
    edited_fields: tuple[str, ...] = ()
    may_change: bool = False
    owner_id: str | None = None
    acl: tuple[str, ...] | None = None
    folder: str | None = None
    content_hash: str | None = None
    history: tuple[PhaseView, ...] = ()
    failed_tries: int = 0


class DocumentDeleting(Model):
    """Answer of DELETE /api/documents/{doc_id}: it is out of the list; the rest goes within moments."""

    doc_id: str
    status: Literal["deleting"] = "deleting"


class Place(Model):
    """The last document of a page: one in work by its name, a complete one by its date."""

    doc_id: str = Field(min_length=1, max_length=100)
    filename: str | None = None
    upload_date: AwareDatetime | None = None


def write_cursor(place: Place) -> str:
    """The place for callers, to whom it says nothing."""
    text = place.model_dump_json(exclude_none=True)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> Place | None:
    """The place; None of an empty cursor: the list begins.

    Raises:
        CallerError: the cursor is none of this list.
    """
    if not cursor:
        return None
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars="-_", validate=True)
        place = Place.model_validate_json(text)
    except (binascii.Error, ValidationError, ValueError):
        place = None
    if place is None or (place.filename is None) == (place.upload_date is None):
        raise CallerError("The cursor is not one of this list.", "Send the cursor of the page before.")
    return place


def older_than(upload_date: datetime, doc_id: str) -> str:
    """OData for complete documents behind this one, in the order of the list."""
    instant = upload_date.astimezone(UTC).isoformat().replace("+00:00", "Z")
    same = f"upload_date eq {instant} and doc_id gt {quote(doc_id)}"
    return f"upload_date lt {instant} or ({same})"


_MAX_LISTED = 100
_ENDS = frozenset({"ready", "failed"})
_SHOWN = set(DocumentView.model_fields) & set(DocumentRecord.model_fields)


async def list_documents(
    user: UserContext,
    services: DocumentServices,
    filters: Filters,
    limit: int = _MAX_LISTED,
    cursor: str = "",
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
        found = await _in_work(user, services.documents_index, services.documents, place, limit + 1)
    places = [Place(doc_id=view.doc_id, filename=view.filename) for view in found]
    if len(found) <= limit:
        behind = older_than(place.upload_date, place.doc_id) if place and place.upload_date else None
        complete = await _search(user, services.documents_index).page(filters, behind, limit + 1 - len(found))
        places += [Place(doc_id=one.doc_id, upload_date=one.upload_date) for one in complete]
        found += [_view_of_record(record) for record in complete]
    shown = tuple(found[:limit])
    further = write_cursor(places[limit - 1]) if len(found) > limit else None
    return DocumentList(documents=shown, count=len(shown), cursor=further)


async def _in_work(
    user: UserContext, documents_index: SearchIndex, documents: DocumentStore, place: Place | None, most: int
) -> list[DocumentView]:
    """The first of those that the index does not tell of, behind the place."""
    states = [state async for state in documents.unfinished() if may_see(user, state)]
    views = sorted((view_of_state(state) for state in states), key=_name_and_id)
    if place is not None:
        views = [view for view in views if _name_and_id(view) > (place.filename or "", place.doc_id)]
    found: list[DocumentView] = []
    for start in range(0, len(views), _MAX_LISTED):
        some = views[start : start + _MAX_LISTED]
        complete = await _search(user, documents_index).get_many([view.doc_id for view in some])
        found += [view for view in some if view.doc_id not in complete]
        if len(found) >= most:
            break
    return found[:most]


def _name_and_id(view: DocumentView) -> tuple[str, str]:
    return view.filename, view.doc_id


async def get_document(
    doc_id: str, user: UserContext, documents_index: SearchIndex, documents: DocumentStore
) -> DocumentDetail:
    """One document, complete or in work, with the history of its last ingestion.

    Raises:
        DocumentNotFoundError: there is none, or the user may not see it; the two cannot be told apart.
    """
    state = await documents.get(doc_id)
    if state is not None and state.status != "ready" and may_see(user, state):
        return _detail(view_of_state(state), state, user)
    record = await _search(user, documents_index).get(doc_id)
    view = _view_of_record(record)
    if state is None:
        return DocumentDetail(**dict(view))
    detail = _detail(view.model_copy(update={"warnings": state.warnings}), state, user)
    return detail.model_copy(update=record.model_dump(include={"summary_standard", "edited_fields"}))


async def get_own_document(
    state: DocumentState, user: UserContext, documents_index: SearchIndex, documents: DocumentStore
) -> DocumentDetail:
    """A document that the user may change, whose state is at hand. Who may change it need not be able to read
    it: then no more is told than its name and how far it is."""
    try:
        return await get_document(state.doc_id, user, documents_index, documents)
    except DocumentNotFoundError:
        return _detail(view_of_state(state), state, user)


async def readable_blob(
    doc_id: str, user: UserContext, documents_index: SearchIndex, blobs: BlobStore, documents: DocumentStore
) -> BlobProperties:
    """The blob with the document's content, for a user who may read it by the rights of that very version.

    Raises:
        DocumentNotFoundError: there is none, or the user may not read it.
        ConflictError: a newer version lies in the container, whose rights are not applied yet.
    """
    await _search(user, documents_index).get(doc_id)
    state = await documents.get(doc_id)
    blob = None if state is None else await blobs.properties(DOCUMENTS, state.blob_name)
    if state is None or blob is None or not may_see(user, state):
        raise DocumentNotFoundError(f"There is no document {doc_id[:64]!r}.", "It was deleted just now.")
    # The index tells of the version that was ingested; the blob may be another one, for other readers.
    if blob.etag != state.blob_etag:
        raise ConflictError("The document is being replaced.", "Try again when its new version is ready.")
    return blob


def _search(user: UserContext, documents_index: SearchIndex) -> DocumentSearch:
    return DocumentSearch(SecuredIndex(documents_index, user))


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
