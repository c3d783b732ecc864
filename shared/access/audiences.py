"""Whom a person may share a document with: themselves, their groups, department and organisation, everyone.

Names are for people to choose by; only the principal goes into an access list.
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

_MOST = 10  # what a list below a field shows
AudienceKind = Literal["person", "group", "department", "organisation", "everyone"]


class Audience(Model):
    """Somebody whom an access list can name.

    Attributes:
        kind: `person` is the caller.
        principal: the entry of the access list.
        name: what people call them; the principal itself where no name is known.
        detail: what tells them from others with this name, such as a mail address.
    """

    kind: AudienceKind
    principal: str
    name: str
    detail: str = ""


class AudienceList(Model):
    """Whom the caller may share with.

    Attributes:
        audiences: the caller, their groups by name, then the wider ones.
    """

    audiences: tuple[Audience, ...]


async def audiences_of(user: UserContext, directory: GroupDirectory, settings: Settings) -> AudienceList:
    """Of groups those that count for the person; a group without a known name goes by its id.

    The organisation and everyone are left out if the person lacks PUBLISH_ROLE.
    """
    names = await _group_names(user, directory, settings)
    groups = sorted(
        (Audience(kind="group", principal=one, name=names.get(one) or one) for one in user.groups),
        key=lambda group: (group.name.casefold(), group.principal),
    )
    found = [Audience(kind="person", principal=user.user_id, name=user.name or user.user_id), *groups]
    if user.department:
        found.append(Audience(kind="department", principal=user.department, name=user.department))
    if may_publish(user, settings):
        if user.org_id:
            found.append(
                Audience(kind="organisation", principal=f"{ORGANISATION}{user.org_id}", name=user.org_id)
            )
        found.append(Audience(kind="everyone", principal=PUBLIC, name=PUBLIC))
    return AudienceList(audiences=tuple(found))


async def find_audiences(text: str, directory: GroupDirectory) -> AudienceList:
    """Return people and groups of the directory whose name has a word that begins with the text, a few."""
    found = await directory.search(text, _MOST)
    return AudienceList(audiences=tuple(Audience(**dict(entry)) for entry in found))


async def audiences_named(principals: Sequence[str], directory: GroupDirectory) -> AudienceList:
    """Return the people and groups with these ids; those whom the directory doesn't know are left out."""
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
    """Names by id. Nothing depends on them: without the directory the ids are shown."""
    if not user.groups or not settings.host.in_azure:
        return {}  # outside Azure, groups go by their names
    try:
        return await directory.group_names(user.user_id)
    except GroundworkError as failed:
        get_logger().warning("identity.names_failed", error_type=failed.code)
        return {}
