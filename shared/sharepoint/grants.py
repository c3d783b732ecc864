"""Access lists derived from permission lists. Pure: takes what Graph and SharePoint report, returns
principals.

Fails closed: an unknown kind of grant gives no access, and a grant whose members can't be read hides the
document.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from shared.documents.requests import MAX_PRINCIPALS
from shared.sharepoint.graph_models import Identity, IdentitySet, Permission

# Other roles of SharePoint arrive as `sp.…` under a localised name, among them Limited Access, which
# doesn't include the item itself.
READ_ROLES = frozenset({"read", "write", "owner"})

# Hidden groups that SharePoint creates for sharing links. The link's own entry names its people; the group
# may also contain people who followed other links.
_LINK_GROUP = "SharingLinks."
_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

# Claims, as documented in PnP Core SDK, "Security and users".
_ENTRA_GROUP = re.compile(r"c:0[to]\.c\|(?:tenant|federateddirectoryclaimprovider)\|([^|]+)", re.IGNORECASE)
_EVERYONE_BUT_GUESTS = re.compile(r"c:0-\.f\|rolemanager\|spo-grid-all-users/([^|]+)", re.IGNORECASE)
_EVERYONE = "c:0(.s|true"
_MEMBER = re.compile(r"i:0[#a-z%0-9]*\.f\|membership\|(.+)", re.IGNORECASE)
_OWNERS = "_o"

EVERYONE = "everyone-except-guests"
"""Stands for the organisation in a site group's roster; `decide_access` replaces it."""


@dataclass(frozen=True)
class Grants:
    """The principals in a permission list, before site groups and login names are resolved.

    Attributes:
        principals: entries of an access list.
        site_groups: numbers of site groups whose members have access.
        owned_groups: Entra groups whose owners, not members, have access.
        logins: user principal names of people with access.
        everyone: whether all members of the organisation, without guests, have access.
        expires_at: the earliest expiry of a grant.
    """

    principals: frozenset[str] = frozenset()
    site_groups: frozenset[str] = frozenset()
    owned_groups: frozenset[str] = frozenset()
    logins: frozenset[str] = frozenset()
    everyone: bool = False
    expires_at: datetime | None = None

    def __or__(self, other: "Grants") -> "Grants":
        ends = [end for end in (self.expires_at, other.expires_at) if end is not None]
        return Grants(
            self.principals | other.principals,
            self.site_groups | other.site_groups,
            self.owned_groups | other.owned_groups,
            self.logins | other.logins,
            self.everyone or other.everyone,
            min(ends, default=None),
        )


@dataclass(frozen=True)
class Rosters:
    """Members of the groups and logins in grants. `None` marks a group or login that couldn't be read."""

    site_groups: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    owners: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    users: Mapping[str, frozenset[str] | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Access:
    """Who may read a document.

    Attributes:
        acl: sorted principals. An empty list hides the document.
        problem: reason for hiding a document that has readers in SharePoint, or None.
    """

    acl: tuple[str, ...] = ()
    problem: str | None = None


def grants_of(permissions: Iterable[Permission], now: datetime) -> Grants:
    """Return the principals that may read an item according to its effective permission list.

    Links grant access only to the people they name: organisation-wide and anonymous links require possession
    of the link, and `existingAccess` grants nothing. Pending invitations have no id.
    """
    grants = Grants()
    for permission in permissions:
        if READ_ROLES.isdisjoint(permission.roles):
            continue
        if permission.expires_at is not None and permission.expires_at <= now:
            continue
        for identities in _identity_sets(permission):
            grants |= _grant(identities, permission.expires_at)
    return grants


def _identity_sets(permission: Permission) -> tuple[IdentitySet, ...]:
    if permission.link is not None:
        return permission.granted_to_each if permission.link.scope == "users" else ()
    alone = (permission.granted_to,) if permission.granted_to is not None else ()
    return (*alone, *permission.granted_to_each)


def _grant(identities: IdentitySet, expires_at: datetime | None) -> Grants:
    # The claim comes first, because only it distinguishes a group's owners from its members.
    claim = identities.site_user and identities.site_user.login_name
    by_claim = grants_of_claim(claim, expires_at) if claim else Grants()
    if by_claim.owned_groups or by_claim.everyone:
        return by_claim
    for identity in (identities.user, identities.group):
        if identity is not None and identity.id and _GUID.fullmatch(identity.id):
            return Grants(principals=frozenset({identity.id.lower()}), expires_at=expires_at)
    group = identities.site_group
    if group is not None and group.id and not _is_link_group(group):
        return Grants(site_groups=frozenset({group.id}), expires_at=expires_at)
    return by_claim


def _is_link_group(group: Identity) -> bool:
    return any((name or "").startswith(_LINK_GROUP) for name in (group.display_name, group.login_name))


def grants_of_claim(claim: str, expires_at: datetime | None = None) -> Grants:
    """Return the principals of a SharePoint claim; none if the kind of claim is unknown."""
    if claim.casefold() == _EVERYONE or _EVERYONE_BUT_GUESTS.fullmatch(claim):
        return Grants(everyone=True, expires_at=expires_at)
    if group := _ENTRA_GROUP.fullmatch(claim):
        group_id, owners = group[1].removesuffix(_OWNERS).lower(), group[1].endswith(_OWNERS)
        if not _GUID.fullmatch(group_id):
            return Grants()
        ids = frozenset({group_id})
        if owners:
            return Grants(owned_groups=ids, expires_at=expires_at)
        return Grants(principals=ids, expires_at=expires_at)
    if member := _MEMBER.fullmatch(claim):
        return Grants(logins=frozenset({member[1].lower()}), expires_at=expires_at)
    return Grants()


def decide_access(grants: Grants, rosters: Rosters, *, tenant: str, owner: str | None = None) -> Access:
    """Return the access list of a document.

    Args:
        rosters: must contain every site group, owned group and login in `grants`; a missing one counts as
            unreadable.
        tenant: the organisation's id, for grants to everyone.
        owner: object id of a OneDrive's owner, whom permission lists omit.
    """
    principals = set(grants.principals)
    for names, rosters_of_kind in (
        (grants.site_groups, rosters.site_groups),
        (grants.owned_groups, rosters.owners),
        (grants.logins, rosters.users),
    ):
        for name in names:
            members = rosters_of_kind.get(name)
            if members is None:
                return Access(problem="permissions_unreadable")
            principals |= members
    if grants.everyone or EVERYONE in principals:
        principals = principals - {EVERYONE} | {f"org:{tenant}"}
    if owner:
        principals.add(owner.lower())
    if len(principals) > MAX_PRINCIPALS:
        return Access(problem="too_many_principals")
    return Access(acl=tuple(sorted(principals)))
