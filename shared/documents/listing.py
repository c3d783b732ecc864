"""Lists and details of the documents that a user may read, including documents in progress, and access to
their files.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Literal

from pydantic import AwareDatetime, Field, ValidationError

from shared.access.models import UserContext
from shared.documents.corrections import with_corrections
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
from shared.retrieval.document_rows import DocumentRow, RowsReadOnce
from shared.retrieval.documents import DocumentSearch, Match, SortField
from shared.retrieval.models import DocumentRecord, DocumentStatus
from shared.retrieval.secured_index import SecuredIndex

AccessVia = Literal["owner", "person", "group", "department", "organisation", "everyone"]


class DocumentView(Model):
    """Entry for a document in a list. Before its ingestion is complete, it shows progress or a failure
    instead of metadata.
    """

    doc_id: str = Field(description="Id of the document.")
    filename: str = Field(description="File name of the document.")
    status: DocumentStatus = Field(description="Status of the ingestion.")
    title: str | None = Field(default=None, description="Title of the document.")
    document_type: str | None = Field(default=None, description="Type of the document, such as `manual`.")
    department: str | None = Field(default=None, description="Department to which the document belongs.")
    author: str | None = Field(default=None, description="Author of the document, as extracted or corrected.")
    language: str | None = Field(default=None, description="Language of the document, as an ISO 639-1 code.")
    tags: tuple[str, ...] = Field(default=(), description="Topics of the document, in lower case.")
    project_id: str | None = Field(
        default=None, description="Id of the project to which the document belongs."
    )
    page_count: int | None = Field(
        default=None, description="Number of pages, or null if the format has none."
    )
    upload_date: datetime | None = Field(default=None, description="Time of the upload.")
    document_date: date | None = Field(
        default=None,
        description="Date printed in the document. If only a month or year is printed, its first day.",
    )
    summary_brief: str | None = Field(default=None, description="Summary in one sentence.")
    source_url: str | None = Field(
        default=None, description="URL of the web page or recording from which the document comes."
    )
    published_by: str | None = Field(default=None, description="Name of the uploader, if known.")
    version: int | None = Field(
        default=None, description="Version number, which increases with each version of the file."
    )
    status_reason: str | None = Field(default=None, description="Explanation of a failed ingestion.")
    hint: str | None = Field(default=None, description="Advice for the owner on how to resolve a failure.")
    failure: FileFailure | None = Field(
        default=None,
        description="Stable error code of a failed ingestion; null otherwise.",
    )
    unreadable_pages: int = Field(default=0, description="Number of pages without readable text.")
    has_text: bool = Field(default=True, description="Whether the document contains searchable text.")
    warnings: tuple[str, ...] = Field(
        default=(), description="Warnings for users, as sentences, for example about unreadable pages."
    )
    acl: tuple[str, ...] | None = Field(
        default=None,
        description=(
            "Users, groups, departments and organisations that may read the document. Null if the caller may "
            "not change the list."
        ),
    )
    access_via: tuple[AccessVia, ...] = Field(
        default=(),
        description=(
            "Why the caller may read the document. Names of groups and of other users are not included."
        ),
    )
    folder: str | None = Field(
        default=None,
        description=(
            "Folder chosen by the uploader, such as `2024/hr`. A file with the same folder and name "
            "replaces the document. Null if the document wasn't uploaded through the API, or if the caller "
            "is neither its owner nor an administrator."
        ),
    )


class DocumentList(Model):
    """A page of documents, as returned by GET /api/documents."""

    documents: tuple[DocumentView, ...] = Field(description="Documents of this page.")
    count: int = Field(description="Number of documents on this page.")
    cursor: str | None = Field(default=None, description="Cursor of the next page, or null on the last page.")


class DocumentFacets(Model):
    """Reply of GET /api/documents/facets: the most frequent values of each metadata field, with document
    counts. Only complete documents are counted.

    Attributes:
        document_count: number of documents that match the filters.
    """

    document_type: tuple[FacetValue, ...] = Field(description="Document types, most frequent first.")
    department: tuple[FacetValue, ...] = Field(description="Departments, most frequent first.")
    language: tuple[FacetValue, ...] = Field(description="Languages, most frequent first.")
    tags: tuple[FacetValue, ...] = Field(description="Tags, most frequent first.")
    project_id: tuple[FacetValue, ...] = Field(description="Projects, most frequent first.")
    document_count: int


class PhaseView(Model):
    """One phase of the last ingestion of a document.

    Attributes:
        seconds: duration so far; None for a final status.
        model_calls: number of model replies in this phase.
    """

    status: DocumentStatus = Field(description="Status of the ingestion during this phase.")
    at: datetime = Field(description="Time at which the phase began.")
    seconds: float | None
    model_calls: int


class DocumentDetail(DocumentView):
    """Reply of GET /api/documents/{doc_id}: the fields of a listed document and further details.

    Attributes:
        edited_fields: metadata corrected by a user.
        may_change: whether the caller may correct, share and delete the document.
        owner_id, acl: owner and access list; only for callers who may change it.
        content_hash: SHA-256 of the ready version as hex; "" before. Only for callers who may change it.
        access_via: why the caller may read the document, without names of groups and other users.
        history: phases of the last ingestion, in order.
        failed_tries: number of failed attempts at this version; it is given up after three.
    """

    summary_standard: str | None = Field(default=None, description="Summary in one paragraph.")
    edited_fields: tuple[str, ...] = ()
    may_change: bool = False
    is_processing: bool = Field(
        default=False,
        description=(
            "Whether an ingestion or a change of the document is due or in progress. Until it has ended, "
            "`status` may be that of the previous ingestion. Not covered by the ETag."
        ),
    )
    owner_id: str | None = None
    content_hash: str | None = Field(default=None, description="SHA-256 digest of the file, in hexadecimal.")
    history: tuple[PhaseView, ...] = ()
    failed_tries: int = 0


class DocumentDeleting(Model):
    """Reply of DELETE /api/documents/{doc_id}. The document is hidden at once; its data is deleted in the
    background.
    """

    doc_id: str = Field(description="Id of the document.")
    status: Literal["deleting"] = Field(
        default="deleting", description="Status of the document, always `deleting`."
    )


class ListPosition(Model):
    """Position of a document in a list, after which the next page starts. It contains the file name if the
    document is in progress, or the upload date if it is complete.
    """

    doc_id: str = Field(min_length=1, max_length=100)
    filename: str | None = None
    upload_date: AwareDatetime | None = None


def write_cursor(position: ListPosition) -> str:
    """Encode a list position as an opaque cursor."""
    text = position.model_dump_json(exclude_none=True)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> ListPosition | None:
    """Decode a cursor to a list position. Return None for an empty cursor, with which a list starts from the
    beginning.

    Raises:
        CallerError: the cursor is invalid.
    """
    if not cursor:
        return None
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars="-_", validate=True)
        position = ListPosition.model_validate_json(text)
    except (binascii.Error, ValidationError, ValueError):
        position = None
    if position is None or (position.filename is None) == (position.upload_date is None):
        raise CallerError("The cursor is invalid.", "Send the cursor of the previous page unchanged.")
    return position


def older_than(upload_date: datetime, doc_id: str) -> str:
    """Return an OData condition for the complete documents that follow the given document in a list. Lists
    show the newest documents first; documents uploaded at the same time are ordered by id.
    """
    instant = upload_date.astimezone(UTC).isoformat().replace("+00:00", "Z")
    same = f"upload_date eq {instant} and doc_id gt {quote(doc_id)}"
    return f"upload_date lt {instant} or ({same})"


_MAX_LISTED = 100
_ENDS = frozenset({"ready", "failed"})
_STATUS_FIELDS = ("unreadable_pages", "has_text", "warnings")
_SHOWN = set(DocumentView.model_fields) & set(DocumentRecord.model_fields)


@dataclass(frozen=True)
class ListCriteria:
    """Criteria that select the documents of a list.

    Attributes:
        filters: metadata filters. Documents in progress have no metadata, so they never match a filter.
        status: "" = all.
        words: words that the file name of a document in progress or failed must contain.
    """

    filters: Filters
    status: Literal["", "working", "failed", "ready"] = ""
    words: str = ""

    def admits(self, view: DocumentView) -> bool:
        """Return whether a document that is not in the search index yet has the requested status and name."""
        status = "failed" if view.status == "failed" else "working"
        name = view.filename.casefold()
        return self.status in ("", status) and all(word in name for word in self.words.casefold().split())


async def list_documents(
    user: UserContext,
    services: DocumentServices,
    criteria: ListCriteria,
    limit: int = _MAX_LISTED,
    cursor: str = "",
) -> DocumentList:
    """List the documents that the user may read, one page at a time. Documents in progress or failed come
    first, followed by complete documents, newest first.

    While a new version is in progress or has failed, the document is listed with its current version.

    Raises:
        CallerError: the cursor is invalid.
    """
    position = read_cursor(cursor)
    views: list[DocumentView] = []
    filters = criteria.filters
    is_at_work = not filters and criteria.status != "ready"
    if is_at_work and (position is None or position.filename is not None):
        views = await _documents_in_progress(user, services, criteria, position, limit + 1)
    positions = [ListPosition(doc_id=view.doc_id, filename=view.filename) for view in views]
    if len(views) <= limit and criteria.status in ("", "ready"):
        behind = (
            older_than(position.upload_date, position.doc_id) if position and position.upload_date else None
        )
        rows = RowsReadOnce(services.documents)
        complete = await _search(user, services, rows).page(filters, behind, limit + 1 - len(views))
        positions += [ListPosition(doc_id=one.doc_id, upload_date=one.upload_date) for one in complete]
        views += await _views_of(complete, user, rows)
    page = tuple(views[:limit])
    further = write_cursor(positions[limit - 1]) if len(views) > limit else None
    return DocumentList(documents=page, count=len(page), cursor=further)


async def find_documents(
    text: str,
    user: UserContext,
    services: DocumentServices,
    filters: Filters,
    limit: int,
    *,
    match: Match = "any",
) -> DocumentList:
    """Return up to `limit` complete documents whose names, tags, people or summaries match words of `text`,
    best match first.
    """
    rows = RowsReadOnce(services.documents)
    records = await _search(user, services, rows).find(text, filters, limit, match)
    return DocumentList(documents=tuple(await _views_of(records, user, rows)), count=len(records))


# Cursor of a sorted list: the number of documents to skip. The search service limits it to 100,000.
_SKIP = re.compile(r"skip-([0-9]{1,6})")


async def sorted_documents(
    user: UserContext,
    services: DocumentServices,
    filters: Filters,
    sort_by: SortField,
    *,
    limit: int = _MAX_LISTED,
    cursor: str = "",
) -> DocumentList:
    """List the complete documents that the user may read, sorted by a field, one page at a time.

    Raises:
        CallerError: the cursor is invalid.
    """
    match = _SKIP.fullmatch(cursor)
    if cursor and match is None:
        raise CallerError("The cursor is invalid.", "Send the cursor of the previous page unchanged.")
    skip = int(match[1]) if match else 0
    rows = RowsReadOnce(services.documents)
    records, next_skip = await _search(user, services, rows).sorted_page(filters, sort_by, skip, limit)
    views = tuple(await _views_of(records, user, rows))
    further = None if next_skip is None else f"skip-{next_skip}"
    return DocumentList(documents=views, count=len(views), cursor=further)


async def count_documents(
    user: UserContext,
    services: DocumentServices,
    filters: Filters,
    text: str = "",
    match: Match = "any",
) -> DocumentFacets:
    """Count the documents that the user may read by the values of each filterable field, such as department
    or language.
    """
    fields = tuple(name for name in DocumentFacets.model_fields if name != "document_count")
    counted, total = await _search(user, services).facets(fields, filters, _MAX_LISTED, text, match)
    return DocumentFacets.model_validate({**counted, "document_count": total})


async def _documents_in_progress(
    user: UserContext,
    services: DocumentServices,
    criteria: ListCriteria,
    position: ListPosition | None,
    most: int,
) -> list[DocumentView]:
    """Return up to `most` documents that are not in the search index yet, sorted by name, starting after
    `position`.
    """
    states = [state async for state in services.documents.unfinished() if may_see(user, state)]
    candidates = (_with_access(view_of_state(state), _access_of(state), user) for state in states)
    views = sorted(filter(criteria.admits, candidates), key=_name_and_id)
    if position is not None:
        views = [view for view in views if _name_and_id(view) > (position.filename or "", position.doc_id)]
    page: list[DocumentView] = []
    for start in range(0, len(views), _MAX_LISTED):
        some = views[start : start + _MAX_LISTED]
        complete = await _search(user, services).get_many([view.doc_id for view in some])
        page += [view for view in some if view.doc_id not in complete]
        if len(page) >= most:
            break
    return page[:most]


def _name_and_id(view: DocumentView) -> tuple[str, str]:
    return view.filename, view.doc_id


async def get_document(doc_id: str, user: UserContext, services: DocumentServices) -> DocumentDetail:
    """Return the details of a document, complete or in progress, with the history of its last ingestion.

    Raises:
        DocumentNotFoundError: the document is missing or forbidden, without distinction.
    """
    state = await services.documents.get(doc_id)
    if state is not None and state.status != "ready" and may_see(user, state):
        return _detail(view_of_state(state), state, user)
    record = await _search(user, services).get(doc_id)
    if state is None:
        return DocumentDetail(**dict(_view_of_record(record)))
    if state.has_unshown_corrections:
        record = with_corrections(record, state.corrections)
    detail = _detail(_with_status(_view_of_record(record), state), state, user)
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
        return _detail(view_of_state(state), state, user)


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
    record = await _search(user, services).get(doc_id)
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


def _search(
    user: UserContext, services: DocumentServices, rows: RowsReadOnce | None = None
) -> DocumentSearch:
    """Return a search over the documents that the user may read. Callers that also need stored rows pass
    their `rows`, so that each row is read only once.
    """
    rows = rows or RowsReadOnce(services.documents)
    return DocumentSearch(SecuredIndex(services.documents_index, user, rows))


@dataclass(frozen=True)
class _Access:
    """Access details of a document: owner, access list and the uploader's folder. Most callers of the API may
    not see them.
    """

    owner_id: str | None
    acl: tuple[str, ...]
    folder: str | None


async def _views_of(
    records: Sequence[DocumentRecord], user: UserContext, rows: RowsReadOnce
) -> list[DocumentView]:
    """Return list entries for complete documents. Access, status and corrections come from the stored rows,
    because their copies in the search index may be out of date.

    `rows` contains the stored rows that the search has already read.
    """
    views: list[DocumentView] = []
    for record in records:
        row = await rows.row(record.doc_id)
        # While an access list is being replaced, both lists apply. Show the new one.
        access = _Access(record.owner_id, row.access_lists[-1] if row else (), row.folder if row else None)
        if row and row.corrections:
            record = with_corrections(record, row.corrections)  # noqa: PLW2901
        view = _view_of_record(record)
        if row:
            view = _with_status(view, row)
        views.append(_with_access(view, access, user))
    return views


def _access_of(state: DocumentState) -> _Access:
    rights = state.wanted_rights
    return _Access(rights.owner_id, rights.acl, upload_folder(state.blob_name))


def _with_access(view: DocumentView, access: _Access, user: UserContext) -> DocumentView:
    """Return the list entry with the access details that this user may see: only owners and administrators
    see the access list and the folder.
    """
    details: dict[str, object] = {"access_via": tuple(_access_via(user, access))}
    if is_admin(user) or user.user_id == access.owner_id:
        details |= {"acl": access.acl, "folder": access.folder}
    return view.model_copy(update=details)


def _view_of_record(record: DocumentRecord) -> DocumentView:
    day = record.document_date and record.document_date.date()
    return DocumentView.model_validate({**record.model_dump(include=_SHOWN), "document_date": day})


def _with_status(view: DocumentView, row: DocumentRow | DocumentState) -> DocumentView:
    """Return the list entry with details from the stored row: the unreadable pages, whether there is any
    text, and the warnings.
    """
    return view.model_copy(update={name: getattr(row, name) for name in _STATUS_FIELDS})


ACCESS_LAGS = "The new access list is being applied. People added to it cannot find the document yet."


def _detail(view: DocumentView, state: DocumentState, user: UserContext) -> DocumentDetail:
    changeable = may_change(user, state)
    if state.rows_outdated and state.content_hash:
        view = view.model_copy(update={"warnings": (*view.warnings, ACCESS_LAGS)})
    return DocumentDetail(
        **dict(_with_access(view, _access_of(state), user)),
        edited_fields=tuple(sorted(state.corrections)),
        may_change=changeable,
        is_processing=state.is_open,
        owner_id=state.wanted_rights.owner_id if changeable else None,
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
        # Owners are also in the access list, but are reported only as owners.
        yield "owner"
        acl.discard(user.user_id)
    yield from (way for way, principals in ways.items() if acl & principals)


def _history(state: DocumentState) -> tuple[PhaseView, ...]:
    ends = [phase.at for phase in state.phases[1:]] + [datetime.now(UTC)]
    return tuple(
        PhaseView(
            status=phase.status,
            at=phase.at,
            # The difference can be negative, since phases may begin and end on machines whose clocks differ.
            seconds=None if phase.status in _ENDS else max(0.0, round((end - phase.at).total_seconds(), 3)),
            model_calls=phase.model_calls,
        )
        for phase, end in zip(state.phases, ends, strict=False)
    )


def view_of_state(state: DocumentState) -> DocumentView:
    """Return the list entry of a document whose ingestion is in progress or has failed."""
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
        unreadable_pages=state.unreadable_pages,
        has_text=state.has_text,
        warnings=state.warnings,
    )
