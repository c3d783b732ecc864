"""Chat requests in the OpenAI protocol, rendered for what an endpoint has of it. Pure.

A request tells which parts it used, so that a refusal can be held against those alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from shared.clients.conversing import as_sent, output_format, tool_arguments
from shared.clients.prompted_json import schema_in_words
from shared.clients.prompted_tools import conversation_in_words
from shared.models.conversing import Message, ToolDefinition
from shared.models.model_features import Feature
from shared.models.prompts import Prompt

_NONE: frozenset[Feature] = frozenset()
_LIMITS: tuple[Feature, ...] = ("max_completion_tokens", "max_tokens")  # the field is named as the feature


@dataclass(frozen=True)
class ChatRequest:
    """The body of a request, apart from the model. `used`: what of the protocol is in it."""

    messages: tuple[dict[str, Any], ...]
    fields: dict[str, Any]
    used: frozenset[Feature] = _NONE

    @property
    def arguments(self) -> dict[str, Any]:
        return {"messages": list(self.messages), **self.fields}

    def having(self, feature: Feature, **fields: Any) -> "ChatRequest":
        """With one more part of the protocol."""
        return replace(self, fields=self.fields | fields, used=self.used | {feature})


def prompt_request(prompt: Prompt, features: frozenset[Feature]) -> ChatRequest:
    """One that is answered in words."""
    request = ChatRequest(
        _by_role([{"role": "system", "content": prompt.system}, _user_message(prompt)], features), {}
    )
    return _with_roles(request if prompt.picture_url is None else request.having("images"))


def output_request(
    prompt: Prompt, output: type[BaseModel], features: frozenset[Feature], said: Sequence[Message] = ()
) -> ChatRequest:
    """One that is answered by structured output. `said`: what follows the prompt, to mend an answer."""
    if "json_schema" in features:
        request = _followed(prompt_request(prompt, features), said)
        return request.having("json_schema", **output_format(output))
    told = prompt.model_copy(update={"system": f"{prompt.system}\n\n{schema_in_words(output)}"})
    request = _followed(prompt_request(told, features), said)
    if "json_object" in features:
        return request.having("json_object", response_format={"type": "json_object"})
    return request


def conversation_request(
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition],
    features: frozenset[Feature],
    *,
    may_call: bool,
) -> ChatRequest:
    """One that is answered by the model's next turn."""
    if tools and "tools" not in features:
        messages = conversation_in_words(messages, tools, may_call=may_call)
    request = _with_roles(ChatRequest(_by_role([as_sent(message) for message in messages], features), {}))
    if tools and "tools" in features:
        return request.having("tools", **tool_arguments(tools, may_call=may_call))
    return request


def limited(request: ChatRequest, most_tokens: int, features: frozenset[Feature]) -> ChatRequest:
    """With the length that the answer may have, by the newest name that the endpoint knows."""
    for feature in _LIMITS:
        if feature in features:
            return request.having(feature, **{feature: most_tokens})
    return request


def streamed(request: ChatRequest, features: frozenset[Feature]) -> ChatRequest:
    """Answered piece by piece, its tokens told at the end."""
    request = replace(request, fields=request.fields | {"stream": True})
    if "stream_usage" in features:
        return request.having("stream_usage", stream_options={"include_usage": True})
    return request


def _followed(request: ChatRequest, said: Sequence[Message]) -> ChatRequest:
    return replace(request, messages=(*request.messages, *(as_sent(message) for message in said)))


def _with_roles(request: ChatRequest) -> ChatRequest:
    has_system = any(message["role"] == "system" for message in request.messages)
    return request.having("system_role") if has_system else request


def _by_role(messages: list[dict[str, Any]], features: frozenset[Feature]) -> tuple[dict[str, Any], ...]:
    """The messages; for a model without a system role its words go ahead of the user's first."""
    if "system_role" in features:
        return tuple(messages)
    told = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
    rest = [message for message in messages if message["role"] != "system"]
    if not told:
        return tuple(rest)
    told = f"<instructions>\n{told}\n</instructions>"
    if not rest or rest[0]["role"] != "user":
        return ({"role": "user", "content": told}, *rest)
    return ({"role": "user", "content": _ahead(told, rest[0]["content"])}, *rest[1:])


def _ahead(told: str, content: str | list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return f"{told}\n\n{content}"
    return [{"type": "text", "text": told}, *content]


def _user_message(prompt: Prompt) -> dict[str, Any]:
    """The text alone, or text and picture as parts."""
    if prompt.picture_url is None:
        return {"role": "user", "content": prompt.user}
    parts = [
        {"type": "text", "text": prompt.user},
        {"type": "image_url", "image_url": {"url": prompt.picture_url}},
    ]
    return {"role": "user", "content": parts}
