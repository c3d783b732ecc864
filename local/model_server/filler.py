"""Placeholder values for any JSON schema, so that a client can always parse the reply. Pure.

Supports what structured outputs may use: $ref, $defs, anyOf, enum, const, objects, arrays and their bounds.
"""

from pydantic import JsonValue

FILLER_TEXT = "not known to the local model"
MAX_DEPTH = 12  # nesting limit, which ends the recursion of self-referential schemas


def fill(schema: JsonValue, root: JsonValue = None, depth: int = 0) -> JsonValue:
    """Return the simplest value that the schema allows, such as null, the first enum value or the shortest
    list.

    Args:
        root: schema that a $ref refers to; defaults to `schema`.
    """
    root = root or schema
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return None
    if isinstance(target := schema.get("$ref"), str):
        return fill(_resolve(target, root), root, depth + 1)
    for word in ("const", "default"):
        if word in schema:
            return schema[word]
    if isinstance(options := schema.get("enum"), list) and options:
        return options[0]
    for word in ("anyOf", "oneOf", "allOf"):
        if isinstance(options := schema.get(word), list) and options:
            return None if {"type": "null"} in options else fill(options[0], root, depth + 1)
    return _typed_value(schema, root, depth)


def _resolve(target: str, root: JsonValue) -> JsonValue:
    for step in target.split("/")[1:]:
        root = root.get(step) if isinstance(root, dict) else None
    return root


def _typed_value(schema: dict[str, JsonValue], root: JsonValue, depth: int) -> JsonValue:
    def bound(name: str) -> int:
        value = schema.get(name)
        return int(value) if isinstance(value, int | float) else 0

    if isinstance(properties := schema.get("properties"), dict):
        return {name: fill(part, root, depth + 1) for name, part in properties.items()}
    match schema.get("type"):
        case "array":
            return [fill(schema.get("items"), root, depth + 1) for _ in range(bound("minItems"))]
        case "integer" | "number":
            return bound("exclusiveMinimum") + 1 if "exclusiveMinimum" in schema else bound("minimum")
        case "string":
            return FILLER_TEXT[: bound("maxLength") or None].ljust(bound("minLength"), ".")
        case "boolean":
            return False
        case kind:
            return {} if kind == "object" else None
