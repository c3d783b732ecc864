"""`GroupDirectory` over Microsoft Graph, asked as the app itself.

The token goes to the one host that is configured: no redirect is followed, and a next page that lies
elsewhere is refused. What comes back is bounded, and is whole or an error.

Source: Microsoft Graph v1.0, "List a user's memberships (direct and transitive)": casting to groups wants
`ConsistencyLevel: eventual` and `$count`; pages of 999 at most; application permission GroupMember.Read.All.
"Get user": User.Read.All.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from pydantic import Field, ValidationError

from shared.clients.calling import call_span
from shared.clients.connection import Connection
from shared.clients.credentials import Credentials
from shared.clients.dependency import GRAPH as SERVICE
from shared.clients.documents_wire import Wire, http_errors, not_understood
from shared.clients.retrying import Deadline, call_within
from shared.clients.translate import azure_errors, failed, rate_limited, refused
from shared.errors import DependencyError, NotFoundError
from shared.models.identity import DirectoryPerson
from shared.ports import GroupDirectory
from shared.settings import Settings

if TYPE_CHECKING:
    from aiohttp import ClientSession

_CONNECT_TIMEOUT_S = 3
_RETRIES = 2
MAX_PAGES = 12  # some 12,000 groups; a person in more is a mistake, or an attack on the search service
MAX_ANSWER_BYTES = 2_000_000  # a page of 999 ids has some 130 KB
_USER_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)  # goes into an address
_QUERY = "$select=id&$top=999&$count=true"
_PERSON = "$select=userType,department,displayName"

Token = Callable[[], Awaitable[str]]


class _Member(Wire):
    id: str


class _Members(Wire):
    value: tuple[_Member, ...]
    next_link: str | None = Field(default=None, alias="@odata.nextLink")


class _Person(Wire):
    user_type: str | None = Field(default=None, alias="userType")
    department: str | None = None
    display_name: str | None = Field(default=None, alias="displayName")


Answer = TypeVar("Answer", bound=Wire)


def connect_graph() -> "Connection[ClientSession]":
    """The HTTP session; it is made, and aiohttp and azure-identity imported, on first use."""

    def make() -> "ClientSession":
        from aiohttp import ClientSession, ClientTimeout, DummyCookieJar

        return ClientSession(
            headers={"ConsistencyLevel": "eventual", "Accept": "application/json"},
            timeout=ClientTimeout(total=None, connect=_CONNECT_TIMEOUT_S),  # each call has its deadline
            cookie_jar=DummyCookieJar(),
        )

    return Connection(make, ("aiohttp", "azure.identity.aio"))


def graph_token(settings: Settings, credentials: Credentials) -> Token:
    """The app's own token for Graph; azure-identity keeps it until it is about to end."""
    scope = f"{settings.graph_endpoint.rstrip('/')}/.default"

    async def token() -> str:
        with azure_errors(SERVICE):
            return (await credentials.for_directory().get_token(scope)).token

    return token


class GraphDirectory(GroupDirectory):
    """One Microsoft Graph."""

    def __init__(
        self, connection: "Connection[ClientSession]", token: Token, endpoint: str, timeout_s: float
    ) -> None:
        """`timeout_s` limits one question with all its pages and tries, the token included."""
        self._connection = connection
        self._token = token
        self._base = f"{endpoint.rstrip('/')}/v1.0/"
        self._timeout_s = timeout_s

    async def groups_of(self, user_id: str) -> frozenset[str]:
        """All groups, security groups and Microsoft 365 groups alike.

        Raises:
            DependencyError: also where there are more than some 12,000.
        """
        deadline = Deadline(self._timeout_s)
        address = f"{self._user(user_id)}/transitiveMemberOf/microsoft.graph.group?{_QUERY}"
        groups: set[str] = set()
        for _ in range(MAX_PAGES):
            page = await self._read(address, _Members, deadline)
            groups.update(member.id for member in page.value)
            if page.next_link is None:
                return frozenset(groups)
            address = page.next_link
            if not address.startswith(self._base):
                raise not_understood(SERVICE)
        raise DependencyError(
            f"More than {len(groups)} groups come from {SERVICE.name}.", "Leave some, or ask the operator."
        )

    async def person(self, user_id: str) -> DirectoryPerson:
        """Who is no member for certain is a guest."""
        found = await self._read(f"{self._user(user_id)}?{_PERSON}", _Person, Deadline(self._timeout_s))
        return DirectoryPerson(
            is_guest=found.user_type != "Member", department=found.department, name=found.display_name
        )

    def _user(self, user_id: str) -> str:
        if not _USER_ID.fullmatch(user_id):
            raise _no_such_person()
        return f"{self._base}users/{user_id}"

    async def _read(self, address: str, kind: type[Answer], deadline: Deadline) -> Answer:
        with call_span(SERVICE, "read"):
            content = await call_within(deadline, _RETRIES, lambda: self._got(address, deadline))
        try:
            return kind.model_validate_json(content)
        except ValidationError:
            raise not_understood(SERVICE) from None

    async def _got(self, address: str, deadline: Deadline) -> bytes:
        with http_errors(SERVICE):
            async with asyncio.timeout_at(deadline.at):
                session = await self._connection.opened()
                from yarl import URL  # comes with aiohttp

                headers = {"Authorization": f"Bearer {await self._token()}"}
                # As it is: the service signs the address of a next page, and quoting would change it.
                url = URL(address, encoded=True)
                async with session.get(url, headers=headers, allow_redirects=False) as response:
                    _check(response.status, response.headers)
                    return await _bounded(response.content.iter_any())


async def _bounded(parts: AsyncIterator[bytes]) -> bytes:
    answer = bytearray()
    async for part in parts:
        answer += part
        if len(answer) > MAX_ANSWER_BYTES:
            raise not_understood(SERVICE)
    return bytes(answer)


def _check(status: int, headers: Mapping[str, str]) -> None:
    if status == 200:
        return
    if status == 404:
        raise _no_such_person()
    if status in (401, 403):
        raise refused(SERVICE)
    if status == 429:
        raise rate_limited(SERVICE, headers)
    raise failed(SERVICE, status)


def _no_such_person() -> NotFoundError:
    return NotFoundError(f"{SERVICE.name[0].upper()}{SERVICE.name[1:]} knows no such person.")
