"""Members of the groups and logins in permission lists, each read once per step."""

from collections.abc import Awaitable, Callable, Iterable

from shared.platform.concurrency import run_together
from shared.platform.errors import DependencyError, NotFoundError, RateLimitError
from shared.sharepoint.client import SharePointClient
from shared.sharepoint.grants import EVERYONE, Grants, Rosters, grants_of_claim

Members = frozenset[str] | None


class RosterBook:
    """Members of the groups of one site. An unreadable group is `None`; a deleted group or user has no
    members.
    """

    def __init__(self, client: SharePointClient, site_url: str) -> None:
        self._client = client
        self._site_url = site_url
        self._site_groups: dict[str, Members] = {}
        self._owners: dict[str, Members] = {}
        self._users: dict[str, Members] = {}

    async def resolve(self, grants: Grants) -> Rosters:
        """Return the members of all groups and logins in the grants.

        Raises:
            RateLimitError: the requested pause exceeds the time limit of a call.
        """
        await self._read(grants.site_groups, self._site_groups, self._site_group)
        await self._read(grants.owned_groups, self._owners, self._client.owners)
        await self._read(grants.logins, self._users, self._user)
        return Rosters(self._site_groups, self._owners, self._users)

    async def _read(
        self,
        names: Iterable[str],
        cache: dict[str, Members],
        read: Callable[[str], Awaitable[Members]],
    ) -> None:
        missing = [name for name in names if name not in cache]
        members = await run_together(*(_members(name, read) for name in missing), at_once=4)
        cache.update(zip(missing, members, strict=True))

    async def _site_group(self, number: str) -> Members:
        """Return the principals of a site group. Groups inside it are Entra groups, never site groups."""
        claims = await self._client.site_group(self._site_url, number)
        grants = Grants()
        for claim in claims:
            grants |= grants_of_claim(claim)
        await self._read(grants.owned_groups, self._owners, self._client.owners)
        await self._read(grants.logins, self._users, self._user)
        members = set(grants.principals)
        for names, rosters in ((grants.owned_groups, self._owners), (grants.logins, self._users)):
            for name in names:
                roster = rosters[name]
                if roster is None:
                    return None
                members |= roster
        return frozenset(members | ({EVERYONE} if grants.everyone else set()))

    async def _user(self, login: str) -> Members:
        return frozenset({await self._client.user_id(login)})


async def _members(name: str, read: Callable[[str], Awaitable[Members]]) -> Members:
    try:
        return await read(name)
    except NotFoundError:
        return frozenset()  # a deleted group or user that permission lists still name
    except RateLimitError:
        raise
    except DependencyError:
        return None
