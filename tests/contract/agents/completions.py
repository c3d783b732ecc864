"""Streamed chat completions for a scripted server, in the format of the OpenAI protocol."""

import json
from typing import Any

from tests.contract.clients.scripted_server import Answer

USAGE = {"prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60}


def words(text: str | None, *, ending: str = "stop") -> Answer:
    """Return a model turn that consists of text only."""
    return _completion({"role": "assistant", "content": text}, ending)


def calls(*tool_calls: tuple[str, str], text: str | None = None, same_id: str | None = None) -> Answer:
    """Return a model turn that calls functions, each given as its name and its arguments as the model wrote
    them.
    """
    listed = [
        {
            "index": place,
            "id": f"call_{place}" if same_id is None else same_id,
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        for place, (name, arguments) in enumerate(tool_calls)
    ]
    return _completion({"role": "assistant", "content": text, "tool_calls": listed}, "tool_calls")


def _completion(delta: dict[str, Any], ending: str) -> Answer:
    about = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunk = {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": ending}]}
    used = {**about, "choices": [], "usage": USAGE}
    lines = [f"data: {json.dumps(one)}\n\n" for one in (chunk, used)]
    body = "".join((*lines, "data: [DONE]\n\n"))
    return Answer(body=body.encode(), headers={"content-type": "text/event-stream"})
