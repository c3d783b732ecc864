"""What can be done with what a call has made, as OpenAPI links. Pure: made from the operations themselves.

A call that makes something is a POST without names in its route, whose answer holds an id. What takes that
id as the only name of its route, can be called with it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from shared.platform.errors import GroundworkError

JSON = "application/json"
PROBLEM = "application/problem+json"
STREAM = "text/event-stream"
PDF = "application/pdf"
BYTES = "application/octet-stream"
PNG = "image/png"
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
    """One call.

    Attributes:
        route: below `/api`, as the trigger has it.
        name: the function that answers it; becomes the operationId.
        body: shape of the JSON body; `form` of a multipart one.
        query, headers: models whose fields are the parameters.
        errors: what it may be refused with, beside what every call may be.
        is_open: it needs no identity.
        costs: it counts for its caller's limits.
        ends_as: shape of its answer when what it began ended with an error of any status.
    """

    method: str
    route: str
    name: str
    tag: str
    summary: str
    replies: tuple[Reply, ...]
    errors: tuple[type[GroundworkError], ...] = ()
    body: Shape | None = None
    form: Shape | None = None
    query: Shape | None = None
    headers: Shape | None = None
    is_open: bool = False
    costs: bool = False
    ends_as: Shape | None = None
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        """The names in the route, in order."""
        parts = self.route.split("/")
        object.__setattr__(self, "names", tuple(part[1:-1] for part in parts if part[:1] == "{"))


def json_reply(status: int, description: str, shape: Shape, *headers: str) -> Reply:
    """An answer in JSON."""
    return Reply(status, description, ((JSON, shape),), headers)


_IDS_IN_HEADERS = {"run_id": "X-Run-Id"}  # of a stream the body is no JSON
_PROMISES = frozenset({"make_upload_ticket"})  # what it tells of is made by the upload
Json = dict[str, Any]


def links_of(reply: Reply, maker: Operation, operations: Sequence[Operation]) -> Json:
    """Links of one of the maker's answers, by operationId; empty = there is nothing to go on with."""
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
