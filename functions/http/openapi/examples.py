"""Examples of request bodies and replies in the API description, composed from the values in examples.json.

A value is stored under the name of its model, `Model.field`, or `field` for any model; the most specific
entry wins. Fields without a value become null, false, empty or 0, as their schema allows. Strings need a
value.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

Json = dict[str, Any]


@cache
def example_values() -> Mapping[str, Any]:
    """Return the contents of examples.json, read once per process."""
    values: Json = json.loads(Path(__file__).with_name("examples.json").read_text(encoding="utf-8"))
    return values


def example_of(model: str, schemas: Mapping[str, Json]) -> Any:
    """Build an example of a model, including the models that it refers to. `schemas` contains the schemas by
    model name.

    Raises:
        LookupError: a string field has no value; the message names it.
    """
    values = example_values()
    if model in values:
        return values[model]
    schema = schemas[model]
    if "properties" not in schema:
        return _value(model, "", schema, schemas)
    return {name: _value(model, name, field, schemas) for name, field in schema["properties"].items()}


def _value(model: str, name: str, field: Json, schemas: Mapping[str, Json]) -> Any:
    values = example_values()
    if f"{model}.{name}" in values:
        return values[f"{model}.{name}"]
    if (shape := _shape_in(field)) is not None:
        return example_of(shape, schemas)
    if (items := field.get("items")) and (shape := _shape_in(items)) is not None:
        return [example_of(shape, schemas)]
    if "const" in field or "enum" in field:
        return field.get("const") or field["enum"][0]
    if name in values and _fits(values[name], field):
        return values[name]
    return _nothing(model, name, field)


def _shape_in(field: Json) -> str | None:
    """Return the name of the model that a schema refers to, or None. If there are several, the first is
    returned.
    """
    options = [field, *field.get("anyOf", ()), *field.get("oneOf", ())]
    return next((str(one["$ref"]).rpartition("/")[2] for one in options if "$ref" in one), None)


def _kinds(field: Json) -> set[str]:
    return {str(one["type"]) for one in (field, *field.get("anyOf", ())) if "type" in one}


def _fits(value: Any, field: Json) -> bool:
    """Return whether the schema of a field allows the type of an example value."""
    names = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}
    return names[type(value)] in _kinds(field)


def _nothing(model: str, name: str, field: Json) -> Any:
    if field.get("format") == "date-time":
        return "2026-03-02T09:15:00Z"
    kinds = _kinds(field)
    for kind, empty in (
        ("null", None),
        ("boolean", False),
        ("array", []),
        ("object", {}),
        ("integer", 0),
        ("number", 0.0),
    ):
        if kind in kinds:
            return empty
    raise LookupError(f"examples.json needs {model}.{name}")
