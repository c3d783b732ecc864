"""Models of a signed-in person, directory entries and audit entries."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from pydantic import Field

from shared.access.daily_use import UsageView
from shared.platform.models import Model


class UserContext(Model):
    """A person with the principals that grant them access to documents.

    Attributes:
        user_id: stable id from the identity provider (`oid` or `sub`).
        department: an additional principal; None if the token contains none.
        org_id: the organisation; becomes the principal `org:<org_id>`.
        groups: ids of all groups of the person.
        roles: application roles, such as `admin`; never principals of a document.
        name: display name for prompts; not an identifier.
        within: restricts visible documents to these values of a field; it never grants access.
        thread_id: the thread whose files are visible as well; "" = none. Only the server sets it, for runs of
            that thread and requests of its owner.
    """

    user_id: str
    department: str | None = None
    org_id: str | None = None
    groups: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    name: str | None = None
    within: Mapping[Literal["project_id", "department"], tuple[str, ...]] = Field(default_factory=dict)
    thread_id: str = ""


class TokenIdentity(Model):
    """A user as described by a valid token, before admission rules are applied.

    Attributes:
        user: the user; `org_id` is the token's tenant.
        has_more_groups: the token omits some groups, so `user.groups` is incomplete.
        is_guest: the account belongs to another organisation.
        is_application: the token belongs to an application without a signed-in user.
    """

    user: UserContext
    has_more_groups: bool = False
    is_guest: bool = False
    is_application: bool = False


class DirectoryPerson(Model):
    """The record of a person in the organisation's directory."""

    is_guest: bool
    department: str | None = None
    name: str | None = None


class DirectoryEntry(Model):
    """A person, group or department that an access list can contain.

    Attributes:
        principal: the entry of the access list.
        name: display name.
        detail: distinguishes entries with the same name: a mail address or department; empty = none.
    """

    kind: Literal["person", "group", "department"]
    principal: str
    name: str
    detail: str = ""


class Me(Model):
    """The caller's own profile.

    Attributes:
        org_id: the organisation whose documents they can read as a member.
        today: usage since midnight (UTC) and limits.
        group_count: number of groups; the groups themselves are not shown.
        is_administrator: whether they have the application role `admin`.
    """

    user_id: str = Field(description="The caller's id: in Azure, the object id in Entra ID.")
    name: str | None = Field(description="The caller's name.")
    department: str | None = Field(description="The caller's department.")
    org_id: str | None
    group_count: int
    roles: tuple[str, ...] = Field(description="The caller's application roles.")
    is_administrator: bool
    today: tuple[UsageView, ...]


AuditAction = Literal[
    "answer",
    "cancel",
    "fail",
    "summary",
    "search",
    "list",
    "describe",
    "page",
    "download",
    "upload",
    "correct",
    "change_access",
    "publish",
    "reingest",
    "delete",
    "write_file",
    "share",
    "open_share",
    "revoke_share",
    "erase_person",
    "read_audit",
    "refused",
]

AUDIT_CURSOR = r"^([0-9]{8}\.[0-9]{17}-[0-9A-Za-z_-]{1,64})?$"


class AuditEntry(Model):
    """One audited action."""

    at: datetime = Field(
        description=("Time of the action, with zone; for an answer, the time of its question.")
    )
    user_id: str = Field(description="Id of the person who acted; a pseudonym after their erasure.")
    action: AuditAction = Field(description="Kind of action.")
    doc_ids: tuple[str, ...] = Field(
        default=(), description=("Ids of the documents involved; for an answer, of the cited documents.")
    )
    run_id: str = Field(default="", description="Id of the run or summary; empty for other actions.")
    subject: str = Field(
        default="",
        description=(
            "For an erasure or a view of the audit trail, the pseudonym of the person concerned. For a "
            "refused request, its method and route or its tool. For an opened share, what was shown: "
            "`answer`, `question` or, for nothing, `refused`."
        ),
    )
    origin: str = Field(default="", description="The client's address, or the channel.")


class AuditPage(Model):
    """A page of audit entries, newest first."""

    entries: tuple[AuditEntry, ...] = Field(description="Entries, newest first.")
    cursor: str | None = Field(
        description=(
            "Cursor of the next page; null on the last page. A page may be empty although another follows."
        )
    )
    names: Mapping[str, str] = Field(
        default_factory=dict, description="File names of the first three documents of each entry, by id."
    )
