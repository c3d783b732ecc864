"""Who is let in, and as whom: what the deployment says of tenants, guests and applications. No I/O."""

import re
from collections.abc import Iterable

from shared.access.models import Claimed, UserContext
from shared.access.security_filter import NOBODYS, PUBLIC
from shared.platform.errors import AccessDeniedError, NotAuthenticatedError
from shared.platform.settings import IdentitySettings

ORGANISATION = "org:"
_MAX_NAME_CHARS = 100
# A directory's object ids name people and groups. A department is free text, and people may edit their own.
_OBJECT_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def plain_user(user: UserContext) -> UserContext:
    """Return the user without reserved, repeated and blank names, and without a department like an object id.

    Raises:
        NotAuthenticatedError: there is no user id, or it is such a name.
    """
    if not user.user_id.strip() or _is_reserved(user.user_id):
        raise NotAuthenticatedError("The identity carries no user id.", "Sign in with a user account.")
    name = " ".join((user.name or "").split())[:_MAX_NAME_CHARS]  # people choose their names themselves
    return user.model_copy(
        update={
            "department": _department(user.department),
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


def _department(name: str | None) -> str | None:
    if name is None or _is_reserved(name) or _OBJECT_ID.fullmatch(name.strip()):
        return None
    return name


def _groups(groups: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(group for group in groups if group.strip() and not _is_reserved(group)))


def _is_reserved(name: str) -> bool:
    """Whether only an organisation, a conversation, or everybody may have this name."""
    return name.strip() == PUBLIC or name.strip().startswith((ORGANISATION, *NOBODYS))
