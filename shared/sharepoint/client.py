"""Client of Microsoft Graph and SharePoint REST for reading sites with the app's own identity.

Tokens go only to Graph and to the hosts of the configured libraries: a request with a token follows no
redirect, and links to further pages on other hosts are refused. A download follows exactly one redirect, to
an allowed host and without a token. When either service throttles, all calls of the process pause.

Sources: Graph v1.0 "driveItem: delta", "List permissions", "Download", "JSON batching"; "Avoid getting
throttled or blocked in SharePoint Online".
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote, urljoin, urlsplit

from aiohttp import ClientResponse, ClientSession
from pydantic import ValidationError
from yarl import URL

from shared.platform.calls import (
    Deadline,
    Dependency,
    RateGate,
    azure_errors,
    call_span,
    call_within,
    error_of_status,
    rate_limited,
    retry_after_s,
)
from shared.platform.connections import Connection, Credentials
from shared.platform.errors import DependencyError, NotFoundError, RateLimitError
from shared.platform.http_client import Wire, connect_http, http_errors, not_understood, read_bounded
from shared.sharepoint.graph_models import (
    BatchReplies,
    BatchReply,
    DeltaPage,
    DirectoryObject,
    DirectoryObjects,
    Drive,
    DriveItem,
    DrivePage,
    Permission,
    PermissionPage,
    Site,
    SiteUserPage,
)

SHAREPOINT = Dependency(
    "SharePoint (Microsoft Graph)",
    "SHAREPOINT_LIBRARIES",
    "The app's identity needs Sites.Selected of Microsoft Graph and of SharePoint with full control of each "
    "site, and User.Read.All and GroupMember.Read.All of Microsoft Graph.",
)

BATCH = 20  # requests per batch: the service's limit
PAGE_ITEMS = 100  # items per page of changes; each may cause a download
_CONNECT_TIMEOUT_S = 5.0
_CALL_TIMEOUT_S = 30.0  # one call including retries; the orchestration's timer handles longer pauses
_PIECE_TIMEOUT_S = 30.0  # a megabyte at 280 kbit/s
_RETRIES = 2
_MAX_ANSWER_BYTES = 16_000_000  # 100 items with all their facets take about 300 KB
_MAX_PAGES = 50  # per permission list or group; SharePoint groups have at most 5,000 members
_PIECE_BYTES = 1 << 20
_USER_AGENT = "NONISV|Groundwork|Groundwork/1.0"  # the form that SharePoint's throttling guide asks for
_DELTA = "/".join(("root", "delta"))
_DELTA_HEADERS = {
    "Prefer": "deltashowremovedasdeleted, deltatraversepermissiongaps, deltashowsharingchanges",
}

Answer = TypeVar("Answer", bound=Wire)


class ResyncError(DependencyError):
    """The delta link is no longer valid (HTTP 410); `location` starts a full enumeration."""

    retryable = False

    def __init__(self, location: str | None) -> None:
        super().__init__("SharePoint requires a full enumeration.", "The next step starts one.")
        self.location = location


@dataclass(frozen=True)
class Outcome:
    """The result of one request in a batch: its body, or the status with which it was refused."""

    status: int
    body: Mapping[str, Any] | None = None


def connect_sharepoint() -> Connection[ClientSession]:
    """Return the HTTP session, opened on first use."""
    return connect_http(_CONNECT_TIMEOUT_S, {"User-Agent": _USER_AGENT, "Accept": "application/json"})


def sharepoint_token(credentials: Credentials) -> Callable[[str], Awaitable[str]]:
    """Return a function that gets the app's own token for an origin such as `https://graph.microsoft.com`."""

    async def token(origin: str) -> str:
        with azure_errors(SHAREPOINT):
            return (await credentials.for_directory().get_token(f"{origin}/.default")).token

    return token


class SharePointClient:
    """Reads libraries, changes, permissions, group members and file content."""

    def __init__(
        self,
        connection: Connection[ClientSession],
        token: Callable[[str], Awaitable[str]],
        *,
        graph: str,
        hosts: Sequence[str],
    ) -> None:
        """Create a client.

        Args:
            graph: origin of Microsoft Graph.
            hosts: origins of the synchronised SharePoint sites. Only they and Graph receive tokens.
        """
        self._connection = connection
        self._token = token
        self._graph = graph.rstrip("/")
        self._origins = frozenset(origin.rstrip("/") for origin in hosts)
        self._gate = RateGate()

    async def site(self, address: str) -> Site:
        """Return the site at a URL, or the nearest site above it.

        Raises:
            NotFoundError: there is no such site, or the app has no access to it.
        """
        parts = urlsplit(address)
        return await self._get(self._v1(f"/sites/{parts.netloc}:{quote(parts.path, safe='/%')}"), Site)

    async def drives(self, site_id: str) -> list[Drive]:
        """Return the document libraries of a site."""
        first = self._v1(f"/sites/{site_id}/drives?$select=id,name,driveType,webUrl,owner")
        return [drive for page in await self._pages(first, DrivePage) for drive in page.value]

    async def folder(self, drive_id: str, path: str) -> DriveItem:
        """Return a folder of a library by its path, such as `policies/2026`."""
        return await self._get(self._v1(f"/drives/{drive_id}/root:/{quote(path)}"), DriveItem)

    async def changes(self, drive_id: str, link: str | None) -> DeltaPage:
        """Return a page of changes since a link; None starts a full enumeration.

        Raises:
            ResyncError: the link is no longer valid.
        """
        first = self._v1(f"/drives/{drive_id}/{_DELTA}?$top={PAGE_ITEMS}")
        return await self._get(link or first, DeltaPage, headers=_DELTA_HEADERS)

    async def permissions(
        self, drive_id: str, item_ids: Sequence[str]
    ) -> dict[str, tuple[Permission, ...] | None]:
        """Return the effective permissions of items; None for a list that can't be read."""
        outcomes = await self.batch([f"/drives/{drive_id}/items/{item}/permissions" for item in item_ids])
        lists: dict[str, tuple[Permission, ...] | None] = {}
        for item, outcome in zip(item_ids, outcomes, strict=True):
            lists[item] = await self._permission_list(outcome)
        return lists

    async def _permission_list(self, outcome: Outcome) -> tuple[Permission, ...] | None:
        if outcome.status != 200:
            return None
        try:
            page = PermissionPage.model_validate(outcome.body)
            rest = await self._pages(page.next_link, PermissionPage) if page.next_link else []
        except RateLimitError:
            raise
        except (ValidationError, NotFoundError, DependencyError):
            return None  # one unreadable list must not stop the others
        return tuple(entry for part in (page, *rest) for entry in part.value)

    async def items(self, drive_id: str, item_ids: Sequence[str]) -> dict[str, DriveItem | int]:
        """Return the current state of each item, or the HTTP status, such as 404, if it can't be read."""
        outcomes = await self.batch([f"/drives/{drive_id}/items/{item}" for item in item_ids])
        items: dict[str, DriveItem | int] = {}
        for item_id, outcome in zip(item_ids, outcomes, strict=True):
            try:
                items[item_id] = (
                    DriveItem.model_validate(outcome.body) if outcome.status == 200 else outcome.status
                )
            except ValidationError:
                items[item_id] = 502
        return items

    async def batch(self, addresses: Sequence[str]) -> list[Outcome]:
        """Send GET requests in batches of 20 and return their outcomes in order.

        Throttled members are requested again once the service allows it. A member that fails with 503 or 504
        without asking for a pause is tried three times, because it may be broken permanently.

        Raises:
            RateLimitError: the requested pause exceeds the time limit of a call.
        """
        outcomes: dict[int, Outcome] = {}
        for start in range(0, len(addresses), BATCH):
            places = range(start, min(start + BATCH, len(addresses)))
            deadline = Deadline(_CALL_TIMEOUT_S)
            waiting, tries = list(places), 0
            while waiting:
                requests = {place: addresses[place] for place in waiting}
                replies = await self._send_batch(requests, deadline, is_last=tries >= _RETRIES)
                tries += 1
                outcomes |= {place: reply for place, reply in replies.items() if reply is not None}
                waiting = [place for place in waiting if replies.get(place) is None]
        return [outcomes[place] for place in range(len(addresses))]

    async def _send_batch(
        self, requests: Mapping[int, str], deadline: Deadline, *, is_last: bool
    ) -> dict[int, Outcome | None]:
        """Send one batch. The outcome of a member to repeat is None; its pause closes the gate.

        Args:
            is_last: repeat only members for which the service asks for a pause.
        """
        body = {
            "requests": [{"id": str(place), "method": "GET", "url": url} for place, url in requests.items()]
        }
        replies = await self._get(self._v1("/$batch"), BatchReplies, body=body, deadline=deadline)
        outcomes: dict[int, Outcome | None] = {}
        throttled: list[RateLimitError] = []
        for reply in replies.responses:
            is_overload = reply.status in (503, 504) and (not is_last or _asks_for_pause(reply))
            if reply.status == 429 or is_overload:
                throttled.append(_throttled(reply))
            elif reply.id.isdecimal() and int(reply.id) in requests:
                outcomes[int(reply.id)] = Outcome(reply.status, reply.body)
        if throttled:
            longest = max(throttled, key=lambda error: error.retry_after_s or 0.0)
            self._gate.pause(longest)
        elif outcomes.keys() != requests.keys():
            raise not_understood(SHAREPOINT)
        return {place: outcomes.get(place) for place in requests}

    async def site_group(self, site_url: str, number: str) -> frozenset[str]:
        """Return the claims of a site group's members.

        Raises:
            DependencyError: the group can't be read; NotFoundError if it doesn't exist.
        """
        if not number.isdecimal():
            raise not_understood(SHAREPOINT)
        first = f"{site_url.rstrip('/')}/_api/web/sitegroups/getbyid({number})/users?$select=LoginName"
        pages = await self._pages(first, SiteUserPage)
        return frozenset(user.login_name for page in pages for user in page.value)

    async def owners(self, group_id: str) -> frozenset[str]:
        """Return the object ids of a group's owners."""
        pages = await self._pages(self._v1(f"/groups/{group_id}/owners?$select=id"), DirectoryObjects)
        return frozenset(owner.id.lower() for page in pages for owner in page.value)

    async def user_id(self, login: str) -> str:
        """Return the object id of a user principal name. NotFoundError if the user was deleted."""
        address = self._v1(f"/users/{quote(login, safe='@')}?$select=id")
        return (await self._get(address, DirectoryObject)).id.lower()

    async def content(self, drive_id: str, item_id: str) -> AsyncIterator[bytes]:
        """Yield a file's content in pieces.

        Raises:
            NotFoundError: the file was deleted.
            DependencyError: the file can't be downloaded.
        """
        deadline = Deadline(_CALL_TIMEOUT_S)
        address = self._v1(f"/drives/{drive_id}/items/{item_id}/content")
        location = await call_within(
            deadline, _RETRIES, lambda: self._redirect(address, deadline), gate=self._gate
        )
        async with self._download(location) as response:
            pieces = response.content.iter_chunked(_PIECE_BYTES)
            while True:
                with http_errors(SHAREPOINT):
                    async with asyncio.timeout(_PIECE_TIMEOUT_S):
                        piece = await anext(pieces, b"")
                if not piece:
                    return
                yield piece

    async def _redirect(self, address: str, deadline: Deadline) -> str:
        async with self._request("GET", address, deadline) as response:
            if response.status not in (302, 307):
                raise _error(response)
            location = urljoin(address, response.headers.get("Location", ""))
        if not self._is_download_host(location):
            raise not_understood(SHAREPOINT)
        return location

    def _is_download_host(self, address: str) -> bool:
        parts = urlsplit(address)
        if f"{parts.scheme}://{parts.netloc}" in self._origins:
            return True
        host = parts.hostname or ""
        return parts.scheme == "https" and host.endswith((".sharepoint.com", ".svc.ms"))

    @asynccontextmanager
    async def _download(self, location: str) -> AsyncIterator[ClientResponse]:
        session = await self._connection.opened()
        with http_errors(SHAREPOINT):
            async with asyncio.timeout(_CALL_TIMEOUT_S):
                # The address is signed; a token would be refused.
                response = await session.get(URL(location, encoded=True), allow_redirects=False)
        async with response:
            if response.status != 200:
                raise _error(response)
            yield response

    async def _pages(self, first: str, kind: type[Answer]) -> list[Answer]:
        pages: list[Answer] = []
        address: str | None = first
        while address is not None:
            if len(pages) == _MAX_PAGES:
                raise DependencyError(f"More than {_MAX_PAGES} pages from {SHAREPOINT.name}.")
            page = await self._get(address, kind)
            pages.append(page)
            following: str | None = getattr(page, "next_link", None)
            address = following
        return pages

    async def _get(
        self,
        address: str,
        kind: type[Answer],
        *,
        headers: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        deadline: Deadline | None = None,
    ) -> Answer:
        until = deadline or Deadline(_CALL_TIMEOUT_S)

        async def attempt() -> bytes:
            method = "GET" if body is None else "POST"
            async with self._request(method, address, until, headers=headers, body=body) as response:
                if response.status == 410:
                    raise ResyncError(self._checked(response.headers.get("Location")))
                if response.status != 200:
                    raise _error(response)
                return await read_bounded(
                    response.content.iter_any(), _MAX_ANSWER_BYTES, not_understood(SHAREPOINT)
                )

        with call_span(SHAREPOINT, "read"):
            content = await call_within(until, _RETRIES, attempt, gate=self._gate)
        try:
            return kind.model_validate_json(content)
        except ValidationError:
            raise not_understood(SHAREPOINT) from None

    def _checked(self, link: str | None) -> str | None:
        return link if link and link.startswith(f"{self._graph}/") else None

    @asynccontextmanager
    async def _request(
        self,
        method: str,
        address: str,
        deadline: Deadline,
        *,
        headers: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[ClientResponse]:
        parts = urlsplit(address)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin != self._graph and origin not in self._origins:
            raise not_understood(SHAREPOINT)
        session = await self._connection.opened()
        with http_errors(SHAREPOINT):
            async with asyncio.timeout_at(deadline.at):
                request_headers = {**(headers or {}), "Authorization": f"Bearer {await self._token(origin)}"}
                # Already encoded: quoting a signed link again would invalidate it.
                url = URL(address, encoded=True)
                async with session.request(
                    method, url, headers=request_headers, json=body, allow_redirects=False
                ) as response:
                    yield response

    def _v1(self, path: str) -> str:
        return f"{self._graph}/v1.0{path}"


def _error(response: ClientResponse) -> DependencyError | NotFoundError:
    if response.status == 404:
        return NotFoundError(f"Not found in {SHAREPOINT.name}.")
    # SharePoint reports overload as 503 with a pause, and returns 504 while it lists many changes.
    if response.status in (429, 503) and retry_after_s(response.headers) is not None:
        return rate_limited(SHAREPOINT, response.headers)
    return error_of_status(SHAREPOINT, response.status, response.headers)


def _throttled(reply: BatchReply) -> RateLimitError:
    return rate_limited(SHAREPOINT, _headers_of(reply))


def _asks_for_pause(reply: BatchReply) -> bool:
    return retry_after_s(_headers_of(reply)) is not None


def _headers_of(reply: BatchReply) -> dict[str, str]:
    return {name.lower(): value for name, value in reply.headers.items()}
