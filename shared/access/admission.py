"""Who is let in, and as whom: what the deployment says of tenants, guests and applications. No I/O."""

from collections.abc import Iterable

from shared.access.models import Claimed, UserContext
from shared.access.security_filter import NOBODYS, PUBLIC
from shared.platform.errors import AccessDeniedError, NotAuthenticatedError
from shared.platform.settings import IdentitySettings

ORGANISATION = "org:"
_MAX_NAME_CHARS = 100


def plain_user(user: UserContext) -> UserContext:
    """The same without what nobody may go by: names that stand for others, doubles, and blanks.

    Raises:
        NotAuthenticatedError: there is no user id, or it is such a name.
    """
    if not user.user_id.strip() or _is_reserved(user.user_id):
        raise NotAuthenticatedError("The identity carries no user id.", "Sign in with a user account.")
    department = user.department
    name = " ".join((user.name or "").split())[:_MAX_NAME_CHARS]  # people choose their names themselves
    return user.model_copy(
        update={
            "department": None if department is None or _is_reserved(department) else department,
            "groups": _groups(user.groups),
            "roles": tuple(dict.fromkeys(user.roles)),
            "name": name or None,
        }
    )


def admitted(claimed: Claimed, rules: IdentitySettings) -> UserContext:
    """The user as whom the bearer of a token is let in, so far without groups that it has no room for.

    A guest's department is that of another organisation, and may have the name of one of ours.

    Raises:
        AccessDeniedError: a program, a guest, or somebody of a tenant that is not let in.
    """
    user = claimed.user
    if rules.tenants and (user.org_id or "").casefold() not in rules.tenants:
        raise AccessDeniedError("Your organisation has no access.", "Sign in with another account.")
    if claimed.is_application and not rules.allow_applications:
        raise AccessDeniedError(
            "Applications have no access.",
            "Sign in as a person, or ask the operator for ALLOW_APPLICATIONS.",
        )
    if not claimed.is_guest or rules.guests == "members":
        return user
    if rules.guests == "refused":
        raise AccessDeniedError("Guests have no access.", "Sign in with an account of the organisation.")
    return user.model_copy(update={"org_id": None, "department": None})


def with_groups(user: UserContext, groups: Iterable[str]) -> UserContext:
    """The user with these groups instead; sorted, as a directory tells them in no order."""
    return user.model_copy(update={"groups": _groups(sorted(groups))})


def _groups(groups: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(group for group in groups if group.strip() and not _is_reserved(group)))


def _is_reserved(name: str) -> bool:
    """Names that only an organisation, a conversation, or everybody goes by: a department is free text."""
    return name.strip() == PUBLIC or name.strip().startswith((ORGANISATION, *NOBODYS))
