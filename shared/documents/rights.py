"""Who may see a document, and who may change it. Pure."""

from datetime import UTC

from shared.access.models import UserContext
from shared.access.security_filter import may_read
from shared.documents.state import DocumentState
from shared.retrieval.document_rows import DocumentRow

ADMIN = "admin"


def is_admin(user: UserContext) -> bool:
    """Whether the identity provider gave the user the application role of administrators."""
    return ADMIN in user.roles


def readers_row(state: DocumentState) -> DocumentRow | None:
    """Return what readers need of a document's row; None before its first version, and once it is deleted."""
    if state.is_deleted or not state.content_hash:
        return None
    return DocumentRow(
        access_lists=(state.rights.acl, state.wanted_rights.acl),
        version=state.version,
        content_hash=state.content_hash,
        upload_date=state.upload_date.astimezone(UTC).isoformat() if state.upload_date else "",
    )


def may_see(user: UserContext, state: DocumentState) -> bool:
    """Rights that are wanted count as well as those applied only where both admit the user.

    While rights change, the narrower of the two holds; before the first success only the wanted ones exist.
    A deleted document is seen by nobody.
    """
    applied = may_read(user, state.rights.acl) or not state.blob_etag
    return not state.is_deleted and applied and may_read(user, state.wanted_rights.acl)


def may_change(user: UserContext, state: DocumentState) -> bool:
    """Owners and administrators change and delete a document. The role alone lets nobody read it."""
    return is_admin(user) or user.user_id == state.wanted_rights.owner_id
