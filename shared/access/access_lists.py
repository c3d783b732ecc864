"""Validation of access lists: replaces names by directory ids, and checks who may share with everyone.

Azure identifies groups by object id, so `acl=finance` would match no token. A misspelt name would match
nobody, while the owner believes that the document is shared.
"""

import re
from collections.abc import Collection, Sequence

from shared.access.audit_trail import is_wide
from shared.access.directory import GroupDirectory
from shared.access.models import DirectoryEntry, UserContext
from shared.platform.concurrency import run_together
from shared.platform.errors import AccessDeniedError, CallerError, GroundworkError
from shared.platform.settings import Settings

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_HINT = (
    "Name a person or group by id, mail address or name, your own department, org:<organisation>, or *. In "
    "Azure the app looks them up in Microsoft Graph (User.Read.All, GroupMember.Read.All)."
)
_SUGGESTED = 3


async def with_ids(
    principals: Sequence[str],
    user: UserContext,
    directory: GroupDirectory,
    settings: Settings,
    *,
    current: Collection[str] = (),
) -> tuple[str, ...]:
    """Return an access list in which names of people and groups are replaced by their directory ids.

    Outside Azure the list is unchanged unless LOCAL_DIRECTORY lists people. The user's own department is
    always a valid entry; other departments need DEPARTMENT_CLAIM or LOCAL_DIRECTORY.

    Args:
        current: entries of the existing list, which stay valid even if the directory no longer has them.

    Raises:
        AccessDeniedError: the list opens the document to everyone, and the user lacks PUBLISH_ROLE.
        CallerError: an entry matches nobody or several, or is a name while the directory is unavailable.
    """
    if not may_publish(user, settings) and is_wide(principals):
        raise AccessDeniedError(
            "You may not share a document with the whole organisation or with everyone.",
            "Name people, groups or your department, or ask for the application role "
            f"{settings.identity.publish_role!r}.",
        )
    if not settings.host.in_azure and not settings.identity.local_directory:
        return tuple(principals)
    own = {user.user_id, user.department, *user.groups, *current}
    return tuple(await run_together(*(_id_of(one, own, directory, settings) for one in principals)))


async def _id_of(principal: str, own: set[str | None], directory: GroupDirectory, settings: Settings) -> str:
    if is_wide([principal]) or principal in own:
        return principal
    try:
        matches = await directory.resolve(principal)
    except GroundworkError:
        if _ID.fullmatch(principal):
            # Keep the unverified id, because the app may lack permission to query the directory.
            return principal
        matches = ()
    if len(matches) == 1:
        return matches[0].principal
    if not matches and settings.identity.department_claim and not _ID.fullmatch(principal):
        return principal
    count = "Several people or groups have" if matches else "No known person or group has"
    suggestion = _suggestion(matches or await _similar(principal, directory))
    raise CallerError(f"{count} the name {principal[:80]!r}, so access can't be set.", *suggestion, _HINT)


async def _similar(principal: str, directory: GroupDirectory) -> tuple[DirectoryEntry, ...]:
    try:
        return await directory.search(principal.split()[0] if principal.split() else "", _SUGGESTED)
    except GroundworkError:
        return ()


def _suggestion(entries: Sequence[DirectoryEntry]) -> tuple[str, ...]:
    if not entries:
        return ()
    candidates = ", ".join(f"{entry.name} ({entry.principal})" for entry in entries[:_SUGGESTED])
    return (f"Did you mean {candidates}?",)


def may_publish(user: UserContext, settings: Settings) -> bool:
    """Return whether the user may share documents with the whole organisation or with everyone."""
    role = settings.identity.publish_role
    return not role or role in user.roles
