"""Lists and counts of the documents that a user may read, including documents in progress."""

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from pydantic import AwareDatetime, Field, ValidationError

from shared.access.models import UserContext
from shared.documents.corrections import with_corrections
from shared.documents.lookup import document_search
from shared.documents.presentation import (
    Access,
    access_of,
    view_of_record,
    view_of_state,
    with_access,
    with_status,
)
from shared.documents.rights import may_see
from shared.documents.services import DocumentServices
from shared.documents.views import DocumentFacets, DocumentList, DocumentView
from shared.platform.errors import CallerError
from shared.platform.models import Model
from shared.platform.odata import quote
from shared.platform.search import Filters
from shared.retrieval.document_rows import RowsReadOnce
from shared.retrieval.documents import Match, SortField
from shared.retrieval.models import DocumentRecord

_MAX_LISTED = 100
# Cursor of a sorted list: the number of documents to skip. The search service limits it to 100,000.
_SKIP = re.compile(r"skip-([0-9]{1,6})")


class ListPosition(Model):
    """Position of a document in a list, after which the next page starts. It contains the file name if the
    document is in progress, or the upload date if it is complete.
    """

    doc_id: str = Field(min_length=1, max_length=100)
    filename: str | None = None
    upload_date: AwareDatetime | None = None


def encode_position(position: ListPosition) -> str:
    """Encode a list position as an opaque cursor."""
    text = position.model_dump_json(exclude_none=True)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_position(cursor: str) -> ListPosition | None:
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
    position = decode_position(cursor)
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
        complete = await document_search(user, services, rows).page(filters, behind, limit + 1 - len(views))
        positions += [ListPosition(doc_id=one.doc_id, upload_date=one.upload_date) for one in complete]
        views += await _views_of(complete, user, rows)
    page = tuple(views[:limit])
    further = encode_position(positions[limit - 1]) if len(views) > limit else None
    return DocumentList(documents=page, count=len(page), cursor=further)


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
    candidates = (with_access(view_of_state(state), access_of(state), user) for state in states)
    views = sorted(filter(criteria.admits, candidates), key=_name_and_id)
    if position is not None:
        views = [view for view in views if _name_and_id(view) > (position.filename or "", position.doc_id)]
    page: list[DocumentView] = []
    for start in range(0, len(views), _MAX_LISTED):
        some = views[start : start + _MAX_LISTED]
        complete = await document_search(user, services).get_many([view.doc_id for view in some])
        page += [view for view in some if view.doc_id not in complete]
        if len(page) >= most:
            break
    return page[:most]


def _name_and_id(view: DocumentView) -> tuple[str, str]:
    return view.filename, view.doc_id


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
    records = await document_search(user, services, rows).find(text, filters, limit, match)
    return DocumentList(documents=tuple(await _views_of(records, user, rows)), count=len(records))


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
    records, next_skip = await document_search(user, services, rows).sorted_page(
        filters, sort_by, skip, limit
    )
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
    counted, total = await document_search(user, services).facets(fields, filters, _MAX_LISTED, text, match)
    return DocumentFacets.model_validate({**counted, "document_count": total})


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
        access = Access(record.owner_id, row.access_lists[-1] if row else (), row.folder if row else None)
        if row and row.corrections:
            record = with_corrections(record, row.corrections)  # noqa: PLW2901
        view = view_of_record(record)
        if row:
            view = with_status(view, row)
        views.append(with_access(view, access, user))
    return views
