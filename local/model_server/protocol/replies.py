"""Reply bodies in OpenAI's format. Pure: the caller supplies time and ids."""

import base64
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Json = dict[str, object]


@dataclass(frozen=True)
class ToolCall:
    """A tool call requested by the model. `arguments` is a JSON string."""

    name: str
    arguments: str


@dataclass(frozen=True)
class Reply:
    """The output of the model: text, one tool call or a refusal."""

    text: str = ""
    tool_call: ToolCall | None = None
    refusal: str | None = None
    finish_reason: str = "stop"

    @property
    def spoken(self) -> str:
        """The output that is billed: the text, the tool call's arguments or the refusal."""
        return self.tool_call.arguments if self.tool_call else self.text or self.refusal or ""

    def with_text(self, text: str) -> "Reply":
        """Return a copy of the reply with its text, or the arguments of its tool call, replaced."""
        if self.tool_call:
            return replace(self, tool_call=replace(self.tool_call, arguments=text))
        return replace(self, text=text)


def tool_call_reply(call: ToolCall) -> Reply:
    """Return a reply that consists of one tool call."""
    return Reply(tool_call=call, finish_reason="tool_calls")


@dataclass(frozen=True)
class Usage:
    """Token counts of a model call. `completion_tokens` includes `hidden_tokens`."""

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


@dataclass(frozen=True)
class Envelope:
    """The fields that all bodies and chunks of one completion share. `created` is in Unix seconds."""

    completion_id: str
    created: int
    model: str

    def tool_call_body(self, call: ToolCall, arguments: str) -> Json:
        """Return a tool call with its id. Streamed and non-streamed replies use the same id."""
        function = {"name": call.name, "arguments": arguments}
        return {"id": f"call_{self.completion_id[-24:]}", "type": "function", "function": function}

    def completion(self, reply: Reply, usage: Usage) -> Json:
        """Return the body of a non-streamed chat completion."""
        content = reply.text if reply.tool_call is None and reply.refusal is None else None
        message: Json = {"role": "assistant", "content": content, "refusal": reply.refusal}
        if reply.tool_call:
            message["tool_calls"] = [self.tool_call_body(reply.tool_call, reply.tool_call.arguments)]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish_reason}
        return {**self._body("chat.completion"), "choices": [choice], "usage": usage.body}

    def chunk(self, delta: Json, finish_reason: str | None = None) -> Json:
        """Return one chunk of a streamed chat completion."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**self._body("chat.completion.chunk"), "choices": [choice]}

    def usage_chunk(self, usage: Usage) -> Json:
        """Return the last chunk of a stream, with token usage but no choices. It is sent only if the request
        sets include_usage.
        """
        return {**self._body("chat.completion.chunk"), "choices": [], "usage": usage.body}

    def _body(self, kind: str) -> Json:
        return {"id": self.completion_id, "object": kind, "created": self.created, "model": self.model}


def embedding_list(vectors: NDArray[np.float32], encoding_format: str, model: str, tokens: int) -> Json:
    """Return the body of an embedding response. Each vector becomes a list of floats or base64 of
    little-endian float32.
    """
    rows: list[object] = vectors.tolist()
    if encoding_format == "base64":
        rows = [base64.b64encode(vector.astype("<f4").tobytes()).decode() for vector in vectors]
    items = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": items, "model": model, "usage": usage}
