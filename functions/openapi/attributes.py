"""What models say of their fields in docstrings, for the description of the API. Pure.

A docstring ends with `Attributes:` and lines `name: text` or `first, second: text`, indented by four; longer
texts go on, indented by eight.
"""

import re
from typing import Any

_MARK = "\n\nAttributes:\n"
_ENTRY = re.compile(r"^ {4}([a-z_]+(?:, [a-z_]+)*): (.*(?:\n {8}.*)*)", re.MULTILINE)


def attributed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a model, with what its docstring says of a field at that field."""
    about, mark, listed = schema.get("description", "").partition(_MARK)
    if not mark:
        return schema
    said = {
        name: " ".join(text.split()) for names, text in _ENTRY.findall(listed) for name in names.split(", ")
    }
    properties = {
        name: {"description": said[name], **field} if name in said else field
        for name, field in schema["properties"].items()
    }
    return {**schema, "description": about, "properties": properties}
