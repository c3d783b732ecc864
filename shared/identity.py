"""Who is asking: App Service's principal in Azure, signed development tokens elsewhere. Fails closed.

Room rule: takes header values and settings, returns a UserContext or raises; knows no HTTP framework.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from shared.errors import ConfigurationError, NotAuthenticatedError
from shared.models.base import Model
from shared.models.identity import UserContext
from shared.settings import Settings

DEV_ISSUER = "groundwork-dev"
DEV_AUDIENCE = "groundwork"
PRINCIPAL_HEADER = "x-ms-client-principal"
_CLOCK_SKEW_S = 30

PUBLIC = "*"  # as shared/core/security_filter.py, which this room may not import, writes principals
ORGANISATION = "org:"

_SCHEMAS = "http://schemas.microsoft.com/identity/claims/"
_USER_CLAIMS = ("oid", f"{_SCHEMAS}objectidentifier")
_TENANT_CLAIMS = ("tid", f"{_SCHEMAS}tenantid")
_GROUP_CLAIMS = ("groups", "http://schemas.microsoft.com/ws/2008/06/identity/claims/groups")
_ROLE_CLAIMS = ("roles", "http://schemas.microsoft.com/ws/2008/06/identity/claims/role")
# As Entra ID writes it in tokens: a mapped claim, or a directory extension with or without its app's id.
# Source: learn.microsoft.com, "Configure and manage optional claims", directory extensions.
_DEPARTMENT = re.compile(
    r"(?:http://schemas\.(?:microsoft\.com|xmlsoap\.org)/(?:[\w.]+/)+)?"
    r"(?:extn\.|extension_(?:[0-9a-f]{32}_)?)?department",
    re.ASCII | re.IGNORECASE,
)
_NAME_CLAIMS = ("name",)
_MAX_NAME_CHARS = 100
_OVERAGE_CLAIMS = ("hasgroups", "_claim_names")


class _Claim(Model):
    typ: str
    val: str


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


def authenticate(headers: Mapping[str, str], settings: Settings) -> UserContext:
    """The user of a request. Header names are lower case.

    The principal header counts only while the platform authenticates, because only then does the platform
    strip a client's own copy of it.

    Raises:
        NotAuthenticatedError: nothing that can be believed says who is asking.
    """
    if settings.website_auth_enabled:
        return _from_principal(headers.get(PRINCIPAL_HEADER, ""), settings.department_claim)
    if settings.dev_token_secret and not settings.in_azure:
        return _from_dev_token(headers.get("authorization", ""), settings.dev_token_secret)
    raise NotAuthenticatedError("No identity provider is configured.", "See docs/settings.md on identity.")


def sign_dev_token(claims: Mapping[str, Any], secret: str) -> str:
    """A development token; `claims` as _DevClaims without `iss` and `aud`, `exp` required.

    Raises:
        ConfigurationError: `exp` is missing; a token that never ends is refused on reading.
    """
    import jwt  # imported when used: most requests in Azure never need it

    if "exp" not in claims:
        raise ConfigurationError("A development token needs an expiry.", "Add exp, in seconds since 1970.")
    return jwt.encode({**claims, "iss": DEV_ISSUER, "aud": DEV_AUDIENCE}, secret, algorithm="HS256")


def _from_dev_token(header: str, secret: str) -> UserContext:
    import jwt

    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise NotAuthenticatedError(
            "The request carries no identity.", "Send `Authorization: Bearer <token>`."
        )
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
        raise NotAuthenticatedError("The token has expired.", "Get a new one.") from None
    except (jwt.InvalidTokenError, ValidationError):
        raise NotAuthenticatedError("The token is not valid.", "Get a new one from this stack.") from None
    user = _user(claims.sub, claims.groups, claims.roles, department=claims.department, org_id=claims.org_id)
    return _named(user, claims.name)


def _from_principal(header: str, department_claim: str | None) -> UserContext:
    if not header:
        raise NotAuthenticatedError("The request carries no identity.", "Sign in.")
    try:
        decoded = json.loads(base64.b64decode(header, validate=True))
        claims = TypeAdapter(list[_Claim]).validate_python(
            [{"typ": claim["typ"], "val": claim["val"]} for claim in decoded["claims"]]
        )
    except (binascii.Error, ValueError, KeyError, TypeError):
        raise NotAuthenticatedError("The identity header cannot be read.", "Sign in again.") from None
    if _values(claims, _OVERAGE_CLAIMS) and not _values(claims, _GROUP_CLAIMS):
        # More than 200 groups: the token lists none. Fail closed to what the user may read by name.
        groups: tuple[str, ...] = ()
    else:
        groups = tuple(_values(claims, _GROUP_CLAIMS))
    user_ids, tenants = _values(claims, _USER_CLAIMS), _values(claims, _TENANT_CLAIMS)
    user = _user(
        user_ids[0] if user_ids else "",
        groups,
        tuple(_values(claims, _ROLE_CLAIMS)),
        department=_department(claims, department_claim),
        org_id=tenants[0] if tenants else None,
    )
    return _named(user, next(iter(_values(claims, _NAME_CLAIMS)), None))


def _user(
    user_id: str,
    groups: tuple[str, ...],
    roles: tuple[str, ...],
    *,
    department: str | None = None,
    org_id: str | None = None,
) -> UserContext:
    if not user_id.strip() or _is_reserved(user_id):
        raise NotAuthenticatedError("The identity carries no user id.", "Sign in with a user account.")
    return UserContext(
        user_id=user_id,
        department=None if department is None or _is_reserved(department) else department,
        org_id=org_id,
        groups=tuple(group for group in groups if not _is_reserved(group)),
        roles=roles,
    )


def _is_reserved(name: str) -> bool:
    """Names in access lists that only an organisation, or everybody, goes by: a department is free text."""
    return name.strip() == PUBLIC or name.strip().startswith(ORGANISATION)


def _department(claims: Iterable[_Claim], configured: str | None) -> str | None:
    """The department; None unless it is clear. Two that differ would each open other documents."""
    found = {
        claim.val.strip()
        for claim in claims
        if (claim.typ == configured if configured else _DEPARTMENT.fullmatch(claim.typ)) and claim.val.strip()
    }
    return found.pop() if len(found) == 1 else None


def _named(user: UserContext, name: str | None) -> UserContext:
    """People choose their names themselves: of a very long one the beginning is enough."""
    plain = " ".join((name or "").split())[:_MAX_NAME_CHARS]
    return user.model_copy(update={"name": plain or None})


def _values(claims: Iterable[_Claim], names: tuple[str, ...]) -> list[str]:
    return [claim.val for claim in claims if claim.typ in names and claim.val]
