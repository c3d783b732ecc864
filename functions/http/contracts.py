"""Contracts of HTTP routes: the replies, errors, headers and limits that a handler's signature can't express.

The routers of `functions/` are the only registry of the API. `contract` attaches a `Contract` to each route;
the app checks requests against it, and the OpenAPI description shows it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fastapi._compat import ModelField
from fastapi.routing import APIRoute
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
Json = dict[str, Any]
OPENAI_PREFIX = "/api/v1/"
"""Of addresses whose errors have the shape of OpenAI's protocol; all others are problem details."""
_KEY = "contract"  # key under which a contract is stored in the `openapi_extra` of its route


@dataclass(frozen=True)
class Reply:
    """A successful reply as declared by a route.

    Attributes:
        contents: media type and model, which is None for bytes. Empty if there is no body.
        headers: response headers, as field names of `ReplyHeaders`.
    """

    status: int
    description: str
    contents: tuple[tuple[str, Shape | None], ...] = ()
    headers: tuple[str, ...] = ()


def json_reply(status: int, description: str, shape: Shape, *headers: str) -> Reply:
    """Return a declaration of a reply whose body is JSON with the given model."""
    return Reply(status, description, ((JSON, shape),), headers)


@dataclass(frozen=True)
class Contract:
    """The part of a route's interface that its handler's signature doesn't declare.

    Errors that follow from the parameters or the body need not be declared.

    Attributes:
        body: model of a JSON body, or `form` of a multipart body, that the handler reads itself.
        headers: model whose fields are the request headers.
        is_open: whether the route can be called without authentication.
        costs: whether a call counts against the caller's limits.
        ends_as: model of the body if the work ended with an error, whatever the status.
        any_query: whether unknown query parameters are ignored, because other sites append some to links.
    """

    replies: tuple[Reply, ...] = ()
    errors: tuple[type[GroundworkError], ...] = ()
    body: Shape | None = None
    form: Shape | None = None
    headers: Shape | None = None
    is_open: bool = False
    costs: bool = False
    ends_as: Shape | None = None
    any_query: bool = False


def contract(summary: str, *replies: Reply, **declared: Any) -> dict[str, Any]:
    """Return the keyword arguments of a route decorator. `declared` contains further fields of the route's
    `Contract`.
    """
    return {
        "summary": summary,
        "response_model": None,
        "openapi_extra": {_KEY: Contract(replies=replies, **declared)},
    }


def hidden() -> dict[str, Any]:
    """Return the keyword arguments of a route decorator for web page routes, which are left out of the API
    description.
    """
    return {
        "response_model": None,
        "include_in_schema": False,
        "openapi_extra": {_KEY: Contract(is_open=True, any_query=True)},
    }


def body_of(route: APIRoute) -> Shape | None:
    """Return the model of a route's JSON body, or None if it has none."""
    return contract_of(route).body if route.body_field is None else _model_of(route.body_field)


def query_of(route: APIRoute) -> Shape | None:
    """Return the model of a route's query parameters, or None if it has none."""
    fields = route.dependant.query_params
    return _model_of(fields[0]) if fields else None


def _model_of(field: ModelField) -> Shape:
    model: Shape = field.field_info.annotation  # type: ignore[assignment]  # `type_form`, for FastAPI
    return model


def contract_of(route: APIRoute) -> Contract:
    """Return the contract that a route was declared with. Raises `KeyError` if there is none."""
    declared: Contract = (route.openapi_extra or {})[_KEY]
    return declared


@dataclass(frozen=True)
class Operation:
    """A route and its contract, prepared for the OpenAPI description.

    Attributes:
        route: path below `/api/`.
        name: name of the handler, used as operationId.
        tag: group in which the API description lists the operation.
        body: model of the JSON body.
        query: model of the query parameters.
        names: path parameters, in order.
    """

    method: str
    route: str
    name: str
    tag: str
    summary: str
    endpoint: Callable[..., Any]
    contract: Contract
    body: Shape | None
    query: Shape | None
    names: tuple[str, ...]

    @classmethod
    def of(cls, route: APIRoute) -> "Operation":
        """Create the operation of a route, which must have exactly one method and one tag."""
        return cls(
            method=next(iter(route.methods or ())),
            route=route.path_format.removeprefix("/api/"),
            name=route.name,
            tag=str(route.tags[0]),
            summary=route.summary or "",
            endpoint=route.endpoint,
            contract=contract_of(route),
            body=body_of(route),
            query=query_of(route),
            names=tuple(part[1:-1] for part in route.path_format.split("/") if part[:1] == "{"),
        )

    @property
    def is_openai(self) -> bool:
        """Whether errors are rendered in the format of OpenAI's protocol."""
        return f"/api/{self.route}".startswith(OPENAI_PREFIX)

    @property
    def replies(self) -> tuple[Reply, ...]:
        """All successful replies, including a 304 for cached resources and the Idempotency-Replayed header
        where they apply.
        """
        replies = self.contract.replies
        if self.contract.headers is CachedHeaders:
            return (*replies, Reply(304, "Unchanged: the caller has this version already.", (), ("ETag",)))
        if self.has_key:
            return tuple(replace(one, headers=(*one.headers, "Idempotency-Replayed")) for one in replies)
        return replies

    @property
    def has_key(self) -> bool:
        """Whether requests may have an Idempotency-Key header."""
        headers = self.contract.headers
        return headers is not None and issubclass(headers, KeyHeaders)

    @property
    def all_errors(self) -> tuple[type[GroundworkError], ...]:
        """All errors of the route: first the errors that its parameters and body imply, then the declared
        errors.
        """
        return (*self._implied_errors(), *self.contract.errors)

    def _implied_errors(self) -> Iterator[type[GroundworkError]]:
        yield CallerError  # unknown query parameters raise it on every route
        if self.body or self.contract.form:
            yield from (PayloadTooLargeError, SlowBodyError)
        if "doc_id" in self.names:
            yield DocumentNotFoundError
        if {"run_id", "thread_id", "summary_id"}.intersection(self.names):
            yield NotFoundError
        if self.has_key:
            yield IdempotencyKeyReusedError
        if self.contract.headers is IfMatchHeaders:
            yield PreconditionFailedError


# A reply of these routes may be a stream, so its links read the id from a header instead of the JSON body.
_IDS_IN_HEADERS = {"run_id": "X-Run-Id"}
# Operations that return the id of a document that doesn't exist before the upload.
_PROMISES = frozenset({"make_upload_ticket"})


def links_of(reply: Reply, maker: Operation, operations: Sequence[Operation]) -> Json:
    """Return the OpenAPI links from a reply to the operations that can be called next, keyed by operationId.

    If a POST operation without path parameters returns an id, its reply links to every operation whose only
    path parameter is that id.
    """
    if maker.method != "POST" or maker.names or maker.name in _PROMISES:
        return {}
    return {
        target.name: {"operationId": target.name, "parameters": {name: place}}
        for name, place in _ids_in(reply)
        for target in operations
        if target.names == (name,)
    }


def _ids_in(reply: Reply) -> Iterator[tuple[str, str]]:
    """Yield each id that a reply contains, as its field name and the OpenAPI expression that locates it."""
    shapes = dict(reply.contents)
    shape = shapes.get(JSON)
    for name in shape.model_fields if shape else ():
        if not name.endswith("_id"):
            continue
        if (header := _IDS_IN_HEADERS.get(name)) in reply.headers:
            yield name, f"$response.header.{header}"
        elif len(shapes) == 1:
            yield name, f"$response.body#/{name}"
