"""The audiences that a person may share a document with: themselves, their groups, department, organisation,
or everyone.

Names help people choose; access lists contain only the principal.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from shared.access.access_lists import may_publish
from shared.access.admission import ORGANISATION
from shared.access.directory import GroupDirectory
from shared.access.models import DirectoryEntry, UserContext
from shared.access.security_filter import PUBLIC
from shared.platform.concurrency import run_together
from shared.platform.errors import GroundworkError
from shared.platform.models import Model
from shared.platform.settings import Settings
from shared.platform.telemetry import get_logger

# Maximum number of entries in a list of suggestions.
_MOST = 10
_LOOKUPS_AT_ONCE = 8  # unmeasured; 50 requests at once could exceed the rate limit of Microsoft Graph
AudienceKind = Literal["person", "group", "department", "organisation", "everyone"]


class Audience(Model):
    """A principal that an access list can contain.

    Attributes:
        kind: `person` is the caller.
        principal: the entry of the access list.
        name: display name; the principal itself if no name is known.
        detail: distinguishes entries with the same name, for example a mail address.
    """

    kind: AudienceKind
    principal: str
    name: str
    detail: str = ""


class AudienceList(Model):
    """Audiences to choose from when sharing a document.

    Attributes:
        audiences: of the caller: themselves, their groups by name, then wider audiences; of a search: people
            first.
    """

    audiences: tuple[Audience, ...]


async def audiences_of(user: UserContext, directory: GroupDirectory, settings: Settings) -> AudienceList:
    """Return the audiences that a user may share a document with. A group without a known name is shown by
    its id.

    The organisation and everyone are omitted if the user lacks PUBLISH_ROLE.
    """
    names = await _group_names(user, directory, settings)
    groups = sorted(
        (Audience(kind="group", principal=one, name=names.get(one) or one) for one in user.groups),
        key=lambda group: (group.name.casefold(), group.principal),
    )
    audiences = [Audience(kind="person", principal=user.user_id, name=user.name or user.user_id), *groups]
    if user.department:
        audiences.append(Audience(kind="department", principal=user.department, name=user.department))
    if may_publish(user, settings):
        if user.org_id:
            audiences.append(
                Audience(kind="organisation", principal=f"{ORGANISATION}{user.org_id}", name=user.org_id)
            )
        audiences.append(Audience(kind="everyone", principal=PUBLIC, name=PUBLIC))
    return AudienceList(audiences=tuple(audiences))


async def find_audiences(text: str, directory: GroupDirectory) -> AudienceList:
    """Search the directory for up to 10 entries with a word that starts with `text`, people first. Groups
    match by name only; people also match by mail address.
    """
    matches = await directory.search(text, _MOST)
    return AudienceList(audiences=tuple(Audience(**dict(entry)) for entry in matches))


async def look_up_audiences(ids: Sequence[str], directory: GroupDirectory) -> AudienceList:
    """Return the directory entries with these ids, in order. At most 8 ids are looked up at once. Unknown ids
    and ids whose lookup fails are left out.
    """
    answers = await run_together(*(_entries(one, directory) for one in ids), at_once=_LOOKUPS_AT_ONCE)
    return AudienceList(audiences=tuple(Audience(**dict(entry)) for entries in answers for entry in entries))


async def _entries(principal: str, directory: GroupDirectory) -> list[DirectoryEntry]:
    try:
        return [entry for entry in await directory.resolve(principal) if entry.principal == principal]
    except GroundworkError:
        return []


async def _group_names(user: UserContext, directory: GroupDirectory, settings: Settings) -> Mapping[str, str]:
    """Return the names of the user's groups by id. The result is empty if the directory fails, because names
    are only for display.
    """
    if not user.groups or not settings.host.in_azure:
        return {}  # outside Azure, a group's id is already its name
    try:
        return await directory.group_names(user.user_id)
    except GroundworkError as failed:
        get_logger().warning("identity.names_failed", error_type=failed.code)
        return {}
