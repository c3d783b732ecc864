"""The protocol between host and worker: descriptions of functions, values and calls as JSON. Pure.

The host knows functions only by their bindings; the worker holds the app.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

CALL_HEADER = "x-local-call"
"""Names the function on a request that the host passes on."""
KEY_HEADER = "x-local-key"
INVOCATION_HEADER = "x-ms-invocation-id"

# One entry of function.json: camelCase keys, as get_raw_bindings() writes it.
BindingDocument: TypeAlias = dict[str, Any]
ValueType = Literal["string", "json", "bytes", "model_binding_data"]


@dataclass(frozen=True)
class FunctionDocument:
    """The description of a function for its host.

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
        """The trigger's type, such as httpTrigger."""
        return str(self.trigger["type"])


@dataclass(frozen=True)
class Value:
    """The text or bytes of a trigger, its metadata, or a result."""

    type: ValueType
    content: str | bytes


@dataclass(frozen=True)
class Call:
    """A call of a function."""

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
    """Parse the output of `dump_call`."""
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
