"""Generates the OpenAPI 3.1 description: FastAPI's own, extended with the replies and errors from route
contracts.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Response
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

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
_SCHEMAS = "#/components/schemas/"
_MARK = "\n\nAttributes:\n"
_ENTRY = re.compile(r"^ {4}([a-z_]+(?:, [a-z_]+)*): (.*(?:\n {8}.*)*)", re.MULTILINE)

VERSION = "0.1.0"  # must equal the version in pyproject.toml

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

_ALL_ROUTES = (DefectError, ConfigurationError)
_ROUTES_WITH_IDENTITY = (
    NotAuthenticatedError,
    AccessDeniedError,
    AuthenticationError,
    IndexNotFoundError,
    DependencyError,
    RateLimitError,
    CallTimeoutError,
)
_LIMITED_ROUTES = (TooManyRequestsError, DailyLimitError, TooManyRunsError)

_ERROR_HEADERS: Mapping[int, tuple[str, ...]] = {
    401: ("WWW-Authenticate",),
    413: ("X-Max-Body-Bytes",),
    429: ("Retry-After",),
    503: ("Retry-After",),
}
_LIMIT_HEADERS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")


def operations_of(app: FastAPI) -> list[Operation]:
    """Return the operations of an app that the API description includes, in route order."""
    return [Operation.of(route) for route in routes_of(app) if route.include_in_schema]


def describe(app: FastAPI) -> Json:
    """Return the OpenAPI description of an app as JSON-compatible values."""
    return describe_operations(operations_of(app))


def describe_operations(operations: Sequence[Operation]) -> Json:
    """Return an OpenAPI description of the given operations, in the given order."""
    document: Json = get_openapi(
        title="Groundwork",
        version=VERSION,
        description=ABOUT,
        routes=[_documented_route(operation, operations) for operation in operations],
        tags=[{"name": tag} for tag in dict.fromkeys(operation.tag for operation in operations)],
        servers=[{"url": "/api"}],
    )
    components = document["components"]
    schemas = {**components["schemas"], **_schemas_of(operations)}
    # FastAPI adds these error models, but the app never sends them
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    components["schemas"] = {name: describe_fields(_tidy(schema)) for name, schema in sorted(schemas.items())}
    components["examples"] = _error_examples(operations)
    components["securitySchemes"] = {name: dict(scheme) for name, scheme in _SECURITY.items()}
    document["security"] = [{name: []} for name in _SECURITY]
    for operation in operations:
        call = document["paths"][f"/{operation.route}"][operation.method.lower()]
        _complete(call, operation, components["schemas"])
    return document


def describe_fields(schema: Json) -> Json:
    """Return a copy of a model's schema, with field descriptions taken from the attributes listed in its
    docstring.
    """
    description, mark, attributes = schema.get("description", "").partition(_MARK)
    if not mark:
        return schema
    texts = {
        name: " ".join(text.split())
        for names, text in _ENTRY.findall(attributes)
        for name in names.split(", ")
    }
    described: Json = {**schema, "description": description}
    if "properties" in schema:
        described["properties"] = {
            name: {"description": texts[name], **field} if name in texts else field
            for name, field in schema["properties"].items()
        }
    return described


def _documented_route(operation: Operation, operations: Sequence[Operation]) -> APIRoute:
    """Return a copy of a route with declared responses, for FastAPI's OpenAPI generator. The served routes
    declare none, because building their validators would delay the first request of a worker.
    """
    route = APIRoute(
        f"/{operation.route}",
        operation.endpoint,
        methods=[operation.method],
        operation_id=operation.name,
        tags=[operation.tag],
        summary=operation.summary,
        status_code=operation.replies[0].status,
        response_class=Response,
        response_model=None,
        responses=_responses(operation, operations),
        openapi_extra=_extra(operation),
    )
    route.description = ""  # docstrings of handlers are written for developers, so they are left out
    return route


def _extra(operation: Operation) -> Json:
    """Return the request headers and bodies of an operation that FastAPI can't derive from the handler's
    signature.
    """
    extra: Json = {}
    if shape := operation.contract.headers:
        extra["parameters"] = [
            {"name": name, "in": "header", "required": False, **_description_and_schema(schema)}
            for name, schema in _fields(shape).items()
        ]
    for media_type, shape in (
        (JSON, operation.contract.body),
        ("multipart/form-data", operation.contract.form),
    ):
        if shape is not None:
            extra["requestBody"] = {"required": True, "content": {media_type: _content(shape)}}
    if operation.contract.is_open:
        extra["security"] = []
    return extra


def _responses(operation: Operation, operations: Sequence[Operation]) -> dict[int | str, Json]:
    responses: dict[int | str, Json] = {
        reply.status: _reply(reply, operation, operations) for reply in operation.replies
    }
    for status, errors in _errors_of(operation).items():
        response = responses.setdefault(status, {"description": "", "content": {}})
        texts = [response["description"], *(_text_of(error) for error in errors)]
        response["description"] = " ".join(filter(None, texts))
        response["content"] = {**response["content"], **_problem(operation, errors)}
        if status in _ERROR_HEADERS:
            response["headers"] = _headers(_ERROR_HEADERS[status])
    if operation.contract.costs:
        for code, response in responses.items():
            if code == 429 or int(code) < 300:
                response["headers"] = {**response.get("headers", {}), **_headers(_LIMIT_HEADERS)}
    if (shape := operation.contract.ends_as) is not None:
        _add_late_errors(responses, shape)
    return responses


def _add_late_errors(responses: dict[int | str, Json], shape: Shape) -> None:
    """Declare that error responses may also have a body of the model `shape`. It describes work that was
    started and then failed; the response has the status of the failure.
    """
    body = {JSON: _content(shape)}
    for status, response in responses.items():
        if int(status) >= 400 and status != 401:
            response["content"] = {**response["content"], **body}
    for name in ("4XX", "5XX"):
        responses[name] = {
            "description": "The work was started, then failed with this status. `error` contains the reason.",
            "content": dict(body),
        }


def _reply(reply: Reply, operation: Operation, operations: Sequence[Operation]) -> Json:
    response: Json = {"description": reply.description}
    if links := links_of(reply, operation, operations):
        response["links"] = links
    if reply.headers:
        response["headers"] = _headers(reply.headers)
    if reply.contents:
        response["content"] = {media_type: _content(shape) for media_type, shape in reply.contents}
    return response


def _problem(operation: Operation, errors: Iterable[type[GroundworkError]]) -> Json:
    if operation.is_openai:
        return {JSON: _content(CompletionFailure)}
    examples = {error.code: {"$ref": f"#/components/examples/{error.code}"} for error in errors}
    return {PROBLEM: {**_content(Problem), "examples": examples}}


def _content(shape: Shape | None) -> Json:
    """Return a media type object that references a model's schema. Binary content has no schema (OpenAPI
    3.1.0, 4.8.14.2).
    """
    return {} if shape is None else {"schema": {"$ref": f"{_SCHEMAS}{shape.__name__}"}}


def _errors_of(operation: Operation) -> dict[int, list[type[GroundworkError]]]:
    contract = operation.contract
    errors = (
        *operation.all_errors,
        *_ALL_ROUTES,
        *(() if contract.is_open else _ROUTES_WITH_IDENTITY),
        *(_LIMITED_ROUTES if contract.costs else ()),
    )
    by_status: dict[int, list[type[GroundworkError]]] = {}
    for error in dict.fromkeys(errors):
        by_status.setdefault(error.status, []).append(error)
    return by_status


def _schemas_of(operations: Sequence[Operation]) -> dict[str, Json]:
    """Return the schemas of models that FastAPI doesn't see because contracts refer to them only by name."""
    models: dict[tuple[Shape, JsonSchemaMode], None] = {
        (Problem, "serialization"): None,
        (CompletionFailure, "serialization"): None,
    }
    for operation in operations:
        contract = operation.contract
        shapes = [*(shape for reply in operation.replies for _, shape in reply.contents), contract.ends_as]
        models |= {(shape, "serialization"): None for shape in shapes if shape}
        models |= {(shape, "validation"): None for shape in (contract.body, contract.form) if shape}
    _, schemas = models_json_schema(list(models), ref_template=f"{_SCHEMAS}{{model}}")
    definitions: dict[str, Json] = schemas["$defs"]
    return definitions


def _tidy(schema: Any) -> Any:
    """Remove titles, empty defaults, and the defaults of required fields from a schema."""
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    tidied = {
        name: _tidy(value)
        for name, value in schema.items()
        if not (name == "title" and isinstance(value, str)) and (name, value) != ("default", "")
    }
    for name in tidied.get("required", ()):
        tidied["properties"][name].pop("default", None)
    return tidied


def _complete(call: Json, operation: Operation, schemas: Mapping[str, Json]) -> None:
    """Add examples to an operation, because FastAPI would strip their nulls, and remove FastAPI's own
    validation error.
    """
    query = operation.query.__name__ if operation.query else ""
    places = {"path": "path", "query": query}
    for parameter in call.setdefault("parameters", []):
        parameter["schema"] = _tidy(parameter["schema"])
        parameter["schema"].pop("description", None)
        shape = places.get(parameter["in"]) or operation.contract.headers.__name__  # type: ignore[union-attr]
        if (example := example_values().get(f"{shape}.{parameter['name']}")) is not None:
            parameter["example"] = example
    successes = [call["responses"][str(reply.status)] for reply in operation.replies]
    for holder in (*successes, call.get("requestBody", {})):
        for media_type, content in holder.get("content", {}).items():
            if media_type != PROBLEM and "schema" in content:
                name = content["schema"]["$ref"].rpartition("/")[2]
                content["example"] = example_of(name, schemas)
    if "ValidationError" in str(call["responses"].get("422")):
        del call["responses"]["422"]


def _fields(shape: type[BaseModel]) -> dict[str, Json]:
    properties: dict[str, Json] = _tidy(shape.model_json_schema())["properties"]
    return properties


def _description_and_schema(schema: Json) -> Json:
    """Split the schema of a parameter or header into its description and the remaining schema."""
    rest = {name: value for name, value in schema.items() if name != "description"}
    return {"description": schema["description"], "schema": rest}


def _headers(names: Iterable[str]) -> Json:
    fields = _fields(ReplyHeaders)
    # No response header is marked as required: `Retry-After` is sent only if the delay is known, and proxies
    # may remove headers.
    return {name: _description_and_schema(fields[name]) for name in names}


def _error_examples(operations: Sequence[Operation]) -> dict[str, Json]:
    errors = {
        error.code: error
        for operation in operations
        if not operation.is_openai
        for errors in _errors_of(operation).values()
        for error in errors
    }
    return {code: {"value": _example_problem(error)} for code, error in sorted(errors.items())}


def _example_problem(error: type[GroundworkError]) -> Json:
    return {
        "type": f"urn:groundwork:error:{error.code}",
        "title": error.code,
        "status": error.status,
        "detail": (error.__doc__ or "").strip().splitlines()[0],
        "hints": [],
    }


def _text_of(error: type[GroundworkError]) -> str:
    """Return an error's code and the first line of its docstring."""
    return f"`{error.code}`: {(error.__doc__ or '').strip().splitlines()[0]}"
