"""Who may publish; and names of groups in access lists become the ids that tokens carry, or are refused.

With `acl=finance` nobody could read a document in Azure, where groups go by object ids. Local tokens carry
groups by the names that access lists use.
"""

import re
from collections.abc import Sequence

from shared.access.audit_trail import is_wide
from shared.access.directory import GroupDirectory
from shared.access.models import UserContext
from shared.platform.concurrency import run_together
from shared.platform.errors import AccessDeniedError, CallerError, GroundworkError
from shared.platform.settings import Settings

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_HINT = (
    "In Azure an access list holds object ids of people and groups, names of groups that the app may look up "
    "in Microsoft Graph (GroupMember.Read.All), your own department, org:<tenant>, or *."
)


async def with_ids(
    principals: Sequence[str], user: UserContext, directory: GroupDirectory, settings: Settings
) -> tuple[str, ...]:
    """The list, each group's name replaced by the group's id; unchanged outside Azure.

    A department is a name too: the user's own stays, and any where DEPARTMENT_CLAIM says that there are some.

    Raises:
        AccessDeniedError: it opens the document to everyone, and the user lacks PUBLISH_ROLE.
        CallerError: a name is that of no group, or of several, or the directory doesn't answer.
    """
    if not may_publish(user, settings) and is_wide(principals):
        raise AccessDeniedError(
            "You may not open a document to the whole organisation or to everyone.",
            "Name people, groups or your department, or ask for the application role "
            f"{settings.identity.publish_role!r}.",
        )
    if not settings.host.in_azure:
        return tuple(principals)

    async def id_of(principal: str) -> str:
        if is_wide([principal]) or _ID.fullmatch(principal) or principal == user.department:
            return principal
        try:
            found = await directory.groups_named(principal)
        except GroundworkError:
            found = frozenset()
        if len(found) == 1:
            return next(iter(found))
        if not found and settings.identity.department_claim:
            return principal
        count = "Several groups have" if found else "No known group has"
        raise CallerError(f"{count} the name {principal[:80]!r}, so access can't be set.", _HINT)

    return tuple(await run_together(*map(id_of, principals)))


def may_publish(user: UserContext, settings: Settings) -> bool:
    """Whether the person may open documents to the organisation or to everyone."""
    role = settings.identity.publish_role
    return not role or role in user.roles
