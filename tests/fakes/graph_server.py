"""A stand-in for Microsoft Graph, and for the endpoint that issues tokens for the app's identity, over HTTP.

As Graph does it: pages, the headers that casting to groups wants, errors in its words. Troubles on demand.
"""

import json
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

TOKEN = "a-token-for-graph"
IDENTITY_HEADER = "a-secret-of-the-platform"
_MEMBERS = "/transitiveMemberOf/microsoft.graph.group"
_MOST = 999


@dataclass(frozen=True)
class Trouble:
    """A response returned once instead of the regular one; `delay_s` delays any response."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b'{"error":{"code":"x","message":"x"}}'
    delay_s: float = 0.0


class GraphServer:
    """A server that knows the people in `groups`. A context manager; `troubles` are
    returned first, in order.
    """

    def __init__(self, groups: Mapping[str, list[str]]) -> None:
        self.groups = dict(groups)
        self.people: dict[str, dict[str, Any]] = {}
        self.names: dict[str, list[str]] = {}
        self.display_names: dict[str, str] = {}
        self.troubles: list[Trouble] = []
        self.always: Trouble | None = None
        self.next_link: str | None = None  # instead of the right one
        self.asked: list[str] = []
        self.tokens_given = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def settings(self) -> dict[str, str]:
        """The app's settings for this server. As on App Service, tokens come from a URL with a secret."""
        return {
            "GRAPH_ENDPOINT": self.endpoint,
            "IDENTITY_ENDPOINT": f"{self.endpoint}/msi/token",
            "IDENTITY_HEADER": IDENTITY_HEADER,
        }

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def answer(self, target: str, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers and body for a GET."""
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/msi/token":
            return self._token(query, headers)
        self.asked.append(target)
        trouble = self.troubles.pop(0) if self.troubles else self.always
        if trouble is not None:
            time.sleep(trouble.delay_s)
            if trouble.status:
                return trouble.status, trouble.headers, trouble.body
        if headers.get("Authorization") != f"Bearer {TOKEN}":
            return _error(401, "InvalidAuthenticationToken")
        if parts.path in ("/v1.0/groups", "/v1.0/users"):
            return self._list(parts.path.endswith("users"), query, headers)
        user_id = parts.path.removeprefix("/v1.0/users/").removesuffix(_MEMBERS)
        if user_id not in self.groups:
            return _error(404, "Request_ResourceNotFound")
        person = _found(self.people.get(user_id, {"userType": "Member"}))
        return self._page(user_id, query, headers) if parts.path.endswith(_MEMBERS) else person

    def _list(
        self, is_of_people: bool, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Return people or groups by a filter for equal values, or by a search for beginnings of words."""
        rows = [{"id": one, "displayName": name} for name, ids in self.names.items() for one in ids]
        rows = [person for person in self.people.values() if "id" in person] if is_of_people else rows
        if "$filter" in query:
            conditions = re.findall(r"(\w+) eq '((?:[^']|'')*)'", query["$filter"])
            wanted = {(name, value.replace("''", "'")) for name, value in conditions}
            return _found({"value": [row for row in rows if wanted & set(row.items())]})
        if headers.get("ConsistencyLevel") != "eventual":
            return _error(400, "Request_UnsupportedQuery")
        clauses = re.fullmatch(r'"(\w+):([^"]*)"(?: OR "(\w+):([^"]*)")?', query["$search"])
        if clauses is None or "\\" in query["$search"]:
            return _error(400, "Request_BadRequest")
        start = clauses[2].strip().lower()
        words = [(row, str(row.get(clauses[1])).lower().split()) for row in rows]
        return _found({"value": [row for row, of in words if any(one.startswith(start) for one in of)]})

    def _fields(self, group_id: str, wanted: str) -> dict[str, str | None]:
        known = {"id": group_id, "displayName": self.display_names.get(group_id)}
        return {name: known[name] for name in wanted.split(",")}

    def _token(
        self, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        if headers.get("X-IDENTITY-HEADER") != IDENTITY_HEADER or query.get("resource") != self.endpoint:
            return _error(400, "invalid_request")
        self.tokens_given += 1
        ends = str(int(time.time()) + 86_400)
        return _found(
            {"access_token": TOKEN, "expires_on": ends, "resource": self.endpoint, "token_type": "Bearer"}
        )

    def _page(
        self, user_id: str, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        if headers.get("ConsistencyLevel") != "eventual" or query.get("$count") != "true":
            return _error(400, "Request_UnsupportedQuery")
        size = int(query.get("$top", "100"))
        if size > _MOST:
            return _error(400, "Request_BadRequest")
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
            # Signs are quoted as Graph does it; only the same address leads on.
            fields = query["$select"].replace(",", "%2c")
            rest = f"%24select={fields}&%24top={size}&%24count=true&%24skiptoken={start + size}"
            body["@odata.nextLink"] = (
                self.next_link or f"{self.endpoint}/v1.0/users/{user_id}{_MEMBERS}?{rest}"
            )
        return _found(body)


def _found(body: Mapping[str, Any]) -> tuple[int, Mapping[str, str], bytes]:
    return 200, {}, json.dumps(body).encode()


def _error(status: int, code: str) -> tuple[int, Mapping[str, str], bytes]:
    return status, {}, json.dumps({"error": {"code": code, "message": code}}).encode()


def _handler_of(graph: GraphServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else each response waits 40 ms for an acknowledgement of its headers

        def do_GET(self) -> None:
            status, headers, body = graph.answer(self.path, self.headers)  # type: ignore[arg-type]
            try:
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except ConnectionError:
                self.close_connection = True  # the caller went away

        def log_message(self, *arguments: Any) -> None:
            """Suppress the access log."""

    return Handler
