"""Admission rules for tenants, guests and applications. Pure."""

import re
from collections.abc import Iterable

from shared.access.models import TokenIdentity, UserContext
from shared.access.security_filter import NOBODYS, PUBLIC
from shared.platform.errors import AccessDeniedError, NotAuthenticatedError
from shared.platform.settings_groups.access import IdentitySettings

ORGANISATION = "org:"
_MAX_NAME_CHARS = 100
# Departments of this form are dropped: users who can edit their own department could otherwise gain the
# access of a person or group.
_OBJECT_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def plain_user(user: UserContext) -> UserContext:
    """Return a copy of the user without blank, repeated or reserved principals. A department that looks like
    an object id is dropped too.

    Raises:
        NotAuthenticatedError: the user id is missing or reserved.
    """
    if not user.user_id.strip() or _is_reserved(user.user_id):
        raise NotAuthenticatedError("The identity has no user id.", "Sign in with a user account.")
    # Reduce the name to one short line, because people may choose their own display names.
    name = " ".join((user.name or "").split())[:_MAX_NAME_CHARS]
    return user.model_copy(
        update={
            "department": _department(user.department),
            "groups": _groups(user.groups),
            "roles": tuple(dict.fromkeys(user.roles)),
            "name": name or None,
        }
    )


def admit_user(claimed: TokenIdentity, rules: IdentitySettings) -> UserContext:
    """Return the user that a token identifies, or raise an error if the rules do not admit them. Groups that
    the token omits are not added.

    A guest loses `org_id` unless GUESTS is `members`, and also the department, which belongs to another
    organisation and may have the same name as a department of this one.

    Raises:
        AccessDeniedError: the rules exclude the tenant, guests or applications.
    """
    user = claimed.user
    if rules.tenants and (user.org_id or "").casefold() not in rules.tenants:
        raise AccessDeniedError("Your organisation has no access.", "Sign in with another account.")
    if claimed.is_application and not rules.allow_applications:
        raise AccessDeniedError(
            "Applications have no access.",
            "Sign in as a person, or ask the operator to set ALLOW_APPLICATIONS.",
        )
    if not claimed.is_guest or rules.guests == "members":
        return user
    if rules.guests == "refused":
        raise AccessDeniedError("Guests have no access.", "Sign in with an account of the organisation.")
    return user.model_copy(update={"org_id": None, "department": None})


def with_groups(user: UserContext, groups: Iterable[str]) -> UserContext:
    """Return a copy of the user with `groups` in place of their groups, sorted because a directory returns
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
    """Return whether a principal is reserved for everyone, an organisation or a conversation."""
    return name.strip() == PUBLIC or name.strip().startswith((ORGANISATION, *NOBODYS))
