"""The header `X-MS-CLIENT-PRINCIPAL` of App Service Authentication, read. Pure; fails closed.

The platform maps some claims of a token to long names and leaves others as they are, so each is looked for
under both. Sources: learn.microsoft.com, "Work with user identities in Azure App Service authentication";
"Access token claims reference" and "Optional claims reference" (groups overage, `idp`, `acct`, `idtyp`);
the long names are those of .NET's `JwtSecurityTokenHandler.DefaultInboundClaimTypeMap`.
"""

import base64
import binascii
import json
import re
from collections.abc import Sequence
from typing import Any

from shared.access.admission import plain_user
from shared.access.models import Claimed, UserContext
from shared.platform.errors import NotAuthenticatedError

# 200 groups make 25 KB, and App Service takes some 64 KB of headers in all.
MAX_HEADER_CHARS = 128 * 1024
_PROVIDERS = ("aad", "azureactivedirectory")

_MICROSOFT = "http://schemas.microsoft.com/identity/claims/"
_WINDOWS = "http://schemas.microsoft.com/ws/2008/06/identity/claims/"
_XMLSOAP = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/"
_USER = ("oid", f"{_MICROSOFT}objectidentifier")
_SUBJECT = ("sub", f"{_XMLSOAP}nameidentifier")
_TENANT = ("tid", f"{_MICROSOFT}tenantid")
_GROUPS = ("groups", f"{_WINDOWS}groups")
_ROLES = ("roles", f"{_WINDOWS}role")
_NAMES = ("name", f"{_MICROSOFT}displayname", f"{_XMLSOAP}name")
_HOME = ("idp", f"{_MICROSOFT}identityprovider")
_SCOPES = ("scp", f"{_MICROSOFT}scope")
_ACCOUNT_KIND = ("acct",)
_TOKEN_KIND = ("idtyp",)
# A mapped claim, or a directory extension with or without its app's id.
# Source: learn.microsoft.com, "Configure and manage optional claims", directory extensions.
_DEPARTMENT = re.compile(
    r"(?:http://schemas\.(?:microsoft\.com|xmlsoap\.org)/(?:[\w.]+/)+)?"
    r"(?:extn\.|extension_(?:[0-9a-f]{32}_)?)?department",
    re.ASCII | re.IGNORECASE,
)

Claims = Sequence[tuple[str, str]]


def read_principal(header: str, department_claim: str | None = None) -> Claimed:
    """What the header says.

    Args:
        department_claim: the only claim that may carry the department; None = those that usually do.

    Raises:
        NotAuthenticatedError: there is none, it cannot be read, another provider than Entra ID wrote it, or
            it does not say clearly who that is.
    """
    claims = _claims_of(header)
    user_id = _only(claims, _USER) or ""
    tenant_id = _only(claims, _TENANT)
    user = UserContext(
        user_id=user_id,
        department=_department(claims, department_claim),
        org_id=tenant_id,
        groups=tuple(_values(claims, _GROUPS)),
        roles=tuple(_values(claims, _ROLES)),
        name=_name(claims),
    )
    return Claimed(
        user=plain_user(user),
        has_more_groups=_has_more_groups(claims),
        is_guest=_is_guest(claims, tenant_id),
        is_application=_is_application(claims, user_id),
    )


def _claims_of(header: str) -> Claims:
    if not header:
        raise NotAuthenticatedError("The request carries no identity.", "Sign in.")
    if len(header) > MAX_HEADER_CHARS:
        raise NotAuthenticatedError("The identity header is too long.", "Sign in again.")
    try:
        decoded = json.loads(base64.b64decode(header, validate=True))
        provider: Any = decoded["auth_typ"]
        claims = [(claim["typ"], claim["val"]) for claim in decoded["claims"]]
    except (binascii.Error, ValueError, KeyError, TypeError, RecursionError):
        raise _unreadable() from None
    if not all(isinstance(text, str) for claim in claims for text in (provider, *claim)):
        raise _unreadable()
    if provider.casefold() not in _PROVIDERS:
        raise NotAuthenticatedError(
            "Identities of this provider mean nothing here.", "Sign in with an account of Entra ID."
        )
    return claims


def _unreadable() -> NotAuthenticatedError:
    return NotAuthenticatedError("The identity header cannot be read.", "Sign in again.")


def _has_more_groups(claims: Claims) -> bool:
    """Whether the token says that the list of groups is elsewhere, in one of its ways.

    `hasgroups` in the implicit flow; else `_claim_names`, an object whose `groups` names a source, which the
    platform hands on as text, or taken apart as `groups:src1`.
    """
    for typ, val in claims:
        if typ == "hasgroups" and val.strip().casefold() != "false":
            return True
        if typ == "_claim_names" and _names_groups(val):
            return True
        if typ.startswith("groups:src"):
            return True
    return False


def _names_groups(text: str) -> bool:
    """Whether the claims that are elsewhere have groups among them; in doubt they have."""
    try:
        named = json.loads(text)
    except (ValueError, RecursionError):
        return True
    return not isinstance(named, dict) or "groups" in named


def _is_guest(claims: Claims, tenant_id: str | None) -> bool:
    """`acct` says it; without that optional claim, `idp` names another home than the token's tenant."""
    kinds = _values(claims, _ACCOUNT_KIND)
    if kinds:
        return any(kind != "0" for kind in kinds)
    return any((tenant_id or "").casefold() not in home.casefold() for home in _values(claims, _HOME))


def _is_application(claims: Claims, user_id: str) -> bool:
    """`idtyp` says it; without that optional claim, a program is its own subject, and has no scopes."""
    kinds = _values(claims, _TOKEN_KIND)
    if kinds:
        return "app" in kinds
    return user_id in _values(claims, _SUBJECT) and not _values(claims, _SCOPES)


def _department(claims: Claims, configured: str | None) -> str | None:
    """The department; None unless it is clear. Two that differ would each open other documents."""
    found = {
        val.strip()
        for typ, val in claims
        if (typ == configured if configured else _DEPARTMENT.fullmatch(typ)) and val.strip()
    }
    return found.pop() if len(found) == 1 else None


def _name(claims: Claims) -> str | None:
    for name in _NAMES:
        for found in _values(claims, (name,)):
            return found
    return None


def _only(claims: Claims, names: tuple[str, ...]) -> str | None:
    """The one value; None without any. Two that differ would be two people, or two organisations."""
    found = set(_values(claims, names))
    if len(found) > 1:
        raise NotAuthenticatedError("The identity names more than one person.", "Sign in again.")
    return found.pop() if found else None


def _values(claims: Claims, names: tuple[str, ...]) -> list[str]:
    return [val for typ, val in claims if typ in names and val]
