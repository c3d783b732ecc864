"""JSON messages between host and worker: function descriptions, values and calls. Pure.

Only the worker loads the app; the host knows functions by their bindings.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

CALL_HEADER = "x-local-call"
"""Header of a forwarded HTTP request that names the function to call."""
KEY_HEADER = "x-local-key"
INVOCATION_HEADER = "x-ms-invocation-id"

# An entry of function.json with camelCase keys, as returned by get_raw_bindings().
BindingDocument: TypeAlias = dict[str, Any]
ValueType = Literal["string", "json", "bytes", "model_binding_data"]


@dataclass(frozen=True)
class FunctionDocument:
    """The description of a function, as the worker sends it to the host.

    Attributes:
        takes_place: whether a blob trigger is bound to an SDK type, and so receives the blob's name instead
            of its content.
    """

    name: str
    bindings: tuple[BindingDocument, ...]
    trigger: BindingDocument
    takes_place: bool = False

    @property
    def kind(self) -> str:
        """The type of the trigger, such as "httpTrigger"."""
        return str(self.trigger["type"])


@dataclass(frozen=True)
class Value:
    """A typed value: the input of a trigger, an item of its metadata, or a result."""

    type: ValueType
    content: str | bytes


@dataclass(frozen=True)
class Call:
    """A request to call a function, with its trigger input and metadata."""

    function: str
    trigger: Value
    metadata: Mapping[str, Value] = field(default_factory=dict)


def text_value(text: str) -> Value:
    return Value("string", text)


def json_value(document: object) -> Value:
    return Value("json", json.dumps(document))


def dump_call(call: Call) -> bytes:
    document = {
        "function": call.function,
        "trigger": _document(call.trigger),
        "metadata": {name: _document(value) for name, value in call.metadata.items()},
    }
    return json.dumps(document).encode()


def load_call(body: bytes) -> Call:
    """Parse a call serialised by `dump_call`."""
    document = json.loads(body)
    return Call(
        document["function"],
        _value(document["trigger"]),
        {name: _value(value) for name, value in document["metadata"].items()},
    )


def _document(value: Value) -> list[str]:
    if isinstance(value.content, bytes):
        return [value.type, "base64", base64.b64encode(value.content).decode()]
    return [value.type, "text", value.content]


def _value(document: list[Any]) -> Value:
    kind, encoding, content = document
    return Value(kind, base64.b64decode(content) if encoding == "base64" else content)
