"""Who is asking: App Service's principal in Azure, signed development tokens elsewhere. Fails closed.

Room rule: takes header values, settings and the directory, returns a UserContext or raises; knows no HTTP
framework and no SDK.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from shared.access.admission import AdmissionRules, admitted, from_directory, plain_user, with_groups
from shared.access.directory import GroupDirectory
from shared.access.models import Claimed, UserContext
from shared.access.principal_claims import read_principal
from shared.platform.concurrency import run_together
from shared.platform.errors import (
    AccessDeniedError,
    ConfigurationError,
    DependencyError,
    NotAuthenticatedError,
    NotFoundError,
)
from shared.platform.models import Model
from shared.platform.settings import Settings

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
    """The user of a request. Header names are lower case.

    The principal header counts only while the platform authenticates, because only then does the platform
    strip a client's own copy of it. The directory is asked only about those whose groups no token can hold.

    Raises:
        NotAuthenticatedError: nothing that can be believed says who is asking.
        AccessDeniedError: it is somebody who is not let in.
        DependencyError: their groups cannot be looked up now. With fewer groups they would be told that
            there is nothing on what they may well read.
    """
    claimed = _believed(headers, settings)
    user = admitted(claimed, _rules(settings))
    if not claimed.has_more_groups:
        return user
    return with_groups(user, await _groups_elsewhere(user.user_id, settings, directory))


async def user_from_directory(
    user_id: str, tenant_id: str, settings: Settings, directory: GroupDirectory
) -> UserContext:
    """Somebody whom a platform has authenticated that tells no more than this, such as Teams.

    Their roles are not known here: nobody is an administrator this way.

    Args:
        user_id: their object id in Entra ID, as that platform vouches for it.
        tenant_id: the tenant in which they have that id.

    Raises:
        NotAuthenticatedError, AccessDeniedError, DependencyError: as `authenticate`.
    """
    rules = _rules(settings)
    # Before the directory is asked: the ids of strangers are none of its business.
    admitted(Claimed(user=plain_user(UserContext(user_id=user_id, org_id=tenant_id or None))), rules)
    try:
        person, groups = await run_together(
            directory.person(user_id), _groups_elsewhere(user_id, settings, directory)
        )
    except NotFoundError:
        raise _unknown() from None
    return from_directory(user_id, tenant_id, person, groups, rules)


def sign_dev_token(claims: Mapping[str, Any], secret: str) -> str:
    """A development token; `claims` as _DevClaims without `iss` and `aud`, `exp` required.

    Raises:
        ConfigurationError: `exp` is missing; a token that never ends is refused on reading.
    """
    import jwt  # imported when used: most requests in Azure never need it

    if "exp" not in claims:
        raise ConfigurationError("A development token needs an expiry.", "Add exp, in seconds since 1970.")
    return jwt.encode({**claims, "iss": DEV_ISSUER, "aud": DEV_AUDIENCE}, secret, algorithm="HS256")


def _believed(headers: Mapping[str, str], settings: Settings) -> Claimed:
    if settings.host.website_auth_enabled:
        return read_principal(headers.get(PRINCIPAL_HEADER, ""), settings.identity.department_claim)
    if settings.identity.dev_token_secret and not settings.host.in_azure:
        return Claimed(user=_of_dev_token(headers.get(BEARER_HEADER, ""), settings.identity.dev_token_secret))
    raise NotAuthenticatedError("No identity provider is configured.", "See docs/settings.md on identity.")


def _of_dev_token(header: str, secret: str) -> UserContext:
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
    said = claims.model_dump(include={"department", "org_id", "groups", "roles", "name"})
    return plain_user(UserContext(user_id=claims.sub, **said))


def _rules(settings: Settings) -> AdmissionRules:
    return AdmissionRules(
        tenants=settings.identity.tenants,
        guests=settings.identity.guests,
        applications=settings.identity.allow_applications,
    )


async def _groups_elsewhere(user_id: str, settings: Settings, directory: GroupDirectory) -> frozenset[str]:
    """Groups that no token tells, as GROUP_OVERAGE says (decision 0019)."""
    if settings.identity.group_overage == "ignore":
        return frozenset()
    if settings.identity.group_overage == "refuse":
        raise AccessDeniedError(
            "You belong to more groups than your identity can tell.",
            "Ask the operator to have groups looked up (GROUP_OVERAGE), or to assign the app fewer groups.",
        )
    try:
        return await directory.groups_of(user_id)
    except NotFoundError:
        raise _unknown() from None
    except DependencyError as error:
        said = f"Your groups cannot be looked up. {error.detail}"
        raise type(error)(said, *error.hints, retry_after_s=error.retry_after_s) from None


def _unknown() -> AccessDeniedError:
    return AccessDeniedError(
        "The organisation's directory does not know you.", "Sign in with an account of the organisation."
    )
