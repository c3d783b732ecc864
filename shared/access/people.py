"""Today's usage per person, for administrators, either of people who match a search or of recently active
people.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from pydantic import Field

from shared.access.audiences import find_audiences, look_up_audiences
from shared.access.audit_trail import AuditFilter, AuditTrail
from shared.access.daily_use import UsageView
from shared.access.directory import GroupDirectory
from shared.access.limits import use_of_today
from shared.access.user_limit_store import UserLimitStore
from shared.platform.concurrency import run_together
from shared.platform.models import Model
from shared.platform.settings import Settings

# Maximum number of people in a response. The stored usage of each is read separately.
_MOST = 50
_ACTIVE = timedelta(hours=24)
# Number of audit pages to read, 500 entries each. They contain 50 people unless a program generated most of
# the entries.
_PAGES = 5
_PAGE = 500


class PersonUse(Model):
    """A person with today's usage of each resource."""

    user_id: str = Field(description="Id of the person.")
    name: str = Field(description="Display name, or the id if the directory doesn't know the person.")
    detail: str = Field(default="", description="Mail address or department; empty if unknown.")
    today: tuple[UsageView, ...] = Field(
        description="Usage since midnight UTC and daily limit of each resource."
    )


class PersonList(Model):
    """People with today's usage."""

    people: tuple[PersonUse, ...] = Field(description="At most 50 people, sorted by name.")


async def search_people(
    text: str, directory: GroupDirectory, settings: Settings, limits: UserLimitStore
) -> PersonList:
    """Return today's usage of people whose name or mail address has a word that starts with `text`. At most
    10 people are returned.
    """
    audiences = (await find_audiences(text, directory)).audiences
    people = [(one.principal, one.name, one.detail) for one in audiences if one.kind == "person"]
    return await _with_use(people, settings, limits)


async def list_active_people(
    trail: AuditTrail, directory: GroupDirectory, settings: Settings, limits: UserLimitStore
) -> PersonList:
    """Return today's usage of up to 50 people with an audit entry from the last 24 hours. Only the newest
    2,500 entries are read.
    """
    ids = await _active_ids(trail)
    entries = {one.principal: one for one in (await look_up_audiences(ids, directory)).audiences}
    people = [
        (user_id, entries[user_id].name, entries[user_id].detail)
        if user_id in entries
        else (user_id, user_id, "")
        for user_id in ids
    ]
    return await _with_use(people, settings, limits)


async def _active_ids(trail: AuditTrail) -> list[str]:
    until = datetime.now(UTC) + timedelta(seconds=1)
    query, ids, cursor = AuditFilter(until - _ACTIVE, until), dict[str, None](), ""
    for _ in range(_PAGES):
        page = await trail.page(query, _PAGE, cursor)
        ids |= dict.fromkeys(entry.user_id for entry in page.entries)
        cursor = page.cursor or ""
        if not cursor or len(ids) >= _MOST:
            break
    return list(ids)[:_MOST]


async def _with_use(
    identities: Sequence[tuple[str, str, str]], settings: Settings, limits: UserLimitStore
) -> PersonList:
    """Return today's usage of the given people, sorted by name. `identities` contains (user id, name,
    detail).
    """
    use = await run_together(*(use_of_today(user_id, settings, limits) for user_id, _, _ in identities))
    people = [
        PersonUse(user_id=user_id, name=name, detail=detail, today=today)
        for (user_id, name, detail), today in zip(identities, use, strict=True)
    ]
    return PersonList(people=tuple(sorted(people, key=lambda one: (one.name.casefold(), one.user_id))))
