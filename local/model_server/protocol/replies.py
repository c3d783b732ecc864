"""Bodies of replies: the shapes that OpenAI's clients parse. Pure; time and ids come from the caller."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Json = dict[str, object]


@dataclass(frozen=True)
class ToolCall:
    """A call that the model asks for; `arguments` is a JSON string."""

    name: str
    arguments: str


@dataclass(frozen=True)
class Reply:
    """What the model says: text, or one tool call, or a refusal."""

    text: str = ""
    tool_call: ToolCall | None = None
    refusal: str | None = None
    finish_reason: str = "stop"

    @property
    def spoken(self) -> str:
        """What costs tokens: the text, the arguments or the refusal."""
        return self.tool_call.arguments if self.tool_call else self.text or self.refusal or ""

    def saying(self, text: str) -> "Reply":
        """The reply with that text, or with those arguments of its call."""
        if self.tool_call:
            return replace(self, tool_call=replace(self.tool_call, arguments=text))
        return replace(self, text=text)


@dataclass(frozen=True)
class Envelope:
    """What all bodies of one completion share. `created` is in Unix seconds."""

    completion_id: str
    created: int
    model: str

    def body(self, kind: str) -> Json:
        return {"id": self.completion_id, "object": kind, "created": self.created, "model": self.model}

    def called(self, call: ToolCall) -> Json:
        """A call with its id: stable, the same in the whole body and in the stream."""
        digest = hashlib.blake2b(f"{self.completion_id}{call.name}".encode(), digest_size=12).hexdigest()
        function = {"name": call.name, "arguments": call.arguments}
        return {"id": f"call_{digest}", "type": "function", "function": function}


@dataclass(frozen=True)
class Usage:
    """What a call took; `hidden_tokens` are among those of the completion."""

    prompt_tokens: int
    completion_tokens: int
    hidden_tokens: int = 0

    @property
    def body(self) -> Json:
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "completion_tokens_details": {"reasoning_tokens": self.hidden_tokens},
        }


def completion(envelope: Envelope, reply: Reply, usage: Usage) -> Json:
    """A whole chat completion."""
    spoken = reply.tool_call is None and reply.refusal is None
    message: Json = {"role": "assistant", "content": reply.text if spoken else None, "refusal": reply.refusal}
    if reply.tool_call:
        message["tool_calls"] = [envelope.called(reply.tool_call)]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish_reason}
    return {**envelope.body("chat.completion"), "choices": [choice], "usage": usage.body}


def chunk(envelope: Envelope, delta: Json, finish_reason: str | None = None) -> Json:
    """One piece of a streamed completion."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return {**envelope.body("chat.completion.chunk"), "choices": [choice]}


def usage_chunk(envelope: Envelope, usage: Usage) -> Json:
    """The extra last piece that include_usage asks for: no choices."""
    return {**envelope.body("chat.completion.chunk"), "choices": [], "usage": usage.body}


def embedding_list(vectors: NDArray[np.float32], encoding_format: str, model: str, tokens: int) -> Json:
    """Vectors of shape (texts, dimensions) as a list of floats, or as base64 of little-endian float32."""
    rows: Sequence[object] = vectors.tolist()
    if encoding_format == "base64":
        rows = [base64.b64encode(vector.astype("<f4").tobytes()).decode() for vector in vectors]
    items = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": items, "model": model, "usage": usage}


def model_card(name: str, created: int) -> Json:
    return {"id": name, "object": "model", "created": created, "owned_by": "groundwork-local"}
