"""A person, what their token claims, and what the directory knows of them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from pydantic import Field

from shared.access.daily_use import UsageView
from shared.platform.models import Model


class UserContext(Model):
    """The person on whose behalf a run reads documents.

    Attributes:
        user_id: stable id from the identity provider (`oid` or `sub`).
        department: one more principal, when the token carries it.
        org_id: the organisation; becomes the principal `org:<org_id>`.
        groups: ids of every group the person belongs to.
        roles: application roles, such as `admin`; never principals of a document.
        name: what the identity provider calls them, for prompts; it identifies nobody.
        within: field of documents to the only values that are seen on this occasion; it narrows and grants
            nothing.
    """

    user_id: str
    department: str | None = None
    org_id: str | None = None
    groups: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    name: str | None = None
    within: Mapping[Literal["project_id", "department"], tuple[str, ...]] = Field(default_factory=dict)


class Claimed(Model):
    """What a believable token says of its bearer, before anybody decides whether to let them in.

    Attributes:
        user: who they would be; `org_id` is the tenant of the token.
        has_more_groups: the token has not room for all groups, and `user.groups` is not the list.
        is_guest: their account is another organisation's.
        is_application: a program that acts as itself; nobody is signed in.
    """

    user: UserContext
    has_more_groups: bool = False
    is_guest: bool = False
    is_application: bool = False


class DirectoryPerson(Model):
    """A person as the organisation's directory knows them."""

    is_guest: bool
    department: str | None = None
    name: str | None = None


class DirectoryEntry(Model):
    """A person or group that an access list can name.

    Attributes:
        principal: what goes into the access list.
        name: what people call them.
        detail: what tells them from others with this name: a mail address or department; empty = nothing.
    """

    kind: Literal["person", "group", "department"]
    principal: str
    name: str
    detail: str = ""


class Me(Model):
    """The caller, as the app sees them.

    Attributes:
        org_id: the organisation whose documents are open to them as one of its members.
        today: what they used up since midnight (UTC), and how much they may.
        group_count: how many groups count for them; which ones is not shown.
        is_administrator: they have the application role `admin`.
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
    "erase_person",
    "read_audit",
    "refused",
]

AUDIT_CURSOR = r"^([0-9]{8}\.[0-9]{17}-[0-9A-Za-z_-]{1,64})?$"


class AuditEntry(Model):
    """One thing that somebody did."""

    at: datetime = Field(description="With zone; of an answer, when its question came.")
    user_id: str = Field(description="Who; after their erasure a pseudonym.")
    action: AuditAction = Field(description="What was done.")
    doc_ids: tuple[str, ...] = Field(default=(), description="Documents: of an answer those that it cites.")
    run_id: str = Field(default="", description="Of an answer; of a summary its id.")
    subject: str = Field(
        default="",
        description="Pseudonym of the person who was erased, or whose entries were read; of a refused "
        "request its method and route, or its tool.",
    )
    origin: str = Field(default="", description="Address of the client, or the channel.")


class AuditPage(Model):
    """Entries, newest first."""

    entries: tuple[AuditEntry, ...] = Field(description="What was done, newest first.")
    cursor: str | None = Field(description="For the next page; null at the end. A page may be empty.")
    names: Mapping[str, str] = Field(
        default_factory=dict, description="File names of the first three documents of each entry, by id."
    )
