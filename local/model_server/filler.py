"""Makes a value that fits any JSON schema, so that parsing never fails. It means nothing; pure.

Knows what structured outputs may use: $ref, $defs, anyOf, enum, const, objects, arrays and their bounds.
"""

from pydantic import JsonValue

Schema = dict[str, JsonValue]
FILLER_TEXT = "not known to the local model"
MAX_DEPTH = 12  # a schema may refer to itself


def fill(schema: JsonValue, root: JsonValue = None, depth: int = 0) -> JsonValue:
    """The simplest value that the schema allows: null, the first of an enum, the shortest list.

    Args:
        root: the schema that a $ref looks into; this one, if absent.
    """
    root = root or schema
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return None
    if isinstance(target := schema.get("$ref"), str):
        return fill(_resolve(target, root), root, depth + 1)
    for word in ("const", "default"):
        if word in schema:
            return schema[word]
    for word in ("enum", "anyOf", "oneOf", "allOf"):
        if isinstance(options := schema.get(word), list) and options:
            if word == "enum":
                return options[0]
            return None if {"type": "null"} in options else fill(options[0], root, depth + 1)
    return _typed_value(schema, root, depth)


def _resolve(target: str, root: JsonValue) -> JsonValue:
    for step in filter(None, target.removeprefix("#").split("/")):
        root = root.get(step) if isinstance(root, dict) else None
    return root


def _typed_value(schema: Schema, root: JsonValue, depth: int) -> JsonValue:
    kind = schema.get("type")
    properties = schema.get("properties")
    if isinstance(properties, dict):
        return {name: fill(part, root, depth + 1) for name, part in properties.items()}
    if kind == "array":
        return [fill(schema.get("items"), root, depth + 1) for _ in range(_bound(schema, "minItems"))]
    if kind in ("integer", "number"):
        above = schema.get("exclusiveMinimum")
        return _bound(schema, "minimum") if above is None else _bound(schema, "exclusiveMinimum") + 1
    if kind == "string":
        limit = schema.get("maxLength")
        return FILLER_TEXT[: limit if isinstance(limit, int) else None].ljust(
            _bound(schema, "minLength"), "."
        )
    if kind == "boolean":
        return False
    return {} if kind == "object" else None


def _bound(schema: Schema, name: str) -> int:
    value = schema.get(name)
    return int(value) if isinstance(value, int | float) else 0
