"""Document permissions: turns a user context into principals and an OData filter. Pure. Fails closed."""

from collections.abc import Iterable

from shared.access.models import UserContext
from shared.platform.database_sources import DatabaseSource
from shared.platform.errors import AccessDeniedError
from shared.platform.odata import all_of, quote, search_in

PUBLIC = "*"
NOBODYS = ("conversation:", "channel:")
"""Prefixes of user ids that the app assigns to conversations. Neither a person nor an access list may contain
one.
"""


def principals(user: UserContext) -> tuple[str, ...]:
    """Return the principals of a user, their own id first: user id, department, groups, `org:<org_id>`, and
    `*` for public documents.

    A conversation with several readers has only `*`, whatever else its context contains.

    Raises:
        AccessDeniedError: the user id is empty. An anonymous user must not read even public documents.
    """
    if not user.user_id.strip():
        raise AccessDeniedError("The identity has no user id.", "Sign in again.")
    if user.user_id.strip().startswith(NOBODYS):
        return (PUBLIC,)
    candidates = [user.user_id, user.department, *user.groups]
    if user.org_id:
        candidates.append(f"org:{user.org_id}")
    return tuple(dict.fromkeys([name for name in candidates if name and name.strip()] + [PUBLIC]))


def security_filter(user: UserContext | None) -> str:
    """Return an OData filter for the documents that the user may read.

    Raises:
        AccessDeniedError: there is no user context.
    """
    if user is None:
        raise AccessDeniedError("A search requires a user context.", "Sign in, or pass a user to the tools.")
    readable = f"access_control_list/any(acl: {search_in('acl', principals(user))})"
    within = (search_in(field, values) for field, values in sorted(user.within.items()))
    own = f" or thread_id eq {quote(user.thread_id)}" if user.thread_id else ""
    return all_of(readable, f"thread_id eq null{own}", *within) or readable


def in_thread(user: UserContext, thread_id: str) -> UserContext:
    """Return a copy of the user that may also read the files of a thread. The caller must have checked that
    the user owns the thread.
    """
    return user.model_copy(update={"thread_id": thread_id})


def is_in_reach(user: UserContext, thread_id: str) -> bool:
    """Return whether the user's searches may include documents of this thread. "" stands for documents
    outside any thread, which are always included.
    """
    return thread_id in ("", user.thread_id)


def may_read(user: UserContext, access_control_list: tuple[str, ...]) -> bool:
    """Return whether an access list contains one of the user's principals. An empty list grants access to
    nobody.
    """
    return not set(principals(user)).isdisjoint(access_control_list)


def readable_databases(user: UserContext, sources: Iterable[DatabaseSource]) -> dict[str, DatabaseSource]:
    """Return the databases that the user may read, by `doc_id`; none if `user.within` restricts the user to
    certain documents.
    """
    return {} if user.within else {one.doc_id: one for one in sources if may_read(user, one.access)}
