"""Rules that decide who may see a document and who may change it."""

from datetime import UTC

from shared.access.models import UserContext
from shared.access.security_filter import is_in_reach, may_read
from shared.documents.ids import upload_folder
from shared.documents.state import DocumentState
from shared.retrieval.document_rows import DocumentRow

ADMIN = "admin"


def is_admin(user: UserContext) -> bool:
    """Return whether the user has the application role for administrators."""
    return ADMIN in user.roles


def readers_row(state: DocumentState) -> DocumentRow | None:
    """Return the fields of a document's state that decide who may read it. Return None if no version is
    complete yet or the document is deleted.
    """
    if state.is_deleted or not state.content_hash:
        return None
    return DocumentRow(
        access_lists=(state.rights.acl, state.wanted_rights.acl),
        version=state.version,
        content_hash="" if state.thread_id else state.content_hash,
        upload_date=state.upload_date.astimezone(UTC).isoformat() if state.upload_date else "",
        corrections=state.corrections if state.has_unshown_corrections else {},
        thread_id=state.thread_id,
        folder=upload_folder(state.blob_name),
        unreadable_pages=state.unreadable_pages,
        has_text=state.has_text,
        warnings=state.warnings,
    )


def may_see(user: UserContext, state: DocumentState) -> bool:
    """Return whether the user may read the document. Both its current and its pending permissions must allow
    it.

    Before the first version is complete, only the pending permissions exist. Deleted documents are hidden,
    and files of a conversation are visible only in that conversation.
    """
    if not is_in_reach(user, state.thread_id):
        return False
    applied = may_read(user, state.rights.acl) or not state.blob_etag
    return not state.is_deleted and applied and may_read(user, state.wanted_rights.acl)


def may_change(user: UserContext, state: DocumentState) -> bool:
    """Return whether the user may change the document, as its owner or as an administrator. Administrators
    may change documents that they may not read.

    Files that belong to a conversation can't be changed, only removed from its thread.
    """
    if state.thread_id:
        return False
    return is_admin(user) or user.user_id == state.wanted_rights.owner_id
