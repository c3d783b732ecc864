"""Facet counts over the matching documents: by value, by interval, or by given bounds."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
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
_DATE_INTERVALS: Final = ("minute", "hour", "day", "week", "month", "quarter", "year")

Counts = Counter[SqlValue]


@dataclass(frozen=True)
class Facet:
    """One facet expression such as `rating,interval:2` or `category,count:5,sort:value`."""

    field: Field
    count: int = DEFAULT_COUNT
    sort: str = "count"
    interval: str | None = None
    bounds: tuple[str, ...] = ()


def count_facets(view: View, expressions: Iterable[str], matching: Slots) -> dict[str, list[JsonObject]]:
    """Rows by field path, as `@search.facets`.

    Raises:
        RequestError: 400, an unknown field or option.
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
        if name not in ("count", "sort", "interval", "values") or not separator or name in values:
            raise RequestError(f"Invalid facet option '{option}' for the field '{path}'.")
        values[name] = value
    if values.get("sort", "count") not in _SORTS or not values.get("count", "1").isdecimal():
        raise RequestError(f"Invalid facet options for the field '{path}': '{expression}'.")
    bounds = tuple(part for part in values.get("values", "").split("|") if part)
    count = int(values.get("count", DEFAULT_COUNT))
    return Facet(field, count, values.get("sort", "count"), values.get("interval"), bounds)


def _count_values(view: View, field: Field, matching: Slots) -> Counts:
    """How many matching documents hold each value. Counted in Python: the match may be most of the index."""
    if field.has_column:
        found = view.connection.execute(f"SELECT slot, {field.column} FROM columns")  # noqa: S608 - our column name
    else:
        found = view.connection.execute("SELECT slot, value FROM elements WHERE field = ?", (field.number,))
    wanted = set(matching.tolist())
    return Counter(value for slot, value in found if value is not None and slot in wanted)


def _rows(facet: Facet, counts: Counts) -> list[JsonObject]:
    edm_type = facet.field.element_type or facet.field.type
    if facet.bounds:
        return _between(edm_type, counts, facet)
    if facet.interval is not None:
        counts = _by_interval(edm_type, counts, facet.interval)
    rows = sorted(counts.items(), key=lambda one: _sortable(one[0]), reverse=facet.sort == "-value")
    if facet.sort in ("count", "-count"):
        rows.sort(key=lambda one: one[1], reverse=facet.sort == "count")
    if facet.interval is None:
        rows = rows[: facet.count]
    return [{"value": _json_value(edm_type, value), "count": count} for value, count in rows]


def _between(edm_type: str, counts: Counts, facet: Facet) -> list[JsonObject]:
    bounds = sorted(_bound(edm_type, text, facet.field.path) for text in facet.bounds)
    rows: list[JsonObject] = []
    for low, high in zip([None, *bounds], [*bounds, None], strict=True):
        count = sum(
            number
            for value, number in counts.items()
            if isinstance(value, int | float)
            and (low is None or value >= low)
            and (high is None or value < high)
        )
        ends: JsonObject = {
            name: _json_value(edm_type, end) for name, end in (("from", low), ("to", high)) if end is not None
        }
        rows.append({**ends, "count": count})
    return rows


def _bound(edm_type: str, text: str, path: str) -> int | float:
    try:
        if edm_type == edm.DATE:
            return edm.microseconds(edm.parse_date(text))
        if edm_type in edm.NUMBER_TYPES:
            return float(text) if edm_type == edm.DOUBLE else int(text)
    except ValueError as error:
        raise RequestError(f"Invalid facet value '{text}' for the field '{path}'.") from error
    raise RequestError(f"Facet values are only for numbers and dates; '{path}' is '{edm_type}'.")


def _by_interval(edm_type: str, counts: Counts, interval: str) -> Counts:
    grouped: Counts = Counter()
    for value, count in counts.items():
        grouped[_bucket(edm_type, value, interval)] += count
    return grouped


def _bucket(edm_type: str, value: SqlValue, interval: str) -> SqlValue:
    """The lower end of the interval that holds the value."""
    if edm_type == edm.DATE and interval in _DATE_INTERVALS and isinstance(value, int):
        moment = edm.EPOCH + timedelta(microseconds=value)
        return edm.microseconds(_truncated(moment, interval))
    try:
        width = float(interval)
    except ValueError:
        width = 0
    if not 0 < width < math.inf or edm_type not in edm.NUMBER_TYPES or not isinstance(value, int | float):
        raise RequestError(f"Invalid facet interval '{interval}' for a field of type '{edm_type}'.")
    low = value // width * width
    return low if edm_type == edm.DOUBLE else int(low)


def _truncated(moment: datetime, interval: str) -> datetime:
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    starts = {
        "minute": moment.replace(second=0, microsecond=0),
        "hour": moment.replace(minute=0, second=0, microsecond=0),
        "day": day,
        "week": day - timedelta(days=day.weekday()),
        "month": day.replace(day=1),
        "quarter": day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
        "year": day.replace(month=1, day=1),
    }
    return starts[interval]


def _sortable(value: SqlValue) -> tuple[str, float]:
    return (value, 0.0) if isinstance(value, str) else ("", float(value or 0))


def _json_value(edm_type: str, value: SqlValue) -> JsonValue:
    if edm_type == edm.DATE and isinstance(value, int):
        return (edm.EPOCH + timedelta(microseconds=value)).isoformat().replace("+00:00", "Z")
    return bool(value) if edm_type == edm.BOOLEAN else value
