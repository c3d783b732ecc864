"""What a user sees of a document: its list entry and details, made from its record in the search index and
its stored row. Performs no I/O.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from shared.access.models import UserContext
from shared.documents.ids import upload_folder
from shared.documents.rights import is_admin, may_change
from shared.documents.state import DocumentState
from shared.documents.views import AccessVia, DocumentDetail, DocumentView, PhaseView
from shared.retrieval.document_rows import DocumentRow
from shared.retrieval.models import DocumentRecord

_ENDS = frozenset({"ready", "failed"})
_STATUS_FIELDS = ("unreadable_pages", "has_text", "warnings")
_SHOWN = set(DocumentView.model_fields) & set(DocumentRecord.model_fields)
ACCESS_LAGS = "The new access list is being applied. People added to it cannot find the document yet."


@dataclass(frozen=True)
class Access:
    """Access details of a document: owner, access list and the uploader's folder. Most callers of the API may
    not see them.
    """

    owner_id: str | None
    acl: tuple[str, ...]
    folder: str | None


def access_of(state: DocumentState) -> Access:
    """Return the access details of a document. While its access list is being replaced, this is the new
    list.
    """
    rights = state.wanted_rights
    return Access(rights.owner_id, rights.acl, upload_folder(state.blob_name))


def view_of_state(state: DocumentState) -> DocumentView:
    """Return the list entry of a document whose ingestion is in progress or has failed, without access
    details.
    """
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


def view_of_record(record: DocumentRecord) -> DocumentView:
    """Return the list entry of a complete document, without access details."""
    day = record.document_date and record.document_date.date()
    return DocumentView.model_validate({**record.model_dump(include=_SHOWN), "document_date": day})


def with_status(view: DocumentView, row: DocumentRow | DocumentState) -> DocumentView:
    """Return the list entry with details from the stored row: the unreadable pages, whether there is any
    text, and the warnings.
    """
    return view.model_copy(update={name: getattr(row, name) for name in _STATUS_FIELDS})


def with_access(view: DocumentView, access: Access, user: UserContext) -> DocumentView:
    """Return the list entry with the access details that this user may see: only owners and administrators
    see the access list and the folder.
    """
    details: dict[str, object] = {"access_via": tuple(_access_via(user, access))}
    if is_admin(user) or user.user_id == access.owner_id:
        details |= {"acl": access.acl, "folder": access.folder}
    return view.model_copy(update=details)


def detail_of(view: DocumentView, state: DocumentState, user: UserContext) -> DocumentDetail:
    """Return the details of a document, with the access details that this user may see."""
    changeable = may_change(user, state)
    if state.rows_outdated and state.content_hash:
        view = view.model_copy(update={"warnings": (*view.warnings, ACCESS_LAGS)})
    return DocumentDetail(
        **dict(with_access(view, access_of(state), user)),
        edited_fields=tuple(sorted(state.corrections)),
        may_change=changeable,
        is_processing=state.is_open,
        owner_id=state.wanted_rights.owner_id if changeable else None,
        content_hash=state.content_hash if changeable else None,
        history=_history(state),
        failed_tries=state.failed_tries,
    )


def _access_via(user: UserContext, access: Access) -> Iterator[AccessVia]:
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
