"""What one call of the API takes and answers, as a value. Its shapes are pydantic models."""

from dataclasses import dataclass, field

from pydantic import BaseModel

from shared.errors import GroundworkError

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
