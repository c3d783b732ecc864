"""Lookup of people and groups in Microsoft Graph, authenticated as the app, with a cache in memory.

The token is sent only to the configured host: redirects are not followed, and a next page on another host is
refused. Responses are bounded, and either complete or an error.

Source: Microsoft Graph v1.0, "List a user's memberships (direct and transitive)": casting to groups requires
`ConsistencyLevel: eventual` and `$count`; pages of at most 999; application permission GroupMember.Read.All.
"Get user": User.Read.All. "List groups" and "List users" with $search: the same permissions, and
`ConsistencyLevel: eventual`.
"""

# Annotations stay text, so that their types need not be imported at start.
from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar
from urllib.parse import quote

from aiohttp import ClientSession
from pydantic import Field, ValidationError
from yarl import URL

from shared.access.models import DirectoryEntry, DirectoryPerson
from shared.platform.calls import GRAPH as SERVICE
from shared.platform.calls import Deadline, azure_errors, call_span, call_within, error_of_status
from shared.platform.concurrency import run_together
from shared.platform.connections import IDENTITY_SDK, Connection, Credentials
from shared.platform.errors import DependencyError, NotFoundError
from shared.platform.http_client import Wire, connect_http, http_errors, not_understood, read_bounded
from shared.platform.odata import quote as literal
from shared.platform.settings import Settings


class GroupDirectory(Protocol):
    """The organisation's directory of people and groups."""

    async def groups_of(self, user_id: str) -> frozenset[str]:
        """Return the ids of all groups that a person belongs to, directly or through other groups. An
        incomplete list is never returned.

        Raises:
            NotFoundError: the directory has no such person.
            DependencyError: the directory failed or refused the app.
        """

    async def person(self, user_id: str) -> DirectoryPerson:
        """Return a person's directory record. Raises the same errors as `groups_of`."""

    async def group_names(self, user_id: str) -> Mapping[str, str]:
        """Return the display names of a person's groups by id. Raises the same errors as `groups_of`."""

    async def resolve(self, text: str) -> tuple[DirectoryEntry, ...]:
        """Find the entries that `text` identifies exactly: by id, by display name or, in some directories, by
        the mail address of a person. More than one entry means that the text is ambiguous.

        Raises:
            DependencyError: the directory failed or refused the app.
        """

    async def search(self, text: str, most: int) -> tuple[DirectoryEntry, ...]:
        """Search for up to `most` entries with a word that starts with `text`, people first. Names always
        match; some directories also match mail addresses or ids. Raises the same errors as `resolve`.
        """


UNKNOWN_KEPT_S = 15.0  # short, because people may retry right after being added to the directory
# Maximum number of group ids of all cached people, about 12 MB.
MAX_GROUPS = 100_000
MAX_PEOPLE = 10_000
Value = TypeVar("Value")
Clock = Callable[[], float]


@dataclass(frozen=True)
class _CachedRecord(Generic[Value]):
    """A cached directory record that expires at `until`. A `value` of None means that the directory has no
    such person.
    """

    value: Value | None
    until: float
    weight: int


class CachedDirectory:
    """A directory that caches the records of another directory. Searches are not cached."""

    def __init__(self, directory: GroupDirectory, kept_s: float, clock: Clock = time.monotonic) -> None:
        """Cache the records of `directory`.

        Args:
            kept_s: lifetime of cached records in seconds; a removed membership stays effective as long.
            clock: returns monotonic seconds.
        """
        self.groups_of = _RecordCache(directory.groups_of, len, kept_s, MAX_GROUPS, clock).get
        self.group_names = _RecordCache(directory.group_names, len, kept_s, MAX_GROUPS, clock).get
        self.person = _RecordCache(directory.person, lambda _: 1, kept_s, MAX_PEOPLE, clock).get
        self.resolve = directory.resolve  # not cached, because access lists are rarely changed
        self.search = directory.search


class _RecordCache(Generic[Value]):
    """An LRU cache of directory records by user id, bounded by their total weight."""

    def __init__(
        self,
        ask: Callable[[str], Awaitable[Value]],
        weigh: Callable[[Value], int],
        kept_s: float,
        most: int,
        clock: Clock,
    ) -> None:
        self._load = ask
        self._weigh = weigh
        self._kept_s = kept_s
        self._most = most
        self._clock = clock
        self._kept: OrderedDict[str, _CachedRecord[Value]] = OrderedDict()
        self._weight = 0
        self._requests: dict[str, asyncio.Task[Value | None]] = {}

    async def get(self, user_id: str) -> Value:
        """Return the cached record of a person, or fetch it. Concurrent calls for one person share a
        request.
        """
        entry = self._kept.get(user_id)
        if entry is not None and self._clock() < entry.until:
            self._kept.move_to_end(user_id)
            value = entry.value
        else:
            if user_id not in self._requests:
                self._requests[user_id] = asyncio.create_task(self._fetch(user_id))
                self._requests[user_id].add_done_callback(lambda done: self._on_done(user_id, done))
            # A cancelled caller must not cancel the request for the others.
            value = await asyncio.shield(self._requests[user_id])
        if value is None:
            raise NotFoundError("The directory has no such person.")
        return value

    async def _fetch(self, user_id: str) -> Value | None:
        began = self._clock()
        try:
            value = await self._load(user_id)
        except NotFoundError:
            self._keep(user_id, _CachedRecord(None, began + min(UNKNOWN_KEPT_S, self._kept_s), 1))
            return None
        self._keep(user_id, _CachedRecord(value, began + self._kept_s, 1 + self._weigh(value)))
        return value

    def _on_done(self, user_id: str, done: asyncio.Task[Value | None]) -> None:
        self._requests.pop(user_id, None)
        if not done.cancelled():
            done.exception()  # mark the exception as retrieved, because all callers may have been cancelled

    def _keep(self, user_id: str, entry: _CachedRecord[Value]) -> None:
        before = self._kept.pop(user_id, None)
        self._weight += entry.weight - (before.weight if before else 0)
        self._kept[user_id] = entry
        while self._weight > self._most and self._kept:
            _, oldest = self._kept.popitem(last=False)
            self._weight -= oldest.weight


_CONNECT_TIMEOUT_S = 3
_RETRIES = 2
# Pages read per person: about 12,000 groups. More in one filter would overload the search service.
MAX_PAGES = 12
MAX_ANSWER_BYTES = 2_000_000  # a page of 999 groups has about 390 KB with names
_USER_ID = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE
)  # safe to insert into a URL
_MEMBERSHIPS = "transitiveMemberOf/microsoft.graph.group?$top=999&$count=true&$select="
_PERSON = "$select=userType,department,displayName"
_ENTRY_FIELDS = "$select=id,displayName,mail"
Token = Callable[[], Awaitable[str]]


class _Member(Wire):
    id: str
    display_name: str | None = Field(default=None, alias="displayName")
    mail: str | None = None


class _Members(Wire):
    value: tuple[_Member, ...]
    next_link: str | None = Field(default=None, alias="@odata.nextLink")


class _Person(Wire):
    user_type: str | None = Field(default=None, alias="userType")
    department: str | None = None
    display_name: str | None = Field(default=None, alias="displayName")


Answer = TypeVar("Answer", bound=Wire)


def connect_graph() -> Connection[ClientSession]:
    """Return a connection to Microsoft Graph. The session is opened, and aiohttp and azure-identity are
    imported, on first use.
    """
    headers = {"ConsistencyLevel": "eventual", "Accept": "application/json"}
    return connect_http(_CONNECT_TIMEOUT_S, headers, IDENTITY_SDK)


def graph_token(settings: Settings, credentials: Credentials) -> Token:
    """Return a function that gets the app's access token for Graph. azure-identity caches the token until
    shortly before it expires.
    """
    scope = f"{settings.identity.graph_endpoint.rstrip('/')}/.default"

    async def token() -> str:
        with azure_errors(SERVICE):
            return (await credentials.for_directory().get_token(scope)).token

    return token


class GraphDirectory(GroupDirectory):
    """A directory backed by Microsoft Graph."""

    def __init__(
        self, connection: Connection[ClientSession], token: Token, endpoint: str, timeout_s: float
    ) -> None:
        """Send requests over `connection`. `timeout_s` limits each lookup as a whole, including its token,
        pages and retries.
        """
        self._connection = connection
        self._token = token
        self._base = f"{endpoint.rstrip('/')}/v1.0/"
        self._timeout_s = timeout_s

    async def groups_of(self, user_id: str) -> frozenset[str]:
        """Return the ids of the groups that a person belongs to, directly or through other groups.

        Raises:
            DependencyError: Graph failed or refused the app, or lists more than about 12,000 groups.
        """
        return frozenset(member.id for member in await self._memberships(user_id, "id"))

    async def group_names(self, user_id: str) -> Mapping[str, str]:
        """Return the display names of a person's groups by id. A missing name is replaced by the id. Raises
        the same errors as `groups_of`.
        """
        members = await self._memberships(user_id, "id,displayName")
        return {member.id: member.display_name or member.id for member in members}

    async def _memberships(self, user_id: str, fields: str) -> list[_Member]:
        deadline = Deadline(self._timeout_s)
        address = f"{self._user(user_id)}/{_MEMBERSHIPS}{fields}"
        groups: list[_Member] = []
        for _ in range(MAX_PAGES):
            page = await self._read(address, _Members, deadline)
            groups += page.value
            if page.next_link is None:
                return groups
            address = page.next_link
            if not address.startswith(self._base):
                raise not_understood(SERVICE)
        raise DependencyError(
            f"You belong to more than {len(groups)} groups, more than the app can use.",
            "Leave some groups, or ask the operator for help.",
        )

    async def person(self, user_id: str) -> DirectoryPerson:
        """Return a person's directory record. A person counts as a guest unless Graph reports them as a
        member.
        """
        record = await self._read(f"{self._user(user_id)}?{_PERSON}", _Person, Deadline(self._timeout_s))
        return DirectoryPerson(
            is_guest=record.user_type != "Member", department=record.department, name=record.display_name
        )

    async def resolve(self, text: str) -> tuple[DirectoryEntry, ...]:
        """Find the person or group with this id. If `text` isn't an id, find groups by display name, and
        people by display name, mail address or user principal name: at most two of each.
        """
        deadline = Deadline(self._timeout_s)
        if _USER_ID.fullmatch(text):
            return await self._find_by_id(text, deadline)
        same = literal(text)
        by_name = quote(f"displayName eq {same}", safe="")
        by_mail = quote(f"mail eq {same} or userPrincipalName eq {same} or displayName eq {same}", safe="")
        groups, people = await run_together(
            self._list("group", f"groups?$filter={by_name}&{_ENTRY_FIELDS}&$top=2", deadline),
            self._list("person", f"users?$filter={by_mail}&{_ENTRY_FIELDS}&$top=2", deadline),
        )
        return (*groups, *people)

    async def search(self, text: str, most: int) -> tuple[DirectoryEntry, ...]:
        """Search for up to `most` people and groups, people first, with a word that starts with `text`.
        Groups match by display name only; people also match by mail address.
        """
        deadline = Deadline(self._timeout_s)
        words = text.replace("\\", " ").replace('"', " ")
        by_name = quote(f'"displayName:{words}"', safe="")
        by_mail = quote(f'"displayName:{words}" OR "mail:{words}"', safe="")
        people, groups = await run_together(
            self._list("person", f"users?$search={by_mail}&{_ENTRY_FIELDS}&$top={most}", deadline),
            self._list("group", f"groups?$search={by_name}&{_ENTRY_FIELDS}&$top={most}", deadline),
        )
        return (*people, *groups)[:most]

    async def _find_by_id(self, object_id: str, deadline: Deadline) -> tuple[DirectoryEntry, ...]:
        paths: tuple[tuple[Literal["person", "group"], str], ...] = (("person", "users"), ("group", "groups"))
        for kind, path in paths:
            try:
                member = await self._read(
                    f"{self._base}{path}/{object_id}?{_ENTRY_FIELDS}", _Member, deadline
                )
            except NotFoundError:
                continue
            return (_entry(kind, member),)
        return ()

    async def _list(
        self, kind: Literal["person", "group"], path: str, deadline: Deadline
    ) -> tuple[DirectoryEntry, ...]:
        page = await self._read(f"{self._base}{path}", _Members, deadline)
        return tuple(_entry(kind, member) for member in page.value)

    def _user(self, user_id: str) -> str:
        if not _USER_ID.fullmatch(user_id):
            raise _no_such_person()
        return f"{self._base}users/{user_id}"

    async def _read(self, address: str, kind: type[Answer], deadline: Deadline) -> Answer:
        with call_span(SERVICE, "read"):
            content = await call_within(deadline, _RETRIES, lambda: self._get(address, deadline))
        try:
            return kind.model_validate_json(content)
        except ValidationError:
            raise not_understood(SERVICE) from None

    async def _get(self, address: str, deadline: Deadline) -> bytes:
        with http_errors(SERVICE):
            async with asyncio.timeout_at(deadline.at):
                session = await self._connection.opened()

                headers = {"Authorization": f"Bearer {await self._token()}"}
                # Graph's next-page URLs are already encoded. Encoding one again would corrupt its skip token.
                url = URL(address, encoded=True)
                async with session.get(url, headers=headers, allow_redirects=False) as response:
                    if response.status == 404:
                        raise _no_such_person()
                    if response.status != 200:
                        raise error_of_status(SERVICE, response.status, response.headers)
                    return await read_bounded(
                        response.content.iter_any(), MAX_ANSWER_BYTES, not_understood(SERVICE)
                    )


def _entry(kind: Literal["person", "group"], member: _Member) -> DirectoryEntry:
    name = member.display_name or member.mail or member.id
    return DirectoryEntry(kind=kind, principal=member.id, name=name, detail=member.mail or "")


def _no_such_person() -> NotFoundError:
    return NotFoundError(f"{SERVICE.name[0].upper()}{SERVICE.name[1:]} has no such person.")
