"""Makes a value that fits any JSON schema, so that parsing never fails. It means nothing; pure.

Knows what structured outputs may use: $ref, $defs, anyOf, enum, const, objects, arrays and their bounds.
"""

from pydantic import JsonValue

Schema = dict[str, JsonValue]
FILLER_TEXT = "not known to the local model"
MAX_DEPTH = 12  # a schema may refer to itself


def fill(schema: Schema) -> JsonValue:
    """The simplest value that the schema allows: null, the first of an enum, the shortest list."""
    return _value(schema, schema, 0)


def _value(schema: JsonValue, root: Schema, depth: int) -> JsonValue:
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return None
    if isinstance(target := schema.get("$ref"), str):
        return _value(_resolve(target, root), root, depth + 1)
    if "const" in schema or "default" in schema:
        return schema.get("const", schema.get("default"))
    if isinstance(choices := schema.get("enum"), list) and choices:
        return choices[0]
    for word in ("anyOf", "oneOf", "allOf"):
        if isinstance(options := schema.get(word), list) and options:
            return _value(_simplest(options), root, depth + 1)
    return _typed_value(schema, root, depth)


def _simplest(options: list[JsonValue]) -> JsonValue:
    """null where it is allowed, else the first option."""
    return next((option for option in options if option == {"type": "null"}), options[0])


def _resolve(target: str, root: Schema) -> JsonValue:
    found: JsonValue = root
    for step in target.removeprefix("#").strip("/").split("/"):
        if step:
            found = found.get(step) if isinstance(found, dict) else None
    return found


def _typed_value(schema: Schema, root: Schema, depth: int) -> JsonValue:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = "null" if "null" in kind else kind[0]
    if kind == "object" or "properties" in schema:
        return _object(schema, root, depth)
    if kind == "array":
        count = _bound(schema, "minItems", 0)
        return [_value(schema.get("items"), root, depth + 1) for _ in range(count)]
    if kind in {"integer", "number"}:
        return _number(schema, is_integer=kind == "integer")
    if kind == "boolean":
        return False
    return _text(schema) if kind == "string" else None


def _object(schema: Schema, root: Schema, depth: int) -> JsonValue:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {name: _value(part, root, depth + 1) for name, part in properties.items()}


def _number(schema: Schema, *, is_integer: bool) -> int | float:
    least = schema.get("minimum")
    above = schema.get("exclusiveMinimum")
    most = schema.get("maximum")
    if isinstance(least, int | float):
        return least
    if isinstance(above, int | float):
        return above + 1
    if isinstance(most, int | float) and most < 0:
        return most
    return 0 if is_integer else 0.0


def _text(schema: Schema) -> str:
    formats = {
        "date": "1970-01-01",
        "date-time": "1970-01-01T00:00:00Z",
        "uuid": "00000000-0000-0000-0000-000000000000",
    }
    text = formats.get(str(schema.get("format")), FILLER_TEXT)
    return text[: _bound(schema, "maxLength", len(text))].ljust(_bound(schema, "minLength", 0), ".")


def _bound(schema: Schema, name: str, otherwise: int) -> int:
    value = schema.get(name)
    return value if isinstance(value, int) else otherwise
