"""Chat completions as an endpoint of the OpenAI protocol writes them, for a scripted server."""

import json
from typing import Any

from tests.contract.clients.scripted_server import Answer

USAGE = {"prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60}


def words(text: str | None, *, ending: str = "stop", **message: Any) -> Answer:
    """A turn in words."""
    return _completion({"role": "assistant", "content": text, **message}, ending)


def calls(*asked: tuple[str, str], text: str | None = None, same_id: str | None = None) -> Answer:
    """A turn that calls functions: (name, arguments as the model writes them)."""
    listed = [
        {
            "id": f"call_{place}" if same_id is None else same_id,
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        for place, (name, arguments) in enumerate(asked)
    ]
    return _completion({"role": "assistant", "content": text, "tool_calls": listed}, "tool_calls")


def _completion(message: dict[str, Any], ending: str) -> Answer:
    body = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": ending, "logprobs": None}],
        "usage": USAGE,
    }
    return Answer(body=json.dumps(body).encode())
