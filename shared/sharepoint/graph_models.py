"""Response models of Microsoft Graph v1.0 and SharePoint REST, limited to the fields that are read. Pure.

Sources: driveItem, permission, sharePointIdentitySet and driveItem: delta in the Graph reference; SP.User in
the SharePoint REST reference.
"""

from datetime import datetime
from typing import Any

from pydantic import Field, field_validator

from shared.platform.http_client import Wire


class Identity(Wire):
    """A person, group or application.

    Attributes:
        id: Entra object id of a user or group; a site group's number within its site.
        login_name: SharePoint's claim, such as `c:0t.c|tenant|GUID`; only on siteUser and siteGroup.
    """

    id: str | None = None
    display_name: str | None = Field(default=None, alias="displayName")
    login_name: str | None = Field(default=None, alias="loginName")


class IdentitySet(Wire):
    """The identities that Graph reports for one grant. Several may describe the same principal."""

    user: Identity | None = None
    group: Identity | None = None
    site_user: Identity | None = Field(default=None, alias="siteUser")
    site_group: Identity | None = Field(default=None, alias="siteGroup")


class SharingLink(Wire):
    """The link facet of a permission. `scope` is users, organization, anonymous or existingAccess."""

    scope: str | None = None


class Permission(Wire):
    """One entry of an item's effective permission list, inherited entries included."""

    roles: tuple[str, ...] = ()
    granted_to: IdentitySet | None = Field(default=None, alias="grantedToV2")
    granted_to_each: tuple[IdentitySet, ...] = Field(default=(), alias="grantedToIdentitiesV2")
    link: SharingLink | None = None
    expires_at: datetime | None = Field(default=None, alias="expirationDateTime")

    @field_validator("expires_at")
    @classmethod
    def _read_end(cls, end: datetime | None) -> datetime | None:
        """Graph writes the first instant of the calendar (`DateTime.MinValue`) for a grant without an end."""
        return None if end is not None and end.year == 1 else end


class PermissionPage(Wire):
    """One page of an item's permissions."""

    value: tuple[Permission, ...]
    next_link: str | None = Field(default=None, alias="@odata.nextLink")


class Hashes(Wire):
    """Hashes of a file's content. SharePoint computes quickXorHash only, and sometimes none."""

    quick_xor: str | None = Field(default=None, alias="quickXorHash")


class FileFacet(Wire):
    """Marks an item as a file."""

    hashes: Hashes = Hashes()


class ItemReference(Wire):
    """The parent of an item."""

    id: str | None = None


class Publication(Wire):
    """The publication state. `level` is published, draft or checkout."""

    level: str = "published"


class DriveItem(Wire):
    """A file, folder, notebook or root of a library, or the record of a deleted one.

    A deleted item may have no fields except its id.
    """

    id: str
    name: str | None = None
    e_tag: str | None = Field(default=None, alias="eTag")
    size: int = 0
    web_url: str | None = Field(default=None, alias="webUrl")
    parent: ItemReference = Field(default=ItemReference(), alias="parentReference")
    file: FileFacet | None = None
    folder: dict[str, Any] | None = None
    root: dict[str, Any] | None = None
    package: dict[str, Any] | None = None
    malware: dict[str, Any] | None = None
    deleted: dict[str, Any] | None = None
    publication: Publication = Publication()

    @property
    def is_folder(self) -> bool:
        return self.folder is not None or self.root is not None

    @property
    def content_mark(self) -> str:
        """A value that changes with the content. Without a hash, it also changes with the metadata."""
        hashes = self.file.hashes if self.file else Hashes()
        return hashes.quick_xor or self.e_tag or ""


class DeltaPage(Wire):
    """One page of changes. The last page has a delta link instead of a next link."""

    value: tuple[DriveItem, ...]
    next_link: str | None = Field(default=None, alias="@odata.nextLink")
    delta_link: str | None = Field(default=None, alias="@odata.deltaLink")


class DriveOwner(Wire):
    """The owner of a drive: a person for OneDrive; a group, or no one, for a site's library."""

    user: Identity | None = None


class Drive(Wire):
    """A document library."""

    id: str
    name: str = ""
    drive_type: str = Field(default="", alias="driveType")
    web_url: str = Field(default="", alias="webUrl")
    owner: DriveOwner = DriveOwner()


class DrivePage(Wire):
    """The libraries of a site."""

    value: tuple[Drive, ...]
    next_link: str | None = Field(default=None, alias="@odata.nextLink")


class Site(Wire):
    """A site collection or subsite."""

    id: str
    web_url: str = Field(alias="webUrl")


class SiteUser(Wire):
    """A member of a site group in SharePoint REST: a person or an Entra group, identified by its claim."""

    login_name: str = Field(alias="LoginName")


class SiteUserPage(Wire):
    """One page of a site group's members."""

    value: tuple[SiteUser, ...]
    next_link: str | None = Field(default=None, alias="odata.nextLink")


class DirectoryObject(Wire):
    """A user or group of the directory."""

    id: str


class DirectoryObjects(Wire):
    """One page of users or groups."""

    value: tuple[DirectoryObject, ...]
    next_link: str | None = Field(default=None, alias="@odata.nextLink")


class BatchReply(Wire):
    """The reply to one request of a JSON batch."""

    id: str
    status: int
    headers: dict[str, str] = Field(default_factory=dict)
    body: dict[str, Any] | None = None


class BatchReplies(Wire):
    """The replies of a JSON batch, in any order."""

    responses: tuple[BatchReply, ...]
