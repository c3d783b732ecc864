"""A stand-in over HTTP for Microsoft Graph, and for the endpoint that issues tokens for the app's identity.

Like Graph, it returns pages, requires certain headers for casts to groups, and uses Graph's error texts. It
returns faults on request.
"""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.http_server import Answer, HttpServer, Request, json_answer

TOKEN = "a-token-for-graph"
IDENTITY_HEADER = "a-secret-of-the-platform"
_MEMBERS = "/transitiveMemberOf/microsoft.graph.group"
_MOST = 999


@dataclass(frozen=True)
class Trouble:
    """A response that replaces the regular one once. `delay_s` delays the response."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b'{"error":{"code":"x","message":"x"}}'
    delay_s: float = 0.0


class GraphServer(HttpServer):
    """A server with the people in `groups`. It is a context manager; `troubles` are returned first, in
    order.
    """

    def __init__(self, groups: Mapping[str, list[str]]) -> None:
        super().__init__(self._answer)
        self.groups = dict(groups)
        self.people: dict[str, dict[str, Any]] = {}
        self.names: dict[str, list[str]] = {}
        self.display_names: dict[str, str] = {}
        self.troubles: list[Trouble] = []
        self.always: Trouble | None = None
        self.next_link: str | None = None  # replaces the correct link to the next page
        self.asked: list[str] = []
        self.tokens_given = 0

    @property
    def settings(self) -> dict[str, str]:
        """The app settings for this server. As on App Service, tokens come from a URL that requires a
        secret.
        """
        return {
            "GRAPH_ENDPOINT": self.url,
            "IDENTITY_ENDPOINT": f"{self.url}/msi/token",
            "IDENTITY_HEADER": IDENTITY_HEADER,
        }

    def _answer(self, request: Request) -> Answer:
        headers = request.headers
        parts = urlsplit(request.target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/msi/token":
            return self._token(query, headers)
        self.asked.append(request.target)
        trouble = self.troubles.pop(0) if self.troubles else self.always
        if trouble is not None:
            time.sleep(trouble.delay_s)
            if trouble.status:
                return trouble.status, {"Content-Type": "application/json", **trouble.headers}, trouble.body
        if headers.get("Authorization") != f"Bearer {TOKEN}":
            return error_answer(401, "InvalidAuthenticationToken")
        if parts.path in ("/v1.0/groups", "/v1.0/users"):
            return self._list(parts.path.endswith("users"), query, headers)
        user_id = parts.path.removeprefix("/v1.0/users/").removesuffix(_MEMBERS)
        if user_id not in self.groups:
            return error_answer(404, "Request_ResourceNotFound")
        person = json_answer(self.people.get(user_id, {"userType": "Member"}))
        return self._page(user_id, query, headers) if parts.path.endswith(_MEMBERS) else person

    def _list(self, is_of_people: bool, query: Mapping[str, str], headers: Mapping[str, str]) -> Answer:
        """Return the people or groups that match a filter for equal values, or a search for prefixes of
        words.
        """
        rows = [{"id": one, "displayName": name} for name, ids in self.names.items() for one in ids]
        rows = [person for person in self.people.values() if "id" in person] if is_of_people else rows
        if "$filter" in query:
            conditions = re.findall(r"(\w+) eq '((?:[^']|'')*)'", query["$filter"])
            pairs = {(name, value.replace("''", "'")) for name, value in conditions}
            return json_answer({"value": [row for row in rows if pairs & set(row.items())]})
        if headers.get("ConsistencyLevel") != "eventual":
            return error_answer(400, "Request_UnsupportedQuery")
        clauses = re.fullmatch(r'"(\w+):([^"]*)"(?: OR "(\w+):([^"]*)")?', query["$search"])
        if clauses is None or "\\" in query["$search"]:
            return error_answer(400, "Request_BadRequest")
        start = clauses[2].strip().lower()
        words = [(row, str(row.get(clauses[1])).lower().split()) for row in rows]
        return json_answer({"value": [row for row, of in words if any(one.startswith(start) for one in of)]})

    def _fields(self, group_id: str, selection: str) -> dict[str, str | None]:
        fields = {"id": group_id, "displayName": self.display_names.get(group_id)}
        return {name: fields[name] for name in selection.split(",")}

    def _token(self, query: Mapping[str, str], headers: Mapping[str, str]) -> Answer:
        if headers.get("X-IDENTITY-HEADER") != IDENTITY_HEADER or query.get("resource") != self.url:
            return error_answer(400, "invalid_request")
        self.tokens_given += 1
        ends = str(int(time.time()) + 86_400)
        return json_answer(
            {"access_token": TOKEN, "expires_on": ends, "resource": self.url, "token_type": "Bearer"}
        )

    def _page(self, user_id: str, query: Mapping[str, str], headers: Mapping[str, str]) -> Answer:
        if headers.get("ConsistencyLevel") != "eventual" or query.get("$count") != "true":
            return error_answer(400, "Request_UnsupportedQuery")
        size = int(query.get("$top", "100"))
        if size > _MOST:
            return error_answer(400, "Request_BadRequest")
        groups, start = self.groups[user_id], int(query.get("$skiptoken", "0"))
        body: dict[str, Any] = {
            "@odata.context": "x",
            "@odata.count": len(groups),
            "value": [
                {"@odata.type": "#microsoft.graph.group", **self._fields(name, query["$select"])}
                for name in groups[start : start + size]
            ],
        }
        if start + size < len(groups):
            # The characters are escaped as by Graph, because the app must request exactly this URL.
            fields = query["$select"].replace(",", "%2c")
            rest = f"%24select={fields}&%24top={size}&%24count=true&%24skiptoken={start + size}"
            body["@odata.nextLink"] = self.next_link or f"{self.url}/v1.0/users/{user_id}{_MEMBERS}?{rest}"
        return json_answer(body)


def error_answer(status: int, code: str) -> Answer:
    """Return an error in the format of Graph."""
    return json_answer({"error": {"code": code, "message": code}}, status)
