"""Validates document batches before anything is written. Pure: JSON in, immutable actions out.

As in the service, one invalid property rejects the whole batch. Only errors that depend on stored documents
(a merge into a missing key) are reported per document.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from pydantic import JsonValue

from local.search_server import edm
from local.search_server.edm import Vector
from local.search_server.errors import RequestError, too_large
from local.search_server.schema import JsonObject, Schema

MAX_ACTIONS: Final = 1000
MAX_BATCH_BYTES: Final = 16 * 1024 * 1024
_KEY: Final = re.compile(r"[A-Za-z0-9_\-=]{1,1024}")


class ActionKind(StrEnum):
    UPLOAD = "upload"
    MERGE = "merge"
    MERGE_OR_UPLOAD = "mergeOrUpload"
    DELETE = "delete"


@dataclass(frozen=True)
class Document:
    """A document in canonical form. `body` excludes vectors, which are stored by field path."""

    body: JsonObject
    vectors: Mapping[str, Vector] = field(default_factory=dict)


@dataclass(frozen=True)
class Action:
    """A validated indexing action. `given` and `vectors` contain only the properties sent in the request."""

    kind: ActionKind
    key: str
    given: JsonObject
    vectors: Mapping[str, Vector | None]


def parse_batch(schema: Schema, batch: JsonValue) -> list[Action]:
    """Parse the body of an indexing request into actions, in request order.

    Raises:
        RequestError: 400 if malformed, 413 for too many actions.
    """
    rows = batch.get("value") if isinstance(batch, dict) else None
    if not isinstance(rows, list) or not rows:
        raise RequestError(
            "The request is invalid. Details: actions : No indexing actions found in the request."
        )
    if len(rows) > MAX_ACTIONS:
        raise too_large(f"Only {MAX_ACTIONS} actions may be sent in one batch; got {len(rows)}.")
    return [_parse_action(schema, row, position) for position, row in enumerate(rows)]


def document_of_upload(schema: Schema, action: Action) -> Document:
    """Return the document that an upload stores. Properties missing from the request become null or empty."""
    return Document(
        _complete(schema, action.given),
        {path: vector for path, vector in action.vectors.items() if vector is not None},
    )


def merge_into(schema: Schema, stored: Document, action: Action) -> Document:
    """Return the stored document with the properties of the action replaced. Collections are replaced as a
    whole.
    """
    body = _complete(schema, {**stored.body, **action.given})
    vectors = {**stored.vectors, **action.vectors}
    return Document(body, {path: vector for path, vector in vectors.items() if vector is not None})


def check_key(key: str) -> str:
    if not _KEY.fullmatch(key):
        raise RequestError(
            f"Invalid document key: '{key[:100]}'. Keys can only contain letters, digits, underscore (_),"
            " dash (-), or equal sign (=), and at most 1024 of them.",
            code="InvalidDocumentKey",
        )
    return key


def _parse_action(schema: Schema, row: JsonValue, position: int) -> Action:
    if not isinstance(row, dict):
        raise RequestError(f"The request is invalid. Details: actions : {position}: not an object.")
    properties = dict(row)
    name = properties.pop("@search.action", ActionKind.UPLOAD.value)
    try:
        kind = ActionKind(str(name))
    except ValueError:
        raise RequestError(
            f"The request is invalid. Details: actions : {position}: unknown action '{name}'."
        ) from None
    key_name = schema.key.path
    key = properties.get(key_name)
    if not isinstance(key, str):
        raise RequestError(
            f"The request is invalid. Details: actions : {position}: Document key cannot be missing."
        )
    check_key(key)
    if kind is ActionKind.DELETE:
        properties = {key_name: key}
    vectors = _take_vectors(schema, properties)
    given = {name: _canonical(schema, name, value) for name, value in properties.items()}
    return Action(kind, key, given, vectors)


def _take_vectors(schema: Schema, properties: JsonObject) -> dict[str, Vector | None]:
    vectors: dict[str, Vector | None] = {}
    for vector_field in schema.vector_fields:
        if vector_field.path in properties:
            value = properties.pop(vector_field.path)
            # An empty list clears the field, as null does.
            dimensions = vector_field.definition.dimensions or 0
            vectors[vector_field.path] = (
                edm.vector_of(value, dimensions, vector_field.path) if value else None
            )
    return vectors


def _canonical(schema: Schema, name: str, value: JsonValue) -> JsonValue:
    if name not in schema.fields:
        raise RequestError(
            f"The request is invalid. Details: parameters : The property '{name}' does not exist on type"
            " 'search.documentFields'. Make sure to only use property names that the type defines."
        )
    field = schema.fields[name]
    if field.element_type is None:
        return None if value is None else edm.canonical_scalar(field.type, value, name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise RequestError(
            f"The request is invalid. Details: '{name}' of type '{field.type}' must be an array."
        )
    if any(item is None for item in value):
        raise RequestError(f"The request is invalid. Details: the collection '{name}' cannot contain null.")
    return [edm.canonical_scalar(field.element_type, item, name) for item in value]


def _complete(schema: Schema, properties: JsonObject) -> JsonObject:
    """Return all properties except vectors in declared order, with null or an empty list for missing ones."""
    ordinary = (field for field in schema.fields.values() if not field.is_vector)
    return {field.path: properties.get(field.path, [] if field.element_type else None) for field in ordinary}
