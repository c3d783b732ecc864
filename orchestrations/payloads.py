"""payloads."""

import json
from typing import Any


class Payload(dict[str, Any]):
    """The declared type of an activity's input: the worker takes plain classes, not `dict[…]`."""


def as_object(value: Any) -> dict[str, Any]:
    """The JSON object of an input, an activity's result or an external event.

    `raise_event` encodes twice, and 1.7 and 2.x differ in what they decode; so text is decoded here.

    Raises:
        ValueError: it is no JSON object.
    """
    decoded = json.loads(value) if isinstance(value, str) else value
    if not isinstance(decoded, dict):
        raise ValueError("expected a JSON object")
    return decoded
