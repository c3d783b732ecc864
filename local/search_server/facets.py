"""Facets: counts of the matching documents per field value."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from pydantic import JsonValue

from local.search_server import edm
from local.search_server.edm import SqlValue
from local.search_server.errors import RequestError
from local.search_server.index import View
from local.search_server.schema import Field, JsonObject, Schema
from local.search_server.text_index import Slots

DEFAULT_COUNT: Final = 10
_SORTS: Final = ("count", "-count", "value", "-value")

Counts = Counter[SqlValue]


@dataclass(frozen=True)
class Facet:
    """A parsed facet expression, such as `category,count:5,sort:value`."""

    field: Field
    count: int = DEFAULT_COUNT
    sort: str = "count"


def count_facets(view: View, expressions: Iterable[str], matching: Slots) -> dict[str, list[JsonObject]]:
    """Return the facet counts by field path, in the format of `@search.facets`.

    Raises:
        RequestError: 400, for an unknown or unsuitable field, or an unknown option.
    """
    facets = [parse_facet(view.schema, expression) for expression in expressions]
    return {facet.field.path: _rows(facet, _count_values(view, facet.field, matching)) for facet in facets}


def parse_facet(schema: Schema, expression: str) -> Facet:
    path, *options = (part.strip() for part in expression.split(","))
    field = schema.field(path, "facets")
    if not field.definition.facetable or not (field.has_column or field.has_elements):
        raise RequestError(f"The field '{path}' in the facet expression is not facetable.")
    values = {}
    for option in options:
        name, separator, value = option.partition(":")
        if name not in ("count", "sort") or not separator or name in values:
            raise RequestError(f"Invalid facet option '{option}' for the field '{path}'.")
        values[name] = value
    if values.get("sort", "count") not in _SORTS or not values.get("count", "1").isdecimal():
        raise RequestError(f"Invalid facet options for the field '{path}': '{expression}'.")
    return Facet(field, int(values.get("count", DEFAULT_COUNT)), values.get("sort", "count"))


def _count_values(view: View, field: Field, matching: Slots) -> Counts:
    """Return the number of matching documents per value. Values are counted in Python, because SQLite can't
    bind that many slots.
    """
    if field.has_column:
        rows = view.connection.execute(f"SELECT slot, {field.column} FROM columns")  # noqa: S608 - our column name
    else:
        rows = view.connection.execute("SELECT slot, value FROM elements WHERE field = ?", (field.number,))
    slots = set(matching.tolist())
    return Counter(value for slot, value in rows if value is not None and slot in slots)


def _rows(facet: Facet, counts: Counts) -> list[JsonObject]:
    edm_type = facet.field.element_type or facet.field.type
    rows = sorted(counts.items(), key=lambda one: _sortable(one[0]), reverse=facet.sort == "-value")
    if facet.sort in ("count", "-count"):
        rows.sort(key=lambda one: one[1], reverse=facet.sort == "count")
    return [{"value": _json_value(edm_type, value), "count": count} for value, count in rows[: facet.count]]


def _sortable(value: SqlValue) -> tuple[str, float]:
    return (value, 0.0) if isinstance(value, str) else ("", float(value or 0))


def _json_value(edm_type: str, value: SqlValue) -> JsonValue:
    if edm_type == edm.DATE and isinstance(value, int):
        return (edm.EPOCH + timedelta(microseconds=value)).isoformat().replace("+00:00", "Z")
    return bool(value) if edm_type == edm.BOOLEAN else value
