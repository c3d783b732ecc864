"""Bodies of replies: the shapes that OpenAI's clients parse. Pure; time and ids come from the caller."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Json = dict[str, object]


@dataclass(frozen=True)
class ToolCall:
    """A call that the model asks for; `arguments` is a JSON string."""

    name: str
    arguments: str

    def call_id(self, salt: str) -> str:
        """A stable id: the same call in the same place of a conversation has the same one."""
        content = f"{salt}{self.name}{self.arguments}".encode()
        return f"call_{hashlib.blake2b(content, digest_size=12).hexdigest()}"


@dataclass(frozen=True)
class Reply:
    """What the model says: text, or one tool call, or a refusal."""

    text: str = ""
    tool_call: ToolCall | None = None
    refusal: str | None = None
    finish_reason: str = "stop"


@dataclass(frozen=True)
class Envelope:
    """What all bodies of one completion share. `created` is in Unix seconds."""

    completion_id: str
    created: int
    model: str


@dataclass(frozen=True)
class Usage:
    """What a call took; `hidden_tokens` are among those of the completion."""

    prompt_tokens: int
    completion_tokens: int
    hidden_tokens: int = 0

    @property
    def body(self) -> Json:
        total = self.prompt_tokens + self.completion_tokens
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": total,
            "completion_tokens_details": {"reasoning_tokens": self.hidden_tokens},
        }


def completion(envelope: Envelope, reply: Reply, usage: Usage) -> Json:
    """A whole chat completion."""
    spoken = reply.tool_call is None and reply.refusal is None
    message: Json = {"role": "assistant", "content": reply.text if spoken else None, "refusal": reply.refusal}
    if reply.tool_call:
        message["tool_calls"] = [_tool_call(envelope, reply.tool_call)]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish_reason}
    return {**_head(envelope, "chat.completion"), "choices": [choice], "usage": usage.body}


def chunk(envelope: Envelope, delta: Json, finish_reason: str | None = None) -> Json:
    """One piece of a streamed completion."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return {**_head(envelope, "chat.completion.chunk"), "choices": [choice]}


def usage_chunk(envelope: Envelope, usage: Usage) -> Json:
    """The extra last piece that include_usage asks for: no choices."""
    return {**_head(envelope, "chat.completion.chunk"), "choices": [], "usage": usage.body}


def tool_call_start(envelope: Envelope, call: ToolCall) -> Json:
    """The delta that opens a tool call; its arguments follow in pieces."""
    opened = ToolCall(call.name, "")
    return {
        "tool_calls": [
            {"index": 0, **_tool_call(envelope, opened), "id": call.call_id(envelope.completion_id)}
        ]
    }


def tool_call_piece(piece: str) -> Json:
    return {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}


def embedding_list(vectors: NDArray[np.float32], encoding_format: str, model: str, tokens: int) -> Json:
    """Vectors of shape (texts, dimensions) as a list of floats, or as base64 of little-endian float32."""
    rows: Sequence[object] = vectors.tolist()
    if encoding_format == "base64":
        rows = [base64.b64encode(vector.astype("<f4").tobytes()).decode() for vector in vectors]
    items = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": items, "model": model, "usage": usage}


def model_list(names: Sequence[str], created: int) -> Json:
    return {"object": "list", "data": [model_card(name, created) for name in names]}


def model_card(name: str, created: int) -> Json:
    return {"id": name, "object": "model", "created": created, "owned_by": "groundwork-local"}


def _tool_call(envelope: Envelope, call: ToolCall) -> Json:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.call_id(envelope.completion_id), "type": "function", "function": function}


def _head(envelope: Envelope, kind: str) -> Json:
    return {
        "id": envelope.completion_id,
        "object": kind,
        "created": envelope.created,
        "model": envelope.model,
    }
