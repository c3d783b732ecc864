"""The OpenAPI 3.1 description, made from the registry of calls and the models that they name. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, models_json_schema

from functions.http.application import routes_of
from functions.http.contracts import JSON, PROBLEM, Operation, Reply, Shape, links_of
from functions.http.models import CompletionFailure, ReplyHeaders
from functions.http.openapi.examples import example_of, example_values
from shared.platform.errors import (
    AccessDeniedError,
    AuthenticationError,
    CallTimeoutError,
    ConfigurationError,
    DailyLimitError,
    DefectError,
    DependencyError,
    GroundworkError,
    IndexNotFoundError,
    NotAuthenticatedError,
    Problem,
    RateLimitError,
    TooManyRequestsError,
    TooManyRunsError,
)

Json = dict[str, Any]
_MARK = "\n\nAttributes:\n"
_ENTRY = re.compile(r"^ {4}([a-z_]+(?:, [a-z_]+)*): (.*(?:\n {8}.*)*)", re.MULTILINE)


def attributed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a model, with what its docstring says of a field at that field."""
    about, mark, listed = schema.get("description", "").partition(_MARK)
    if not mark:
        return schema
    said = {
        name: " ".join(text.split()) for names, text in _ENTRY.findall(listed) for name in names.split(", ")
    }
    return _described({**schema, "description": about}, said)


def _described(schema: Json, said: Mapping[str, str]) -> Json:
    if "properties" not in schema:
        return schema
    properties = {
        name: {"description": said[name], **field} if name in said else field
        for name, field in schema["properties"].items()
    }
    return {**schema, "properties": properties}


VERSION = "0.1.0"  # as pyproject.toml

ABOUT = (
    "Questions over an organisation's documents, answered with sources. Every call but those of health and "
    "description needs an identity. What a caller may not read does not exist for them: 404. Errors are "
    "problem details (RFC 9457) with `hints`."
)

_SECURITY: Mapping[str, Mapping[str, str]] = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A token of Entra ID in Azure, a development token locally.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "AppServiceAuthSession",
        "description": "Signed in to App Service Authentication; in Azure only.",
    },
}

_ALWAYS = (DefectError, ConfigurationError)
_ENDED = ("4XX", "5XX")

_IN_NEED = (
    NotAuthenticatedError,
    AccessDeniedError,
    AuthenticationError,
    IndexNotFoundError,
    DependencyError,
    RateLimitError,
    CallTimeoutError,
)

_HEADERS_OF_ERRORS: Mapping[int, tuple[str, ...]] = {
    401: ("WWW-Authenticate",),
    413: ("X-Max-Body-Bytes",),
    503: ("Retry-After",),
}

_OF_LIMITS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")


class _Schemas(GenerateJsonSchema):
    """As pydantic makes them, but for what says nothing, or less than it could.

    An answer holds every field, also those that have a default. Titles only repeat names. An empty text as
    default says that a field may be left out, also where it could not be sent.
    """

    def field_is_required(self, field: Any, *arguments: Any, **keywords: Any) -> bool:
        required = super().field_is_required(field, *arguments, **keywords)
        always_sent = self.mode == "serialization" and "serialization_exclude_if" not in field
        return bool(required or always_sent)

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: Any) -> Json:
        made: Json = super().default_schema(schema)
        tells = self.mode == "validation" and made.get("default") != ""
        return {name: value for name, value in made.items() if name != "default" or tells}


def operations_of(app: FastAPI) -> list[Operation]:
    """Return the operations of an app's API, in the order of its routes."""
    return [Operation.of(route) for route in routes_of(app) if route.include_in_schema]


def describe(app: FastAPI) -> Json:
    """Return the OpenAPI description of an app's API, as plain JSON."""
    return Description(operations_of(app)).document()


class Description:
    """Builds the document for some operations."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        """`operations` in the order in which they are to be shown."""
        self._operations = operations
        self._references, self._schemas = _schemas_of(operations)
        self._problems: dict[str, Json] = {}

    def document(self) -> Json:
        """The whole description, as plain JSON."""
        paths: dict[str, Json] = {}
        for operation in self._operations:
            paths.setdefault(f"/{operation.route}", {})[operation.method.lower()] = self._call(operation)
        tags = dict.fromkeys(operation.tag for operation in self._operations)
        return {
            "openapi": "3.1.0",
            "info": {"title": "Groundwork", "version": VERSION, "description": ABOUT},
            "servers": [{"url": "/api"}],
            "security": [{name: []} for name in _SECURITY],
            "tags": [{"name": tag} for tag in tags],
            "paths": paths,
            "components": {
                "schemas": self._schemas,
                "examples": dict(sorted(self._problems.items())),
                "securitySchemes": {name: dict(scheme) for name, scheme in _SECURITY.items()},
            },
        }

    def _call(self, operation: Operation) -> Json:
        call: Json = {
            "operationId": operation.name,
            "tags": [operation.tag],
            "summary": operation.summary,
            "parameters": list(_parameters(operation)),
            "responses": self._responses(operation),
        }
        if operation.contract.is_open:
            call["security"] = []
        body = self._body(operation)
        if body is not None:
            call["requestBody"] = body
        return call

    def _body(self, operation: Operation) -> Json | None:
        shape = operation.body or operation.contract.form
        if shape is None:
            return None
        media_type = JSON if operation.body else "multipart/form-data"
        return {"required": True, "content": {media_type: self._content(shape, "validation", True)}}

    def _responses(self, operation: Operation) -> dict[str, Json]:
        responses: dict[str, Json] = {
            str(reply.status): self._reply(reply, operation) for reply in operation.replies
        }
        for status, errors in _by_status(operation).items():
            problem = self._problem(operation, errors)
            response = responses.setdefault(str(status), {"description": "", "content": {}})
            said = [response["description"], *(_said(error) for error in errors)]
            response["description"] = " ".join(text for text in said if text)
            response["content"] = {**response["content"], **problem}
            if status in _HEADERS_OF_ERRORS:
                response["headers"] = _headers(_HEADERS_OF_ERRORS[status])
        if operation.contract.costs:
            self._add_limits(operation, responses)
        if operation.contract.ends_as is not None:
            self._add_ends(responses, operation.contract.ends_as)
        return dict(sorted(responses.items()))

    def _add_limits(self, operation: Operation, responses: dict[str, Json]) -> None:
        """Calls that are counted: a refusal more, and what is left on each answer."""
        said = " ".join(_said(error) for error in (TooManyRequestsError, DailyLimitError, TooManyRunsError))
        headers = _headers(("Retry-After",))
        problem = self._problem(operation, (TooManyRequestsError, DailyLimitError, TooManyRunsError))
        responses["429"] = {"description": said, "content": problem, "headers": headers}
        for status, response in responses.items():
            if status[0] == "2" or status == "429":
                response["headers"] = {**response.get("headers", {}), **_headers(_OF_LIMITS)}

    def _add_ends(self, responses: dict[str, Json], shape: Shape) -> None:
        """What was begun may end with any error: then its status is the answer's."""
        ended = {JSON: self._content(shape, "serialization")}
        for status in _ENDED:
            responses[status] = {
                "description": "It ended with this error; `error` says why.",
                "content": dict(ended),
            }
        for status, response in responses.items():
            if status[0] in "45" and status not in (*_ENDED, "401"):
                response["content"] = {**response["content"], **ended}

    def _problem(self, operation: Operation, errors: Iterable[type[GroundworkError]]) -> Json:
        """Return the content of a refusal, by its media type."""
        if operation.is_openai:
            return {JSON: self._content(CompletionFailure, "serialization")}
        examples = {}
        for error in errors:
            self._problems[error.code] = {"value": _refusal(error)}
            examples[error.code] = {"$ref": f"#/components/examples/{error.code}"}
        return {PROBLEM: {**self._content(Problem, "serialization"), "examples": examples}}

    def _reply(self, reply: Reply, operation: Operation) -> Json:
        response: Json = {"description": reply.description}
        if links := links_of(reply, operation, self._operations):
            response["links"] = links
        if reply.headers:
            response["headers"] = _headers(reply.headers)
        if reply.contents:
            response["content"] = {
                media_type: self._content(shape, "serialization", True)
                for media_type, shape in reply.contents
            }
        return response

    def _content(self, shape: Shape | None, mode: JsonSchemaMode, has_example: bool = False) -> Json:
        """A schema by reference, perhaps with an example; bytes have none (OpenAPI 3.1.0, 4.8.14.2)."""
        if shape is None:
            return {}
        reference = self._references[shape, mode]
        if not has_example:
            return {"schema": reference}
        name = reference["$ref"].rpartition("/")[2]
        return {"schema": reference, "example": example_of(name, self._schemas)}


def _schemas_of(operations: Sequence[Operation]) -> tuple[dict[tuple[Shape, JsonSchemaMode], Json], Json]:
    wanted: dict[tuple[Shape, JsonSchemaMode], None] = {
        (Problem, "serialization"): None,
        (CompletionFailure, "serialization"): None,
    }
    for operation in operations:
        for shape in (operation.body, operation.contract.form):
            if shape is not None:
                wanted[shape, "validation"] = None
        shown = [shape for reply in operation.replies for _, shape in reply.contents]
        for shape in (*shown, operation.contract.ends_as):
            if shape is not None:
                wanted[shape, "serialization"] = None
    references, definitions = models_json_schema(
        list(wanted), ref_template="#/components/schemas/{model}", schema_generator=_Schemas
    )
    made: dict[str, Json] = definitions["$defs"]
    described = {model: attributed(schema) for model, schema in made.items()}
    return references, described  # type: ignore[return-value]


def _parameters(operation: Operation) -> Iterable[Json]:
    for name, schema in operation.path.items():
        example = example_values()[f"path.{name}"]
        yield {"name": name, "in": "path", "required": True, "example": example, **_shown(schema)}
    for place, shape in (("query", operation.query), ("header", operation.contract.headers)):
        if shape is not None:
            required = shape.model_json_schema().get("required", ())
            for name, schema in _fields(shape).items():
                example = example_values().get(f"{shape.__name__}.{name}")
                shown = _shown(schema) if example is None else {**_shown(schema), "example": example}
                yield {"name": name, "in": place, "required": name in required, **shown}


def _headers(names: Iterable[str]) -> Json:
    known = _fields(ReplyHeaders)
    # Required by none: `Retry-After` comes only where it is known, and proxies take headers away.
    return {name: _shown(known[name]) for name in names}


def _fields(shape: type[BaseModel]) -> dict[str, Json]:
    properties: dict[str, Json] = shape.model_json_schema(schema_generator=_Schemas)["properties"]
    return properties


def _shown(schema: Json) -> Json:
    """A parameter's own words, and its schema."""
    kept = {name: value for name, value in schema.items() if name != "description"}
    return {"description": schema["description"], "schema": kept}


def _by_status(operation: Operation) -> dict[int, list[type[GroundworkError]]]:
    errors = (*operation.all_errors, *_ALWAYS, *(() if operation.contract.is_open else _IN_NEED))
    by_status: dict[int, list[type[GroundworkError]]] = {}
    for error in dict.fromkeys(errors):
        by_status.setdefault(error.status, []).append(error)
    return by_status


def _refusal(error: type[GroundworkError]) -> Json:
    """Problem details as the error has them."""
    return {
        "type": f"urn:groundwork:error:{error.code}",
        "title": error.code,
        "status": error.status,
        "detail": (error.__doc__ or "").strip().splitlines()[0],
        "hints": [],
    }


def _said(error: type[GroundworkError]) -> str:
    """`NotFoundError`: the first sentence of what the class says of itself."""
    return f"`{error.code}`: {(error.__doc__ or '').strip().splitlines()[0]}"
