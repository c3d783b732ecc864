"""Who may see what. Pure: a user context in, principals and an OData filter out. Fails closed."""

from collections.abc import Iterable

from shared.access.models import UserContext
from shared.platform.database_sources import DatabaseSource
from shared.platform.errors import AccessDeniedError
from shared.platform.odata import all_of, search_in

PUBLIC = "*"
NOBODYS = ("conversation:", "channel:")
"""How ids begin that the app gives to conversations: no identity may have one, and no list opens to one."""


def principals(user: UserContext) -> tuple[str, ...]:
    """Every name under which documents may be open to this user, the user's own id first.

    user_id, department, each group, `org:<org_id>`, and `*`, which public documents carry. Of a conversation
    in which several people read along it is `*` alone, whatever else its context says.

    Raises:
        AccessDeniedError: the user id is empty; a nameless user would read what is public.
    """
    if not user.user_id.strip():
        raise AccessDeniedError("The identity carries no user id.", "Sign in again.")
    if user.user_id.strip().startswith(NOBODYS):
        return (PUBLIC,)
    named = [user.user_id, user.department, *user.groups]
    if user.org_id:
        named.append(f"org:{user.org_id}")
    return tuple(dict.fromkeys([name for name in named if name and name.strip()] + [PUBLIC]))


def security_filter(user: UserContext | None) -> str:
    """The OData condition that trims results to what `user` may read (contracts.md, section 3).

    Raises:
        AccessDeniedError: there is no user context.
    """
    if user is None:
        raise AccessDeniedError("A search needs a user context.", "Sign in, or bind a user to the tools.")
    readable = f"access_control_list/any(acl: {search_in('acl', principals(user))})"
    within = (search_in(field, values) for field, values in sorted(user.within.items()))
    return all_of(readable, *within) or readable


def may_read(user: UserContext, access_control_list: tuple[str, ...]) -> bool:
    """The same rule for a list at hand: at least one principal stands in it; an empty list admits nobody."""
    return not set(principals(user)).isdisjoint(access_control_list)


def readable_databases(user: UserContext, sources: Iterable[DatabaseSource]) -> dict[str, DatabaseSource]:
    """The databases that the user may read, by `doc_id`; none where only some documents count: what narrows
    these says nothing of a database."""
    return {} if user.within else {one.doc_id: one for one in sources if may_read(user, one.access)}
