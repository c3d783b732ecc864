"""Audiences with whom a person may share a document: themselves, their groups, department, organisation or
everyone.

Names help people choose; access lists contain only the principal.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Literal

from shared.access.access_lists import may_publish
from shared.access.admission import ORGANISATION
from shared.access.directory import GroupDirectory
from shared.access.models import UserContext
from shared.access.security_filter import PUBLIC
from shared.platform.errors import GroundworkError
from shared.platform.models import Model
from shared.platform.settings import Settings
from shared.platform.telemetry import get_logger

_MOST = 10  # length of a suggestion list
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
    """The audiences offered to the caller.

    Attributes:
        audiences: the caller, their groups by name, then the wider audiences.
    """

    audiences: tuple[Audience, ...]


async def audiences_of(user: UserContext, directory: GroupDirectory, settings: Settings) -> AudienceList:
    """Return the caller's audiences. A group without a known name is shown by its id.

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
    """Return up to 10 directory entries with a word that starts with `text`, people first."""
    matches = await directory.search(text, _MOST)
    return AudienceList(audiences=tuple(Audience(**dict(entry)) for entry in matches))


async def audiences_named(principals: Sequence[str], directory: GroupDirectory) -> AudienceList:
    """Return the directory entries with these ids. Unknown ids and failed lookups are omitted."""
    answers = await asyncio.gather(*map(directory.named, principals), return_exceptions=True)
    entries = [
        entry
        for principal, answer in zip(principals, answers, strict=True)
        if not isinstance(answer, BaseException)
        for entry in answer
        if entry.principal == principal
    ]
    return AudienceList(audiences=tuple(Audience(**dict(entry)) for entry in entries))


async def _group_names(user: UserContext, directory: GroupDirectory, settings: Settings) -> Mapping[str, str]:
    """Return group names by id; empty if the directory fails, because names are only for display."""
    if not user.groups or not settings.host.in_azure:
        return {}  # outside Azure, a group's id is its name
    try:
        return await directory.group_names(user.user_id)
    except GroundworkError as failed:
        get_logger().warning("identity.names_failed", error_type=failed.code)
        return {}
