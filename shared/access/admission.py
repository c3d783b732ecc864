"""Admission rules for tenants, guests and applications. Pure."""

import re
from collections.abc import Iterable

from shared.access.models import Claimed, UserContext
from shared.access.security_filter import NOBODYS, PUBLIC
from shared.platform.errors import AccessDeniedError, NotAuthenticatedError
from shared.platform.settings import IdentitySettings

ORGANISATION = "org:"
_MAX_NAME_CHARS = 100
# Object ids identify people and groups. A department is free text that people may be able to edit.
_OBJECT_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def plain_user(user: UserContext) -> UserContext:
    """Return the user without reserved, repeated or blank principals, and without a department that looks
    like an id.

    Raises:
        NotAuthenticatedError: the user id is missing or reserved.
    """
    if not user.user_id.strip() or _is_reserved(user.user_id):
        raise NotAuthenticatedError("The identity has no user id.", "Sign in with a user account.")
    name = " ".join((user.name or "").split())[:_MAX_NAME_CHARS]  # people choose their own display names
    return user.model_copy(
        update={
            "department": _department(user.department),
            "groups": _groups(user.groups),
            "roles": tuple(dict.fromkeys(user.roles)),
            "name": name or None,
        }
    )


def admitted(claimed: Claimed, rules: IdentitySettings) -> UserContext:
    """Return the user that a token identifies. Groups omitted from the token are added later.

    A guest's department is dropped: it belongs to another organisation and may share a name with one of ours.

    Raises:
        AccessDeniedError: an application, a guest or a tenant that isn't admitted.
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
    """Return the user with these groups instead, sorted because a directory returns
    them in arbitrary order.
    """
    return user.model_copy(update={"groups": _groups(sorted(groups))})


def _department(name: str | None) -> str | None:
    if name is None or _is_reserved(name) or _OBJECT_ID.fullmatch(name.strip()):
        return None
    return name


def _groups(groups: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(group for group in groups if group.strip() and not _is_reserved(group)))


def _is_reserved(name: str) -> bool:
    """Return whether the name is reserved for organisations, conversations or everyone."""
    return name.strip() == PUBLIC or name.strip().startswith((ORGANISATION, *NOBODYS))
