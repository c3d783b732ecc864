"""Generates web/build/types.ts: the API's models as TypeScript types, for type-checking the web page.

The bundle needs no types, so the file is generated for each check and never committed.
"""

import json
from pathlib import Path
from typing import Any

from functions.api import app
from functions.http.openapi.description import describe
from scripts.web_build import WEB

Json = dict[str, Any]
_SIMPLE = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def typescript(schemas: Json) -> str:
    """Return the TypeScript source with an exported type for each schema, sorted by name."""
    types = [f"export type {_name(name)} = {_type(schema)};" for name, schema in sorted(schemas.items())]
    return "\n".join(types) + "\n"


def _type(schema: Json) -> str:
    if "$ref" in schema:
        return _name(schema["$ref"].rpartition("/")[2])
    for joined in ("anyOf", "oneOf"):
        if joined in schema:
            return " | ".join(dict.fromkeys(_type(one) for one in schema[joined]))
    if "const" in schema or "enum" in schema:
        return " | ".join(json.dumps(one) for one in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"readonly ({_type(schema.get('items', {}))})[]"
    if schema.get("type") == "object":
        return _object(schema)
    return _SIMPLE.get(str(schema.get("type")), "unknown")


def _object(schema: Json) -> str:
    if "properties" not in schema:
        values = schema.get("additionalProperties")
        return f"Record<string, {_type(values) if isinstance(values, dict) else 'unknown'}>"
    required = schema.get("required", [])
    fields = [
        f"{json.dumps(name)}{'' if name in required else '?'}: {_type(field)}"
        for name, field in schema["properties"].items()
    ]
    return "{ " + "; ".join(fields) + " }"


def _name(schema: str) -> str:
    return schema.replace("-", "")


def write() -> Path:
    """Write the types of the current API description, and return the path of the file."""
    path = WEB / "build" / "types.ts"
    path.parent.mkdir(exist_ok=True)
    path.write_text(typescript(describe(app())["components"]["schemas"]), encoding="utf-8")
    return path


if __name__ == "__main__":
    print(write())
