"""Documents from the outside: which a user may see, complete or in work, and where their content lies."""

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Literal

from pydantic import AwareDatetime, Field, ValidationError

from shared.access.models import UserContext
from shared.documents.ids import upload_folder
from shared.documents.rights import is_admin, may_change, may_see
from shared.documents.services import DocumentServices
from shared.documents.state import DocumentState
from shared.platform.blobs import BlobProperties
from shared.platform.errors import CallerError, ConflictError, DocumentNotFoundError, FileFailure
from shared.platform.models import Model
from shared.platform.names import DOCUMENTS
from shared.platform.odata import quote
from shared.platform.search import FacetValue, Filters
from shared.retrieval.document_rows import RowsReadOnce
from shared.retrieval.documents import DocumentSearch, SortField
from shared.retrieval.models import DocumentRecord, DocumentStatus
from shared.retrieval.secured_index import SecuredIndex

AccessVia = Literal["owner", "person", "group", "department", "organisation", "everyone"]


class DocumentView(Model):
    """One document of a list: complete ones with their metadata, others with how far they are."""

    doc_id: str = Field(description="The document.")
    filename: str = Field(description="Name of the file.")
    status: DocumentStatus = Field(description="Status.")
    title: str | None = Field(default=None, description="Title.")
    document_type: str | None = Field(
        default=None, description="What kind of document it is, such as `manual`."
    )
    department: str | None = Field(default=None, description="Department that it belongs to.")
    author: str | None = Field(default=None, description="Author, as found in the document or corrected.")
    language: str | None = Field(default=None, description="ISO 639-1 code of its language.")
    tags: tuple[str, ...] = Field(default=(), description="Topics, in lower case.")
    project_id: str | None = Field(default=None, description="Project that it belongs to.")
    page_count: int | None = Field(default=None, description="How many pages it has; null if it has none.")
    upload_date: datetime | None = Field(default=None, description="When it was uploaded.")
    document_date: date | None = Field(
        default=None, description="The date printed in it; of a month or a year alone, its first day."
    )
    summary_brief: str | None = Field(default=None, description="What it is about, in a sentence.")
    source_url: str | None = Field(
        default=None, description="Where the document comes from, or a recording can be seen."
    )
    published_by: str | None = Field(
        default=None, description="Name of the person who sent it, if it is known."
    )
    version: int | None = Field(default=None, description="Counts up with each version of the file.")
    status_reason: str | None = Field(default=None, description="Why its ingestion failed.")
    hint: str | None = Field(default=None, description="What its owner can do.")
    failure: FileFailure | None = Field(
        default=None, description="Why its ingestion failed, as a code that stays; null unless it failed."
    )
    unreadable_pages: int = Field(default=0, description="How many pages hold no text that could be read.")
    has_text: bool = Field(default=True, description="Whether a search can find any of its text.")
    warnings: tuple[str, ...] = Field(default=(), description="What did not go as it should, for people.")
    acl: tuple[str, ...] | None = Field(
        default=None, description="Its access list; null for those who may not change it."
    )
    access_via: tuple[AccessVia, ...] = Field(
        default=(), description="As what the caller may read it; names no group, and nobody else."
    )


class DocumentList(Model):
    """Answer of GET /api/documents. `cursor` gives the next page; null on the last one."""

    documents: tuple[DocumentView, ...] = Field(description="The documents of this page.")
    count: int = Field(description="How many.")
    cursor: str | None = Field(default=None, description="Cursor of the next page; null at the end.")


class DocumentFacets(Model):
    """Answer of GET /api/documents/facets: for each field its commonest values, of complete documents.

    Attributes:
        document_count: how many documents pass the filters.
    """

    document_type: tuple[FacetValue, ...] = Field(description="Kinds of documents, the commonest first.")
    department: tuple[FacetValue, ...] = Field(description="Departments, the commonest first.")
    language: tuple[FacetValue, ...] = Field(description="Languages, the commonest first.")
    tags: tuple[FacetValue, ...] = Field(description="Tags, the commonest first.")
    project_id: tuple[FacetValue, ...] = Field(description="Projects, the commonest first.")
    document_count: int


class PhaseView(Model):
    """One phase of a document's last ingestion.

    Attributes:
        seconds: how long it took, or has taken so far; None for an end.
        model_calls: answers of models that it cost.
    """

    status: DocumentStatus = Field(description="Status.")
    at: datetime = Field(description="When it was created.")
    seconds: float | None
    model_calls: int


class DocumentDetail(DocumentView):
    """Answer of GET /api/documents/{doc_id}.

    Attributes:
        edited_fields: metadata that a person corrected.
        may_change: whether the caller may correct, open, close and delete it.
        owner_id: who owns it; only for those who may change it.
        folder: where its sender put it, so that the same folder and name replace it; None when it came
            otherwise than through the API. content_hash: sha256 hex of the version that is ready; "" before.
            Both are only for those who may change it.
        history: phases of the last ingestion, in order.
        failed_tries: how often this version failed; after three it is left alone.
    """

    summary_standard: str | None = Field(default=None, description="What it is about, in a paragraph.")
    edited_fields: tuple[str, ...] = ()
    may_change: bool = False
    owner_id: str | None = None
    folder: str | None = None
    content_hash: str | None = Field(default=None, description="SHA-256 of the file.")
    history: tuple[PhaseView, ...] = ()
    failed_tries: int = 0


class DocumentDeleting(Model):
    """Answer of DELETE /api/documents/{doc_id}: it is out of the list; the rest goes within moments."""

    doc_id: str = Field(description="The document.")
    status: Literal["deleting"] = Field(default="deleting", description="Always `deleting`.")


class ListPosition(Model):
    """The last document of a page: one in work by its name, a complete one by its date."""

    doc_id: str = Field(min_length=1, max_length=100)
    filename: str | None = None
    upload_date: AwareDatetime | None = None


def write_cursor(position: ListPosition) -> str:
    """The position as a cursor, opaque to callers."""
    text = position.model_dump_json(exclude_none=True)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> ListPosition | None:
    """The position; None for an empty cursor: the list begins.

    Raises:
        CallerError: invalid cursor.
    """
    if not cursor:
        return None
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars="-_", validate=True)
        position = ListPosition.model_validate_json(text)
    except (binascii.Error, ValidationError, ValueError):
        position = None
    if position is None or (position.filename is None) == (position.upload_date is None):
        raise CallerError("Invalid cursor.", "Send the cursor of the page before.")
    return position


def older_than(upload_date: datetime, doc_id: str) -> str:
    """OData for complete documents behind this one, in the order of the list."""
    instant = upload_date.astimezone(UTC).isoformat().replace("+00:00", "Z")
    same = f"upload_date eq {instant} and doc_id gt {quote(doc_id)}"
    return f"upload_date lt {instant} or ({same})"


_MAX_LISTED = 100
_ENDS = frozenset({"ready", "failed"})
_SHOWN = set(DocumentView.model_fields) & set(DocumentRecord.model_fields)


@dataclass(frozen=True)
class Wanted:
    """Which documents are listed.

    Attributes:
        filters: of complete documents; one in work has no metadata yet, so it passes none.
        status: "" = all of them.
        words: that the name of a document in work, or failed, must hold.
    """

    filters: Filters
    status: Literal["", "working", "failed", "ready"] = ""
    words: str = ""

    def admits(self, view: DocumentView) -> bool:
        """Whether a document that the index does not know is one of them."""
        status = "failed" if view.status == "failed" else "working"
        name = view.filename.casefold()
        return self.status in ("", status) and all(word in name for word in self.words.casefold().split())


async def list_documents(
    user: UserContext,
    services: DocumentServices,
    wanted: Wanted,
    limit: int = _MAX_LISTED,
    cursor: str = "",
) -> DocumentList:
    """The user's documents: those in work or failed first, then the complete ones, newest first.

    A document whose new version is in work, or failed, is listed as the complete one that it is still.

    Raises:
        CallerError: invalid cursor.
    """
    position = read_cursor(cursor)
    found: list[DocumentView] = []
    filters = wanted.filters
    is_at_work = not filters and wanted.status != "ready"
    if is_at_work and (position is None or position.filename is not None):
        found = await _in_work(user, services, wanted, position, limit + 1)
    positions = [ListPosition(doc_id=view.doc_id, filename=view.filename) for view in found]
    if len(found) <= limit and wanted.status in ("", "ready"):
        behind = (
            older_than(position.upload_date, position.doc_id) if position and position.upload_date else None
        )
        rows = RowsReadOnce(services.documents)
        complete = await _search(user, services, rows).page(filters, behind, limit + 1 - len(found))
        positions += [ListPosition(doc_id=one.doc_id, upload_date=one.upload_date) for one in complete]
        found += await _listed(complete, user, rows)
    shown = tuple(found[:limit])
    further = write_cursor(positions[limit - 1]) if len(found) > limit else None
    return DocumentList(documents=shown, count=len(shown), cursor=further)


async def find_documents(
    text: str, user: UserContext, services: DocumentServices, filters: Filters, limit: int
) -> DocumentList:
    """Complete documents whose names, tags, people or summaries match `text`, best first; one page."""
    rows = RowsReadOnce(services.documents)
    found = await _search(user, services, rows).find(text, filters, limit)
    return DocumentList(documents=tuple(await _listed(found, user, rows)), count=len(found))


_SKIP = re.compile(r"skip-([0-9]{1,6})")  # the service skips 100,000 rows at most


async def sorted_documents(
    user: UserContext,
    services: DocumentServices,
    filters: Filters,
    sort_by: SortField,
    *,
    limit: int = _MAX_LISTED,
    cursor: str = "",
) -> DocumentList:
    """List complete documents in the order of a field.

    Raises:
        CallerError: invalid cursor.
    """
    found = _SKIP.fullmatch(cursor)
    if cursor and found is None:
        raise CallerError("Invalid cursor.", "Send the cursor of the page before.")
    skip = int(found[1]) if found else 0
    rows = RowsReadOnce(services.documents)
    records, next_skip = await _search(user, services, rows).sorted_page(filters, sort_by, skip, limit)
    shown = tuple(await _listed(records, user, rows))
    further = None if next_skip is None else f"skip-{next_skip}"
    return DocumentList(documents=shown, count=len(shown), cursor=further)


async def count_documents(
    user: UserContext, services: DocumentServices, filters: Filters, text: str = ""
) -> DocumentFacets:
    """What values there are to filter by, and how many of the user's documents have each."""
    fields = tuple(name for name in DocumentFacets.model_fields if name != "document_count")
    counted, total = await _search(user, services).facets(fields, filters, _MAX_LISTED, text)
    return DocumentFacets.model_validate({**counted, "document_count": total})


async def _in_work(
    user: UserContext,
    services: DocumentServices,
    wanted: Wanted,
    position: ListPosition | None,
    most: int,
) -> list[DocumentView]:
    """The first of those that the index does not know, behind the position."""
    states = [state async for state in services.documents.unfinished() if may_see(user, state)]
    shown = (_with_access(view_of_state(state), _access_of(state), user) for state in states)
    views = sorted(filter(wanted.admits, shown), key=_name_and_id)
    if position is not None:
        views = [view for view in views if _name_and_id(view) > (position.filename or "", position.doc_id)]
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


async def get_document(doc_id: str, user: UserContext, services: DocumentServices) -> DocumentDetail:
    """One document, complete or in work, with the history of its last ingestion.

    Raises:
        DocumentNotFoundError: there is none, or the user may not see it; the two look the same.
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


async def get_own_document(
    state: DocumentState, user: UserContext, services: DocumentServices
) -> DocumentDetail:
    """A document that the user may change, whose state is at hand. Who may change it need not be able to read
    it: then only its name and how far it is are shown."""
    try:
        return await get_document(state.doc_id, user, services)
    except DocumentNotFoundError:
        return _detail(view_of_state(state), state, user)


@dataclass(frozen=True)
class ReadableDocument:
    """A document that the reader may read, as it is now."""

    record: DocumentRecord
    state: DocumentState


async def readable_document(doc_id: str, user: UserContext, services: DocumentServices) -> ReadableDocument:
    """A document for a user who may read it: by the index, and by the rights that are about to hold.

    Raises:
        DocumentNotFoundError: there is none, or the user may not read it; the two look the same.
    """
    record = await _search(user, services).get(doc_id)
    state = await services.documents.get(doc_id)
    if state is None or not may_see(user, state):
        raise DocumentNotFoundError(
            f"There is no document {doc_id[:64]!r}.", "List the documents to see which exist."
        )
    return ReadableDocument(record, state)


async def readable_blob(doc_id: str, user: UserContext, services: DocumentServices) -> BlobProperties:
    """The blob with the document's content, for a user who may read it by the rights of that very version.

    Raises:
        DocumentNotFoundError: there is none, or the user may not read it.
        ConflictError: a newer version lies in the container, whose rights are not applied yet.
    """
    state = (await readable_document(doc_id, user, services)).state
    blob = await services.blobs.properties(DOCUMENTS, state.blob_name)
    if blob is None:
        raise DocumentNotFoundError(f"There is no document {doc_id[:64]!r}.", "It has just been deleted.")
    # The index knows the version that was ingested; the blob may be another one, for other readers.
    if blob.etag != state.blob_etag:
        raise ConflictError("The document is being replaced.", "Try again when its new version is ready.")
    return blob


def _search(
    user: UserContext, services: DocumentServices, rows: RowsReadOnce | None = None
) -> DocumentSearch:
    """Search the documents of a user. `rows` is given by callers that read rows themselves, too."""
    rows = rows or RowsReadOnce(services.documents)
    return DocumentSearch(SecuredIndex(services.documents_index, user, rows))


@dataclass(frozen=True)
class _Access:
    """Who owns a document, and who else may read it."""

    owner_id: str | None
    acl: tuple[str, ...]


async def _listed(
    records: Sequence[DocumentRecord], user: UserContext, rows: RowsReadOnce
) -> list[DocumentView]:
    """Return the views of complete documents with their access, as their rows have it.

    The rows were read by the search: the index's copies of access lists may lag behind them.
    """
    views: list[DocumentView] = []
    for record in records:
        row = await rows.row(record.doc_id)
        acl = row.access_lists[-1] if row else ()  # the list that is being applied, if there are two
        views.append(_with_access(_view_of_record(record), _Access(record.owner_id, acl), user))
    return views


def _access_of(state: DocumentState) -> _Access:
    return _Access(state.wanted_rights.owner_id, state.wanted_rights.acl)


def _with_access(view: DocumentView, access: _Access, user: UserContext) -> DocumentView:
    """Return the view with what the user may know of the document's readers."""
    may_know = is_admin(user) or user.user_id == access.owner_id
    return view.model_copy(
        update={"acl": access.acl if may_know else None, "access_via": tuple(_access_via(user, access))}
    )


def _view_of_record(record: DocumentRecord) -> DocumentView:
    return DocumentView.model_validate(record.model_dump(include=_SHOWN))


ACCESS_LAGS = "Access is being applied: people who were added find the document once that is done."


def _detail(view: DocumentView, state: DocumentState, user: UserContext) -> DocumentDetail:
    changeable = may_change(user, state)
    if state.rows_outdated and state.content_hash:
        view = view.model_copy(update={"warnings": (*view.warnings, ACCESS_LAGS)})
    return DocumentDetail(
        **dict(_with_access(view, _access_of(state), user)),
        edited_fields=tuple(sorted(state.corrections)),
        may_change=changeable,
        owner_id=state.wanted_rights.owner_id if changeable else None,
        folder=upload_folder(state.blob_name) if changeable else None,
        content_hash=state.content_hash if changeable else None,
        history=_history(state),
        failed_tries=state.failed_tries,
    )


def _access_via(user: UserContext, access: _Access) -> Iterator[AccessVia]:
    acl = set(access.acl)
    ways: dict[AccessVia, set[str | None]] = {
        "person": {user.user_id},
        "group": set(user.groups),
        "department": {user.department},
        "organisation": {f"org:{user.org_id}"},
        "everyone": {"*"},
    }
    if user.user_id == access.owner_id:
        yield "owner"  # who is in the list, too
        acl.discard(user.user_id)
    yield from (way for way, principals in ways.items() if acl & principals)


def _history(state: DocumentState) -> tuple[PhaseView, ...]:
    ends = [phase.at for phase in state.phases[1:]] + [datetime.now(UTC)]
    return tuple(
        PhaseView(
            status=phase.status,
            at=phase.at,
            # A phase may begin on one machine and end on another, whose clock is behind.
            seconds=None if phase.status in _ENDS else max(0.0, round((end - phase.at).total_seconds(), 3)),
            model_calls=phase.model_calls,
        )
        for phase, end in zip(state.phases, ends, strict=False)
    )


def view_of_state(state: DocumentState) -> DocumentView:
    """A document of which only its progress is shown."""
    return DocumentView(
        doc_id=state.doc_id,
        filename=state.filename,
        status=state.status,
        page_count=state.page_count,
        project_id=state.wanted_rights.project_id,
        version=state.version or None,
        status_reason=state.reason,
        hint=state.hint,
        failure=state.failure,
        warnings=state.warnings,
    )
