"""Who asks. A user context is made once at the edge and bound below the tools; no model can fill it in."""

from shared.models.base import Model


class UserContext(Model):
    """The person on whose behalf a run reads documents.

    Attributes:
        user_id: stable id from the identity provider (`oid` or `sub`).
        department: one more principal, when the token carries it.
        org_id: the organisation; becomes the principal `org:<org_id>`.
        groups: ids of every group the person belongs to.
        roles: application roles, such as `admin`; never principals of a document.
        name: what the identity provider calls them, for prompts; nobody is told apart by it.
    """

    user_id: str
    department: str | None = None
    org_id: str | None = None
    groups: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    name: str | None = None
