"""One call of the API, and the OpenAPI links from its answers to other calls. Pure.

A call that makes something is a POST without names in its route, whose answer holds an id. A call that takes
that id as the only name of its route is linked from it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from functions.http.models import CachedHeaders, IfMatchHeaders, KeyHeaders
from shared.platform.errors import (
    CallerError,
    DocumentNotFoundError,
    GroundworkError,
    IdempotencyKeyReusedError,
    NotFoundError,
    PayloadTooLargeError,
    PreconditionFailedError,
    SlowBodyError,
)

JSON = "application/json"
PROBLEM = "application/problem+json"
STREAM = "text/event-stream"
PDF = "application/pdf"
BYTES = "application/octet-stream"
PNG = "image/png"
WEBP = "image/webp"
HTML = "text/html"
MARKDOWN = "text/markdown"
Shape = type[BaseModel]


@dataclass(frozen=True)
class Reply:
    """One answer that is no error.

    Attributes:
        contents: media type and shape; None = bytes, which have none. Empty = the answer has no body.
        headers: names as `ReplyHeaders` has them.
    """

    status: int
    description: str
    contents: tuple[tuple[str, Shape | None], ...] = ()
    headers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Operation:
    """One call. What follows from its route, its parameters and its body need not be said in the table.

    Attributes:
        call: method and route, the route below `/api` as the trigger has it.
        name: the function that answers it; becomes the operationId.
        answers: what it answers unless it fails.
        errors: how it may fail, beyond what `_implied_errors` and the description add.
        body: shape of the JSON body; `form` of a multipart one.
        query, headers: models whose fields are the parameters.
        is_open: it needs no identity.
        costs: it counts for its caller's limits.
        ends_as: shape of its answer when what it began ended with an error of any status.
    """

    call: str
    name: str
    summary: str
    answers: Reply | tuple[Reply, ...]
    errors: tuple[type[GroundworkError], ...] = ()
    body: Shape | None = None
    form: Shape | None = None
    query: Shape | None = None
    headers: Shape | None = None
    is_open: bool = False
    costs: bool = False
    ends_as: Shape | None = None

    @property
    def method(self) -> str:
        """The HTTP method."""
        return self.call.partition(" ")[0]

    @property
    def route(self) -> str:
        """The address below `/api`."""
        return self.call.partition(" ")[2]

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the route, in order."""
        return tuple(part[1:-1] for part in self.route.split("/") if part[:1] == "{")

    @property
    def tag(self) -> str:
        """The group that the page shows it in."""
        return _TAGS[self.route.partition("/")[0]]

    @property
    def replies(self) -> tuple[Reply, ...]:
        """Every answer that is no error: those of the table, a 304, and the header of a repeated request."""
        replies = (self.answers,) if isinstance(self.answers, Reply) else self.answers
        if self.headers is CachedHeaders:
            return (*replies, Reply(304, "Unchanged: the caller has this version already.", (), ("ETag",)))
        if self.has_key:
            return tuple(replace(one, headers=(*one.headers, "Idempotency-Replayed")) for one in replies)
        return replies

    @property
    def has_key(self) -> bool:
        """Whether the request may carry an Idempotency-Key."""
        return self.headers is not None and issubclass(self.headers, KeyHeaders)

    @property
    def all_errors(self) -> tuple[type[GroundworkError], ...]:
        """Those of the table, and those that follow from parameters and body."""
        return (*self._implied_errors(), *self.errors)

    def _implied_errors(self) -> Iterator[type[GroundworkError]]:
        yield CallerError  # of an unknown query parameter at least
        if self.body or self.form:
            yield from (PayloadTooLargeError, SlowBodyError)
        if "doc_id" in self.names:
            yield DocumentNotFoundError
        if {"run_id", "thread_id", "summary_id"}.intersection(self.names):
            yield NotFoundError
        if self.has_key:
            yield IdempotencyKeyReusedError
        if self.headers is IfMatchHeaders:
            yield PreconditionFailedError


_TAGS = {  # by the first part of the route
    "chat": "Questions",
    "agents": "Questions",
    "runs": "Questions",
    "search": "Search",
    "mcp": "Assistants",
    "v1": "Assistants",
    "documents": "Documents",
    "summaries": "Summaries",
    "threads": "Threads",
    "memory": "Memory",
    "workspace": "Workspace",
    "messages": "Channels",
    "me": "Caller",
    "site": "Caller",
    "maintenance": "Operators",
    "metrics": "Operators",
    "audit": "Operators",
    "sharepoint": "Operators",
    "users": "Operators",
    "health": "Health",
    "openapi.json": "Description",
    "docs": "Description",
}


def json_reply(status: int, description: str, shape: Shape, *headers: str) -> Reply:
    """An answer in JSON."""
    return Reply(status, description, ((JSON, shape),), headers)


_IDS_IN_HEADERS = {"run_id": "X-Run-Id"}  # of a stream the body is no JSON
_PROMISES = frozenset({"make_upload_ticket"})  # what it tells of is made by the upload
Json = dict[str, Any]


def links_of(reply: Reply, maker: Operation, operations: Sequence[Operation]) -> Json:
    """Links of one of the maker's answers, by operationId; empty = there is nothing to continue with."""
    if maker.method != "POST" or maker.names or maker.name in _PROMISES:
        return {}
    return {
        target.name: {"operationId": target.name, "parameters": {name: place}}
        for name, place in _ids_in(reply)
        for target in operations
        if target.names == (name,)
    }


def _ids_in(reply: Reply) -> Iterator[tuple[str, str]]:
    """Names of ids that an answer holds, and where."""
    shapes = dict(reply.contents)
    shape = shapes.get(JSON)
    for name in shape.model_fields if shape else ():
        if not name.endswith("_id"):
            continue
        if (header := _IDS_IN_HEADERS.get(name)) in reply.headers:
            yield name, f"$response.header.{header}"
        elif len(shapes) == 1:
            yield name, f"$response.body#/{name}"
