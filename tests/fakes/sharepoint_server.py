"""A Microsoft 365 tenant over HTTP: the parts of Graph and SharePoint REST that the synchronisation reads.

As in reality, there are two origins with separate audiences: SharePoint rejects a token for Graph. The delta
may omit changes of permissions, and tests can replace any response with a fault.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tests.fakes.graph_server import IDENTITY_HEADER, error_answer
from tests.http_server import Answer, HttpServer, Request, json_answer

TENANT = "72f988bf-86f1-41af-91ab-2d7cd011db47"
Entry = dict[str, Any]
"""A permission as Graph writes it."""


@dataclass(frozen=True)
class Fault:
    """A response that replaces the regular one for the next `times` requests whose URL contains `to`."""

    to: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    times: int = 1


@dataclass
class FakeItem:
    """A file or folder. If `permissions` is None, it inherits the permissions of its parent."""

    item_id: str
    name: str
    parent_id: str | None
    content: bytes | None = None  # None for a folder
    permissions: list[Entry] | None = None
    version: int = 1
    has_hash: bool = True
    facets: Entry = field(default_factory=dict)


@dataclass
class FakeDrive:
    """A library with the log of its changes."""

    drive_id: str
    site: str
    name: str
    drive_type: str = "documentLibrary"
    owner: str | None = None
    items: dict[str, FakeItem] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    oldest_token: int = 0  # requests with older tokens get a 410

    @property
    def root_id(self) -> str:
        return f"{self.drive_id}-root"


class SharePointServer:
    """The server of a tenant. It is a context manager."""

    def __init__(self) -> None:
        self.users: dict[str, str] = {}  # user principal name -> object id
        self.groups: dict[str, set[str]] = {}  # object id -> members
        self.group_owners: dict[str, set[str]] = {}
        self.site_groups: dict[tuple[str, str], list[str]] = {}  # site path, number -> claims
        self.drives: dict[str, FakeDrive] = {}
        self.faults: list[Fault] = []
        self.page_size = 100
        self.requests: list[str] = []
        self.leaks: list[str] = []  # tokens that were sent to the wrong server
        self.on_request: Callable[[str], None] = lambda _: None
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)
        self._tickets: dict[str, tuple[bytes, float]] = {}
        self.ticket_seconds = 60.0
        self._graph = HttpServer(self._answer_graph)
        self._sites = HttpServer(self._answer_site)

    # Contents of the tenant

    def drive(
        self,
        name: str = "Documents",
        *,
        site: str = "/sites/hr",
        kind: str = "documentLibrary",
        owner: str = "",
    ) -> FakeDrive:
        """Add a library whose root folder has no readers."""
        drive = FakeDrive(f"drive{len(self.drives)}", site, name, kind, owner or None)
        drive.items[drive.root_id] = FakeItem(drive.root_id, "root", None, permissions=[])
        drive.log.append(drive.root_id)
        self.drives[drive.drive_id] = drive
        return drive

    def folder(
        self, drive: FakeDrive, name: str, parent: str = "", permissions: list[Entry] | None = None
    ) -> str:
        """Add a folder and return its id."""
        return self._add(drive, FakeItem("", name, parent or drive.root_id, permissions=permissions))

    def file(
        self,
        drive: FakeDrive,
        name: str,
        content: bytes = b"# Notes\n\nText.",
        parent: str = "",
        permissions: list[Entry] | None = None,
        **facets: Any,
    ) -> str:
        """Add a file and return its id."""
        item = FakeItem("", name, parent or drive.root_id, content, permissions, facets=facets)
        return self._add(drive, item)

    def _add(self, drive: FakeDrive, item: FakeItem) -> str:
        item.item_id = f"{drive.drive_id}-{len(drive.log)}-{item.name[:8]}".replace(" ", "")
        drive.items[item.item_id] = item
        self.touch(drive, item.item_id)
        return item.item_id

    def touch(self, drive: FakeDrive, item_id: str) -> None:
        """Report an item in the next delta response."""
        drive.log.append(item_id)

    def share(
        self, drive: FakeDrive, item_id: str, permissions: list[Entry] | None, *, reported: bool = True
    ) -> None:
        """Set an item's own permissions. If `reported` is False, the delta response doesn't contain the
        change.
        """
        drive.items[item_id].permissions = permissions
        if reported:
            self.touch(drive, item_id)

    def write(self, drive: FakeDrive, item_id: str, content: bytes) -> None:
        """Replace a file's content."""
        item = drive.items[item_id]
        item.content, item.version = content, item.version + 1
        self.touch(drive, item_id)

    def rename(self, drive: FakeDrive, item_id: str, name: str) -> None:
        """Rename an item. The delta response doesn't contain its descendants."""
        item = drive.items[item_id]
        item.name, item.version = name, item.version + 1
        self.touch(drive, item_id)

    def move(self, drive: FakeDrive, item_id: str, parent: str) -> None:
        """Move an item. The delta response doesn't contain its descendants."""
        drive.items[item_id].parent_id = parent
        self.touch(drive, item_id)

    def delete(self, drive: FakeDrive, item_id: str, *, reported: bool = True) -> None:
        """Delete an item with its descendants. The delta response contains only the item."""
        for child in [one.item_id for one in drive.items.values() if one.parent_id == item_id]:
            self.delete(drive, child, reported=False)
        del drive.items[item_id]
        if reported:
            self.touch(drive, item_id)

    def readers(self, drive: FakeDrive, item_id: str) -> set[str]:
        """Return the people to whom SharePoint grants access. This uses no code of the app."""
        people: set[str] = {drive.owner} if drive.owner else set()
        for entry in self._effective(drive, item_id):
            if not {"read", "write", "owner"} & set(entry.get("roles", ())):
                continue
            if (end := entry.get("expirationDateTime")) and _is_past(end, self.clock()):
                continue
            link = entry.get("link")
            if link and link["scope"] != "users":
                continue
            for identities in [entry.get("grantedToV2"), *entry.get("grantedToIdentitiesV2", [])]:
                people |= self._people(drive, identities or {})
        return people

    def _people(self, drive: FakeDrive, identities: Mapping[str, Any]) -> set[str]:
        claim = identities.get("siteUser", {}).get("loginName", "")
        if claim and (claim.endswith("_o") or "spo-grid" in claim or "(.s" in claim):
            return self._of_claim(claim)
        if "user" in identities:
            return {identities["user"]["id"]}
        if "group" in identities:
            return set(self.groups.get(identities["group"]["id"], ()))
        if "siteGroup" in identities:
            group = identities["siteGroup"]
            if group.get("displayName", "").startswith("SharingLinks."):
                return set()
            claims = self.site_groups.get((drive.site, group["id"]), [])
            return {person for one in claims for person in self._of_claim(one)}
        return self._of_claim(claim)

    def _of_claim(self, claim: str) -> set[str]:
        last = claim.rpartition("|")[2]
        if "membership" in claim:
            return {self.users[last]} if last in self.users else set()
        if "spo-grid" in claim or claim == "c:0(.s|true":
            return set(self.users.values())
        if last.endswith("_o"):
            return set(self.group_owners.get(last.removesuffix("_o"), ()))
        return set(self.groups.get(last, ()))

    def _effective(self, drive: FakeDrive, item_id: str) -> list[Entry]:
        item = drive.items[item_id]
        while item.permissions is None and item.parent_id is not None:
            item = drive.items[item.parent_id]
        return item.permissions or []

    # URLs and settings

    @property
    def graph(self) -> str:
        return self._graph.url

    @property
    def host(self) -> str:
        """The origin of the SharePoint host."""
        return self._sites.url

    def settings(self, *addresses: str) -> dict[str, Any]:
        """The app settings for this tenant."""
        return {
            "GRAPH_ENDPOINT": self.graph,
            "SHAREPOINT_LIBRARIES": ",".join(self.host + address for address in addresses),
            "ALLOWED_TENANTS": TENANT,
        }

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables with which the app's identity gets its tokens, as on App Service."""
        return {"IDENTITY_ENDPOINT": f"{self.graph}/msi/token", "IDENTITY_HEADER": IDENTITY_HEADER}

    async def token(self, origin: str) -> str:
        """Return a token for an origin, without a request to the identity endpoint."""
        return f"token-for-{origin}"

    # Responses

    def _answer_graph(self, request: Request) -> Answer:
        target, headers = request.target, request.headers
        path = urlsplit(target).path
        query = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
        if path == "/msi/token":
            return self._give_token(query, headers)
        if headers.get("Authorization") != f"Bearer token-for-{self.graph}":
            return error_answer(401, "InvalidAuthenticationToken")
        if request.method == "POST" and path == "/v1.0/$batch":
            self.requests.append(target)
            return self._fault(target) or self._batch(json.loads(request.body))
        return self._get(target, path, query)

    def _get(self, target: str, path: str, query: Mapping[str, str]) -> Answer:
        self.requests.append(target)
        self.on_request(target)
        if fault := self._fault(target):
            return fault
        parts = [unquote(part) for part in path.removeprefix("/v1.0/").split("/")]
        match parts:
            case ["users", _] | ["groups", _, "owners"]:
                return self._directory(parts)
            case ["sites", site_id, "drives"]:
                site = "/" + site_id.replace(",", "/")
                drives = [drive for drive in self.drives.values() if drive.site == site]
                return json_answer({"value": [self._drive_body(drive) for drive in drives]})
            case ["sites", *rest]:
                return self._site("/".join(rest))
            case ["drives", drive_id, *rest]:
                return self._drive(self.drives[drive_id], rest, query)
        return error_answer(404, "itemNotFound")

    def _directory(self, parts: list[str]) -> Answer:
        if parts[0] == "users" and parts[1] in self.users:
            return json_answer({"id": self.users[parts[1]]})
        if parts[0] == "groups" and parts[1] in self.groups:
            return json_answer(
                {"value": [{"id": one} for one in sorted(self.group_owners.get(parts[1], ()))]}
            )
        return error_answer(404, "Request_ResourceNotFound")

    def _site(self, reference: str) -> Answer:
        site = reference.split(":")[-1]
        if not any(drive.site == site for drive in self.drives.values()):
            return error_answer(404, "itemNotFound")
        return json_answer({"id": site.strip("/").replace("/", ","), "webUrl": f"{self.host}{site}"})

    def _drive_body(self, drive: FakeDrive) -> Entry:
        body: Entry = {
            "id": drive.drive_id,
            "name": drive.name,
            "driveType": drive.drive_type,
            "webUrl": f"{self.host}{quote(f'{drive.site}/{drive.name}')}",
        }
        if drive.owner:
            body["owner"] = {"user": {"id": drive.owner}}
        return body

    def _drive(self, drive: FakeDrive, parts: list[str], query: Mapping[str, str]) -> Answer:
        match parts:
            case ["root", "delta"]:
                return self._delta(drive, query)
            case ["root:", *names]:
                return self._by_path(drive, names)
            case ["items", item_id, *rest]:
                item = drive.items.get(drive.root_id if item_id == "root" else item_id)
                return self._item(drive, item, rest, query) if item else error_answer(404, "itemNotFound")
        return error_answer(404, "itemNotFound")

    def _item(self, drive: FakeDrive, item: FakeItem, rest: list[str], query: Mapping[str, str]) -> Answer:
        if rest == ["permissions"]:
            return self._permissions(drive, item, query)
        return self._ticket(item) if rest == ["content"] else json_answer(self._item_body(drive, item))

    def _by_path(self, drive: FakeDrive, names: list[str]) -> Answer:
        at = drive.root_id
        for name in names:
            items = [i for i in drive.items.values() if i.parent_id == at and i.name.lower() == name.lower()]
            if not items:
                return error_answer(404, "itemNotFound")
            at = items[0].item_id
        return json_answer(self._item_body(drive, drive.items[at]))

    def _delta(self, drive: FakeDrive, query: Mapping[str, str]) -> Answer:
        base = "/".join((f"{self.graph}/v1.0/drives/{drive.drive_id}", "root", "delta"))
        token = query.get("token", "")
        start, end = (int(part) for part in token.split("-")) if "-" in token else (int(token or 0), -1)
        if token and start < drive.oldest_token:
            return 410, {"Location": base}, b'{"error":{"code":"resyncRequired","message":"x"}}'
        end = len(drive.log) if end < 0 else end
        stop = min(end, start + self.page_size)
        ids = drive.log[start:stop] if token else [i for i in drive.log[start:stop] if i in drive.items]
        body: Entry = {"value": [self._change(drive, item_id) for item_id in ids]}
        if stop < end:
            body["@odata.nextLink"] = f"{base}?token={stop}-{end}"
        else:
            body["@odata.deltaLink"] = f"{base}?token={end}"
        return json_answer(body)

    def _change(self, drive: FakeDrive, item_id: str) -> Entry:
        item = drive.items.get(item_id)
        # SharePoint omits the name of a deleted item.
        return self._item_body(drive, item) if item else {"id": item_id, "deleted": {"state": "deleted"}}

    def _item_body(self, drive: FakeDrive, item: FakeItem) -> Entry:
        body: Entry = {
            "id": item.item_id,
            "name": item.name,
            "eTag": f'"{item.item_id},{item.version}"',
            "webUrl": f"{self.host}{quote(f'{drive.site}/{drive.name}/{item.name}')}",
            "parentReference": {"id": item.parent_id, "driveId": drive.drive_id},
            **item.facets,
        }
        if item.parent_id is None:
            return body | {"root": {}, "folder": {"childCount": 1}}
        if item.content is None:
            return body | ({} if "package" in item.facets else {"folder": {"childCount": 1}})
        hashes = {"quickXorHash": f"{hash(item.content):x}"} if item.has_hash else {}
        return {"size": len(item.content), "file": {"hashes": hashes}, **body}

    def _permissions(self, drive: FakeDrive, item: FakeItem, query: Mapping[str, str]) -> Answer:
        entries, start = self._effective(drive, item.item_id), int(query.get("skip", 0))
        body: Entry = {"value": entries[start : start + 50]}
        if start + 50 < len(entries):
            address = f"{self.graph}/v1.0/drives/{drive.drive_id}/items/{item.item_id}/permissions"
            body["@odata.nextLink"] = f"{address}?skip={start + 50}"
        return json_answer(body)

    def _ticket(self, item: FakeItem) -> Answer:
        ticket = f"{item.item_id}-{len(self._tickets)}"
        self._tickets[ticket] = (item.content or b"", time.monotonic() + self.ticket_seconds)
        return 302, {"Location": f"{self.host}/_layouts/15/download.aspx?tempauth={ticket}"}, b""

    def _batch(self, body: Mapping[str, Any]) -> Answer:
        if len(body["requests"]) > 20:
            return error_answer(400, "BadRequest")
        responses = []
        for request in reversed(body["requests"]):  # a batch may be processed in any order
            parts = urlsplit(request["url"])
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            status, headers, content = self._get(f"/v1.0{request['url']}", f"/v1.0{parts.path}", query)
            self.requests.pop()  # the parts of a batch count as one request
            responses.append(
                {
                    "id": request["id"],
                    "status": status,
                    "headers": dict(headers),
                    "body": json.loads(content or b"null"),
                }
            )
        return json_answer({"responses": responses})

    def _answer_site(self, request: Request) -> Answer:
        target = request.target
        parts = urlsplit(target)
        self.requests.append(target)
        authorization = request.headers.get("Authorization")
        if parts.path.endswith("/download.aspx"):
            if authorization:
                self.leaks.append(target)
                return error_answer(401, "invalid_token")
            content, ends = self._tickets.pop(parse_qs(parts.query)["tempauth"][0], (b"", 0.0))
            return (200, {}, content) if time.monotonic() < ends else error_answer(401, "expired")
        if authorization != f"Bearer token-for-{self.host}":
            return error_answer(401, "invalid_client")
        if fault := self._fault(target):
            return fault
        site, _, rest = parts.path.partition("/_api/web/sitegroups/getbyid(")
        claims = self.site_groups.get((site, rest.partition(")")[0]))
        if claims is None:
            return error_answer(404, "Microsoft.SharePoint.SPException")
        start = int(parse_qs(parts.query).get("$skiptoken", ["0"])[0])
        answer: Entry = {"value": [{"LoginName": claim} for claim in claims[start : start + 100]]}
        if start + 100 < len(claims):
            answer["odata.nextLink"] = f"{self.host}{parts.path}?$select=LoginName&$skiptoken={start + 100}"
        return json_answer(answer)

    def _give_token(self, query: Mapping[str, str], headers: Mapping[str, str]) -> Answer:
        if headers.get("X-IDENTITY-HEADER") != IDENTITY_HEADER:
            return error_answer(400, "invalid_request")
        ends = str(int(time.time()) + 86_400)
        token = f"token-for-{query['resource']}"
        return json_answer(
            {"access_token": token, "expires_on": ends, "resource": query["resource"], "token_type": "Bearer"}
        )

    def _fault(self, target: str) -> Answer | None:
        for place, fault in enumerate(self.faults):
            if fault.to in target:
                left = fault.times - 1
                self.faults[place : place + 1] = (
                    [Fault(fault.to, fault.status, fault.headers, left)] if left else []
                )
                return fault.status, fault.headers, b'{"error":{"code":"fault","message":"x"}}'
        return None

    def __enter__(self) -> Self:
        self._graph.__enter__()
        self._sites.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._sites.__exit__()
        self._graph.__exit__()


def user(user_id: str, *roles: str, **more: Any) -> Entry:
    """Return a permission for a person."""
    return {"roles": list(roles or ("read",)), "grantedToV2": {"user": {"id": user_id}}, **more}


def group(group_id: str, *roles: str) -> Entry:
    """Return a permission for an Entra group."""
    return {"roles": list(roles or ("read",)), "grantedToV2": {"group": {"id": group_id}}}


def site_group(number: str, name: str = "HR Members", *roles: str) -> Entry:
    """Return a permission for a SharePoint group of the site."""
    return {
        "roles": list(roles or ("write",)),
        "grantedToV2": {"siteGroup": {"id": number, "displayName": name, "loginName": name}},
    }


def claim(login_name: str, *roles: str) -> Entry:
    """Return a permission for a SharePoint claim."""
    return {
        "roles": list(roles or ("read",)),
        "grantedToV2": {"siteUser": {"id": "9", "loginName": login_name}},
    }


def link(scope: str, people: Iterable[str] = ()) -> Entry:
    """Return a permission for a sharing link."""
    return {
        "roles": ["read"],
        "link": {"scope": scope, "type": "view"},
        "grantedToIdentitiesV2": [{"user": {"id": person}} for person in people],
    }


def _is_past(end: str, now: datetime) -> bool:
    """Return whether a grant has expired. Year 1 stands for a grant without an expiry."""
    moment = datetime.fromisoformat(end)
    return moment.year > 1 and moment.replace(tzinfo=moment.tzinfo or UTC) <= now
