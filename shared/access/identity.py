"""Authentication with the principal header of App Service in Azure, or with signed development tokens
elsewhere. Fails closed.

Takes header values, settings and the directory, and returns a UserContext or raises; independent of HTTP
frameworks and SDKs. App Service maps some claims of a token to long names, so each claim is looked up under
both. Sources: learn.microsoft.com, "Work with user identities in Azure App Service authentication"; "Access
token claims reference" and "Optional claims reference" (groups overage, `idp`, `acct`, `idtyp`); the long
names are those of .NET's `JwtSecurityTokenHandler.DefaultInboundClaimTypeMap`.
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from shared.access.admission import admit_user, plain_user, with_groups
from shared.access.directory import GroupDirectory
from shared.access.models import TokenIdentity, UserContext
from shared.platform.concurrency import run_together
from shared.platform.errors import (
    AccessDeniedError,
    ConfigurationError,
    DependencyError,
    NotAuthenticatedError,
    NotFoundError,
)
from shared.platform.loading import load, load_module
from shared.platform.models import Model
from shared.platform.settings import Settings

# The host rejects requests whose headers exceed this size in total. A header with 200 groups has 17 KB.
MAX_HEADER_CHARS = 32 * 1024

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

# Matches a mapped claim, or a directory extension with or without its app's id.
# Source: learn.microsoft.com, "Configure and manage optional claims", directory extensions.
_DEPARTMENT = re.compile(
    r"(?:http://schemas\.(?:microsoft\.com|xmlsoap\.org)/(?:[\w.]+/)+)?"
    r"(?:extn\.|extension_(?:[0-9a-f]{32}_)?)?department",
    re.ASCII | re.IGNORECASE,
)

Claims = Sequence[tuple[str, str]]


def read_principal(header: str, department_claim: str | None = None) -> TokenIdentity:
    """Parse the principal header of App Service into a user and the facts that determine whether they are
    admitted.

    Args:
        department_claim: the only claim that may carry the department; None = the usual ones.

    Raises:
        NotAuthenticatedError: the header is missing, unreadable or ambiguous, or names another provider than
            Entra ID.
    """
    claims = _claims_of(header)
    user_id = _single_value(claims, _USER) or ""
    tenant_id = _single_value(claims, _TENANT)
    user = UserContext(
        user_id=user_id,
        department=_department(claims, department_claim),
        org_id=tenant_id,
        groups=tuple(_values(claims, _GROUPS)),
        roles=tuple(_values(claims, _ROLES)),
        name=next((value for name in _NAMES for value in _values(claims, (name,))), None),
    )
    return TokenIdentity(
        user=plain_user(user),
        has_more_groups=_has_more_groups(claims),
        is_guest=_is_guest(claims, tenant_id),
        is_application=_is_application(claims, user_id),
    )


def _claims_of(header: str) -> Claims:
    if not header:
        raise NotAuthenticatedError("The request has no identity.", "Sign in.")
    if len(header) > MAX_HEADER_CHARS:
        raise NotAuthenticatedError("The identity header is too long.", "Sign in again.")
    try:
        decoded = json.loads(base64.b64decode(header, validate=True))
        provider: Any = decoded["auth_typ"]
        claims = [(claim["typ"], claim["val"]) for claim in decoded["claims"]]
    except (binascii.Error, ValueError, KeyError, TypeError, RecursionError):
        raise _unreadable_header() from None
    if not all(isinstance(text, str) for claim in claims for text in (provider, *claim)):
        raise _unreadable_header()
    if provider.casefold() not in _PROVIDERS:
        raise NotAuthenticatedError(
            "Identities of this provider are not accepted.", "Sign in with an account of Entra ID."
        )
    return claims


def _unreadable_header() -> NotAuthenticatedError:
    return NotAuthenticatedError("The identity header cannot be read.", "Sign in again.")


def _has_more_groups(claims: Claims) -> bool:
    """Return whether the token omits groups because the user has too many (groups overage).

    The implicit flow sends `hasgroups`; other flows send `_claim_names`, an object whose `groups` names a
    source. App Service passes it as text or flattened as `groups:src1`.
    """
    return any(
        (typ == "hasgroups" and val.strip().casefold() != "false")
        or (typ == "_claim_names" and _includes_groups(val))
        or typ.startswith("groups:src")
        for typ, val in claims
    )


def _includes_groups(text: str) -> bool:
    """Return whether the value of a `_claim_names` claim mentions groups. Invalid JSON counts as mentioning
    them.
    """
    try:
        claim_names = json.loads(text)
    except (ValueError, RecursionError):
        return True
    return not isinstance(claim_names, dict) or "groups" in claim_names


def _is_guest(claims: Claims, tenant_id: str | None) -> bool:
    """Return whether the account is a guest, according to `acct` or, without that optional claim, to an `idp`
    of another tenant.
    """
    kinds = _values(claims, _ACCOUNT_KIND)
    if kinds:
        return any(kind != "0" for kind in kinds)
    return any((tenant_id or "").casefold() not in home.casefold() for home in _values(claims, _HOME))


def _is_application(claims: Claims, user_id: str) -> bool:
    """Return whether the token belongs to an application: according to `idtyp` or, without that claim,
    because its subject is the user id and it has no scopes.
    """
    kinds = _values(claims, _TOKEN_KIND)
    if kinds:
        return "app" in kinds
    return user_id in _values(claims, _SUBJECT) and not _values(claims, _SCOPES)


def _department(claims: Claims, configured: str | None) -> str | None:
    """Return the department claim. Return None if values differ, because each would grant access to other
    documents.
    """
    values = {
        val.strip()
        for typ, val in claims
        if (typ == configured if configured else _DEPARTMENT.fullmatch(typ)) and val.strip()
    }
    return values.pop() if len(values) == 1 else None


def _single_value(claims: Claims, names: tuple[str, ...]) -> str | None:
    """Return the value of the claim that has one of these names, or None if the token has no such claim.

    Raises:
        NotAuthenticatedError: two values differ, so the person or organisation is ambiguous.
    """
    values = set(_values(claims, names))
    if len(values) > 1:
        raise NotAuthenticatedError("The identity is ambiguous.", "Sign in again.")
    return values.pop() if values else None


def _values(claims: Claims, names: tuple[str, ...]) -> list[str]:
    return [val for typ, val in claims if typ in names and val]


DEV_ISSUER = "groundwork-dev"
DEV_AUDIENCE = "groundwork"
PRINCIPAL_HEADER = "x-ms-client-principal"
BEARER_HEADER = "authorization"
_CLOCK_SKEW_S = 30


class _DevClaims(Model):
    sub: str
    name: str | None = None
    department: str | None = None
    org_id: str | None = None
    groups: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    iss: str
    aud: str
    exp: int
    iat: int | None = None


async def authenticate(
    headers: Mapping[str, str], settings: Settings, directory: GroupDirectory
) -> UserContext:
    """Return the user who sent a request. Keys of `headers` must be lower case.

    The principal header is trusted only on App Service with authentication enabled, which strips copies sent
    by clients. The directory is queried only for users whose groups don't fit into a token.

    Raises:
        NotAuthenticatedError: no credential is valid.
        AccessDeniedError: the user isn't admitted.
        DependencyError: the user's groups can't be looked up. Without them, documents would wrongly appear
            not to exist.
    """
    claimed = _read_credentials(headers, settings)
    user = admit_user(claimed, settings.identity)
    if not claimed.has_more_groups:
        return user
    return with_groups(user, await _look_up_groups(user.user_id, settings, directory))


async def user_from_directory(
    user_id: str, tenant_id: str, settings: Settings, directory: GroupDirectory
) -> UserContext:
    """Return a user whom another platform, such as Teams, has authenticated. Department and groups come from
    the directory.

    The user has no roles, so they are not an administrator.

    Args:
        user_id: object id in Entra ID, as vouched for by the platform.
        tenant_id: tenant of that id.

    Raises:
        NotAuthenticatedError, AccessDeniedError, DependencyError: as `authenticate`.
    """
    rules = settings.identity
    user = UserContext(user_id=user_id, org_id=tenant_id or None)
    # Check admission before the directory query, which must not receive ids of strangers.
    admit_user(TokenIdentity(user=plain_user(user)), rules)
    try:
        person, groups = await run_together(
            directory.person(user_id), _look_up_groups(user_id, settings, directory)
        )
    except NotFoundError:
        raise _unknown_person() from None
    details = {"department": person.department, "groups": tuple(sorted(groups)), "name": person.name}
    user = plain_user(user.model_copy(update=details))
    return admit_user(TokenIdentity(user=user, is_guest=person.is_guest), rules)


def sign_dev_token(claims: Mapping[str, Any], secret: str) -> str:
    """Sign a development token. `claims` must contain `sub` and `exp`; `iss` and `aud` are added.

    Raises:
        ConfigurationError: `exp` is missing; tokens without an expiry are rejected.
    """
    if "exp" not in claims:
        raise ConfigurationError("A development token needs an expiry.", "Add exp, in seconds since 1970.")
    payload = {**claims, "iss": DEV_ISSUER, "aud": DEV_AUDIENCE}
    token: str = load("jwt", "encode")(payload, secret, algorithm="HS256")
    return token


def _read_credentials(headers: Mapping[str, str], settings: Settings) -> TokenIdentity:
    if settings.host.website_auth_enabled and settings.host.in_azure:
        return read_principal(headers.get(PRINCIPAL_HEADER, ""), settings.identity.department_claim)
    if settings.identity.dev_token_secret and not settings.host.is_hosted:
        return TokenIdentity(
            user=_read_dev_token(headers.get(BEARER_HEADER, ""), settings.identity.dev_token_secret)
        )
    raise NotAuthenticatedError(
        "No identity provider is configured.", "See the section on identity in docs/settings.md."
    )


def _read_dev_token(header: str, secret: str) -> UserContext:
    jwt = load_module("jwt")

    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise NotAuthenticatedError("The request has no identity.", "Send `Authorization: Bearer <token>`.")
    try:
        payload = jwt.decode(
            token.strip(),
            secret,
            algorithms=["HS256"],
            issuer=DEV_ISSUER,
            audience=DEV_AUDIENCE,
            leeway=_CLOCK_SKEW_S,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )
        claims = _DevClaims.model_validate(payload)
    except jwt.ExpiredSignatureError:
        raise NotAuthenticatedError("The token has expired.", "Get a new token.") from None
    except (jwt.InvalidTokenError, ValidationError):
        raise NotAuthenticatedError("The token is not valid.", "Get a new token from this stack.") from None
    fields = claims.model_dump(include={"department", "org_id", "groups", "roles", "name"})
    return plain_user(UserContext(user_id=claims.sub, **fields))


async def _look_up_groups(user_id: str, settings: Settings, directory: GroupDirectory) -> frozenset[str]:
    """Return the groups of a user whose token doesn't list them, according to GROUP_OVERAGE (decision
    0019).
    """
    if settings.identity.group_overage == "ignore":
        return frozenset()
    if settings.identity.group_overage == "refuse":
        raise AccessDeniedError(
            "You belong to more groups than fit into your token.",
            "Ask the operator to enable group lookups (GROUP_OVERAGE) or to assign fewer groups to the app.",
        )
    try:
        return await directory.groups_of(user_id)
    except NotFoundError:
        raise _unknown_person() from None
    except DependencyError as error:
        detail = f"Your groups cannot be looked up. {error.detail}"
        raise type(error)(detail, *error.hints, retry_after_s=error.retry_after_s) from None


def _unknown_person() -> AccessDeniedError:
    return AccessDeniedError(
        "You are not in the organisation's directory.", "Sign in with an account of the organisation."
    )
