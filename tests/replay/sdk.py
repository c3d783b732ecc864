"""Calls an orchestrator through the SDK's own handler, and checks rules that every replay must satisfy."""

import json
import warnings
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeAlias

from azure.durable_functions import DurableOrchestrationContext, Orchestrator

from tests.replay.history import JsonObject, trigger

MAX_PAYLOAD_BYTES = 16 * 1024
ERROR_LABEL = "\n\n$OutOfProcData$:"
GeneratorFunction: TypeAlias = Callable[[DurableOrchestrationContext], Generator[Any, Any, Any]]


class NonDeterminismError(AssertionError):
    """Error raised if two replays of a history differ, or a replay contradicts an earlier one."""


class PayloadError(AssertionError):
    """Error raised if a payload is too large, or contains anything other than plain JSON."""


class Handler:
    """A handler for one orchestrator, which is a generator function or the result of a decorator of DFApp or
    Blueprint.
    """

    def __init__(self, orchestrator: Any) -> None:
        function = getattr(orchestrator, "_function", None)
        self._handle: Callable[[str], str] = (
            Orchestrator.create(orchestrator) if function is None else function.get_user_function()
        )

    def replay(self, history: Sequence[JsonObject], instance_id: str, input_json: str) -> JsonObject:
        """Return the orchestrator's state after a history.

        Raises:
            NonDeterminismError: A second replay of the same history returned a different state.
            PayloadError: The output or the custom status is too large or isn't plain JSON.
        """
        body = trigger(history, instance_id, input_json)
        first, second = self._run(body), self._run(body)
        if first != second:
            raise NonDeterminismError(f"two replays of one history differ: {first_difference(first, second)}")
        for name in ("output", "customStatus"):
            check_payload(first.get(name), name)
        return first

    def _run(self, body: str) -> JsonObject:
        with warnings.catch_warnings():
            # The durable SDK passes no types, and azure-functions warns about that once per process.
            warnings.filterwarnings("ignore", message=".*df_(loads|dumps) was called without expected_type")
            try:
                text = self._handle(body)
            # The SDK wraps exceptions of the orchestrator.
            except Exception as error:
                _, label, text = str(error).partition(ERROR_LABEL)
                if not label:
                    raise
        state: JsonObject = json.loads(text)
        return state


def check_payload(value: object, name: str) -> None:
    """Raise PayloadError unless a payload is plain JSON below the size limit.

    Raises:
        PayloadError: The payload is too large or isn't plain JSON.
    """
    text = json.dumps(value)
    if len(text.encode()) > MAX_PAYLOAD_BYTES:
        raise PayloadError(f"{name} takes {len(text.encode())} bytes, more than {MAX_PAYLOAD_BYTES}")
    if '"__class__"' in text:
        # The codec writes names of modules and classes, so renaming one of them would break running
        # instances.
        raise PayloadError(f"{name} carries a Python object, not plain JSON: {text[:200]}")


def first_difference(left: Any, right: Any, path: str = "state") -> str:
    """Return a message with the path of the first difference between two JSON values, and both values."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted(left.keys() | right.keys()):
            if left.get(key) != right.get(key):
                return first_difference(left.get(key), right.get(key), f"{path}.{key}")
    if isinstance(left, list) and isinstance(right, list):
        for index, (one, other) in enumerate(zip(left, right, strict=False)):
            if one != other:
                return first_difference(one, other, f"{path}[{index}]")
        return f"{path} has {len(left)} entries, then {len(right)}"
    return f"{path} is {left!r:.200}, then {right!r:.200}"
