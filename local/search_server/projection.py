"""Projection: the selected, retrievable fields of a document in a response, in declared order."""

from collections.abc import Mapping, Sequence

from local.search_server.edm import Vector
from local.search_server.errors import RequestError
from local.search_server.schema import JsonObject, Schema


class Projection:
    """The fields that a response contains. An empty selection or "*" means all retrievable fields.

    Raises:
        RequestError: 400, if a selected field is unknown or not retrievable.
    """

    def __init__(self, schema: Schema, select: Sequence[str]) -> None:
        paths = [] if tuple(select) == ("*",) else [path.strip() for path in select]
        for path in paths:
            if schema.field(path, "$select").definition.retrievable is False:
                raise RequestError(f"Invalid expression in $select: The field '{path}' is not retrievable.")
        self._fields = [
            field
            for field in schema.fields.values()
            if (field.path in paths or not paths) and field.definition.retrievable is not False
        ]

    @property
    def has_vectors(self) -> bool:
        return any(field.is_vector for field in self._fields)

    def apply(self, body: JsonObject, vectors: Mapping[str, Vector]) -> JsonObject:
        row: JsonObject = {}
        for field in self._fields:
            vector = vectors.get(field.path)
            row[field.path] = body.get(field.path) if vector is None else vector.tolist()
        return row
