"""Which fields of a document leave the server: the selected ones that are retrievable, in declared order."""

from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from local.search_server import edm
from local.search_server.definition import FieldDefinition
from local.search_server.edm import Vector
from local.search_server.errors import RequestError
from local.search_server.schema import JsonObject, Schema

_EVERYTHING: Final = ("*",)


class Projection:
    """
    Raises:
        RequestError: 400, a selected field that is unknown or not retrievable.
    """

    def __init__(self, schema: Schema, select: Sequence[str]) -> None:
        self._fields = schema.definition.fields
        paths = [] if tuple(select) == _EVERYTHING else [path.strip() for path in select]
        self._paths = frozenset(paths)
        known = _paths(self._fields, "")
        for path in paths:
            if path not in known:
                raise RequestError(
                    f"Invalid expression in $select: Could not find a property named '{path}'."
                )
            if not known[path]:
                raise RequestError(f"Invalid expression in $select: The field '{path}' is not retrievable.")

    @property
    def has_vectors(self) -> bool:
        return any(field.type == edm.VECTOR and self._wanted(field, field.name) for field in self._fields)

    def apply(self, body: JsonObject, vectors: Mapping[str, Vector]) -> JsonObject:
        row: JsonObject = {}
        for field in self._fields:
            if not self._wanted(field, field.name):
                continue
            if field.type == edm.VECTOR:
                vector = vectors.get(field.name)
                row[field.name] = None if vector is None else vector.tolist()
            else:
                row[field.name] = self._value(field, field.name, body.get(field.name))
        return row

    def _wanted(self, field: FieldDefinition, path: str) -> bool:
        if field.retrievable is False:
            return False
        if not self._paths:
            return True
        parts = path.split("/")
        selected = any("/".join(parts[:length]) in self._paths for length in range(1, len(parts) + 1))
        return selected or any(one.startswith(path + "/") for one in self._paths)

    def _value(self, field: FieldDefinition, path: str, value: JsonValue) -> JsonValue:
        if field.fields is None or value is None:
            return value
        if isinstance(value, list):
            return [self._value(field, path, item) for item in value]
        if not isinstance(value, dict):
            return value
        inner = ((one, f"{path}/{one.name}") for one in field.fields)
        return {
            one.name: self._value(one, at, value.get(one.name)) for one, at in inner if self._wanted(one, at)
        }


def _paths(fields: Sequence[FieldDefinition], prefix: str) -> dict[str, bool]:
    """Every path that may be selected, and whether it may be retrieved."""
    known: dict[str, bool] = {}
    for field in fields:
        known[prefix + field.name] = field.retrievable is not False
        known.update(_paths(field.fields or [], f"{prefix}{field.name}/"))
    return known
