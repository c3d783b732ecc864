"""Chat requests of the OpenAI protocol, built from the features that an endpoint supports. Pure.

A request lists the features it uses, so that a refusal is attributed to one of those.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from shared.platform.errors import ModelFixableError
from shared.platform.language_models.endpoint import content_filter_error
from shared.platform.language_models.models import (
    Message,
    ModelTurn,
    ModelUsage,
    Prompt,
    ToolCall,
    ToolDefinition,
)
from shared.platform.language_models.prompted import (
    conversation_in_words,
    schema_in_words,
    whole_text,
    without_thoughts,
)
from shared.platform.language_models.protocol import Feature
from shared.platform.loading import load

if TYPE_CHECKING:
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletion, ChatCompletionMessage


def tool_arguments(tools: Sequence[ToolDefinition], *, may_call: bool) -> dict[str, Any]:
    """Return the request fields `tools` and `tool_choice`.

    Tools are declared even when none may be called, because endpoints refuse conversations that contain calls
    of undeclared tools.
    """
    declared = [{"type": "function", "function": tool.model_dump()} for tool in tools]
    return {"tools": declared, "tool_choice": "auto" if may_call else "none"}


def read_turn(completion: "ChatCompletion") -> ModelTurn:
    """Convert a chat completion to a `ModelTurn`.

    Raises:
        ModelFixableError: the reply has neither text nor a call, or was filtered or refused.
    """
    choice = completion.choices[0]
    check_ending(choice.finish_reason, is_refused=bool(choice.message.refusal))
    turn = ModelTurn(
        text=without_thoughts(whole_text(choice.message.content or "")),
        tool_calls=_calls(choice.message),
        tokens=completion.usage.total_tokens if completion.usage else None,
        usage=read_usage(completion.usage),
        cut=choice.finish_reason == "length",
    )
    return require_content(turn)


def check_ending(ending: str | None, *, is_refused: bool) -> None:
    """Raise ModelFixableError if the answer was filtered or refused."""
    if ending == "content_filter":
        raise content_filter_error()
    if is_refused:
        raise ModelFixableError("The model refused to answer.")


def require_content(turn: ModelTurn) -> ModelTurn:
    """Return the turn unchanged. Raise `ModelFixableError` if it contains neither text nor a tool call."""
    if not turn.text.strip() and not turn.tool_calls:
        raise ModelFixableError("The model returned nothing.")
    return turn


def lacks_room(completion: "ChatCompletion", *, structured: bool) -> bool:
    """Return whether the reply was cut off and is unusable, typically because hidden reasoning took the
    tokens.

    Truncated text is usable; truncated structured output or tool calls are not.
    """
    choice = completion.choices[0]
    is_useless = structured or not choice.message.content or bool(choice.message.tool_calls)
    return choice.finish_reason == "length" and is_useless


def read_usage(usage: "CompletionUsage | None") -> ModelUsage | None:
    """Return the token usage of a call, or None if the endpoint doesn't report both input and output
    tokens.
    """
    counted = (usage.prompt_tokens, usage.completion_tokens) if usage else (None, None)
    if usage is None or not all(isinstance(count, int) and count >= 0 for count in counted):
        return None
    details = usage.prompt_tokens_details
    cached = details.cached_tokens if details else None
    is_known = isinstance(cached, int) and 0 <= cached <= usage.prompt_tokens
    return ModelUsage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        cached_tokens=cached if is_known else 0,
    )


def output_format(output: type[BaseModel]) -> dict[str, Any]:
    """Return `response_format` for structured output with a strict schema."""
    # The SDK creates strict schemas only for tool arguments, but the rules for structured output are the
    # same.
    schema = load("openai", "pydantic_function_tool")(output)["function"].get("parameters")
    definition = {"name": output.__name__, "schema": schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": definition}}


def message_json(message: Message) -> dict[str, Any]:
    """Convert a message to JSON for a request."""
    fields: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.pictures:
        fields["content"] = [_text_part(message.text)]
        for picture in message.pictures:
            fields["content"] += [_text_part(f"{picture.label}:"), _picture_part(picture.url)]
    if message.call_id is not None:
        fields["tool_call_id"] = message.call_id
    if message.tool_calls:
        fields["content"] = message.text or None
        fields["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    return fields


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _picture_part(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def _calls(message: "ChatCompletionMessage") -> tuple[ToolCall, ...]:
    # The protocol also defines other kinds of calls, but the app offers only functions.
    calls = [call for call in message.tool_calls or () if call.type == "function"]
    return with_distinct_ids(
        [
            ToolCall(call_id=call.id or "", name=call.function.name, arguments=call.function.arguments or "")
            for call in calls
        ]
    )


def with_distinct_ids(requested: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """Return tool calls with distinct ids, because some endpoints omit ids or repeat them."""
    ids: set[str] = set()
    calls: list[ToolCall] = []
    for place, call in enumerate(requested):
        call_id = call.call_id if call.call_id and call.call_id not in ids else f"call_{place}"
        ids.add(call_id)
        calls.append(
            ToolCall(call_id=call_id, name=whole_text(call.name), arguments=whole_text(call.arguments))
        )
    return tuple(calls)


_NONE: frozenset[Feature] = frozenset()
_LIMITS: tuple[Feature, ...] = (
    "max_completion_tokens",
    "max_tokens",
)  # features whose names are also those of the request fields


@dataclass(frozen=True)
class ChatRequest:
    """The body of a chat request without the model name. `used` lists the protocol features that it uses."""

    messages: tuple[dict[str, Any], ...]
    fields: dict[str, Any]
    used: frozenset[Feature] = _NONE

    @property
    def arguments(self) -> dict[str, Any]:
        return {"messages": list(self.messages), **self.fields}

    def with_feature(self, feature: Feature, **fields: Any) -> "ChatRequest":
        """Return a copy with additional fields, which use `feature`."""
        return replace(self, fields=self.fields | fields, used=self.used | {feature})


def prompt_request(prompt: Prompt, features: frozenset[Feature]) -> ChatRequest:
    """Return a request for an answer in text."""
    system: dict[str, Any] = {"role": "system", "content": prompt.system}
    if prompt.picture_url is None:
        user: dict[str, Any] = {"role": "user", "content": prompt.user}
        return _with_roles(ChatRequest(_by_role([system, user], features), {}))
    user = {"role": "user", "content": [_text_part(prompt.user), _picture_part(prompt.picture_url)]}
    return _with_roles(ChatRequest(_by_role([system, user], features), {}).with_feature("images"))


def output_request(
    prompt: Prompt, output: type[BaseModel], features: frozenset[Feature], correction: Sequence[Message] = ()
) -> ChatRequest:
    """Return a request for structured output. The messages in `correction`, which follow the prompt, are an
    invalid reply and a request to correct it.
    """
    if "json_schema" in features:
        request = _append_messages(prompt_request(prompt, features), correction)
        return request.with_feature("json_schema", **output_format(output))
    explained = prompt.model_copy(update={"system": f"{prompt.system}\n\n{schema_in_words(output)}"})
    request = _append_messages(prompt_request(explained, features), correction)
    if "json_object" in features:
        return request.with_feature("json_object", response_format={"type": "json_object"})
    return request


def conversation_request(
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition],
    features: frozenset[Feature],
    *,
    may_call: bool,
) -> ChatRequest:
    """Return a request for the model's next turn."""
    if "images" not in features:
        messages = [message.model_copy(update={"pictures": ()}) for message in messages]
    if tools and "tools" not in features:
        messages = conversation_in_words(messages, tools, may_call=may_call)
    request = _with_roles(
        ChatRequest(_by_role([message_json(message) for message in messages], features), {})
    )
    if any(message.pictures for message in messages):
        request = request.with_feature("images")
    if tools and "tools" in features:
        return request.with_feature("tools", **tool_arguments(tools, may_call=may_call))
    return request


def with_token_limit(request: ChatRequest, most_tokens: int, features: frozenset[Feature]) -> ChatRequest:
    """Return a copy that limits the output, in the newest field that the endpoint supports."""
    for feature in _LIMITS:
        if feature in features:
            return request.with_feature(feature, **{feature: most_tokens})
    return request


def with_streaming(request: ChatRequest, features: frozenset[Feature]) -> ChatRequest:
    """Return a copy that streams the reply and reports token usage at the end."""
    request = replace(request, fields=request.fields | {"stream": True})
    if "stream_usage" in features:
        return request.with_feature("stream_usage", stream_options={"include_usage": True})
    return request


def _append_messages(request: ChatRequest, messages: Sequence[Message]) -> ChatRequest:
    return replace(request, messages=(*request.messages, *(message_json(message) for message in messages)))


def _with_roles(request: ChatRequest) -> ChatRequest:
    has_system = any(message["role"] == "system" for message in request.messages)
    return request.with_feature("system_role") if has_system else request


def _by_role(messages: list[dict[str, Any]], features: frozenset[Feature]) -> tuple[dict[str, Any], ...]:
    """Return the messages of a request. For endpoints without a system role, its text is added to the first
    user message.
    """
    if "system_role" in features:
        return tuple(messages)
    instructions = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
    rest = [message for message in messages if message["role"] != "system"]
    if not instructions:
        return tuple(rest)
    instructions = f"<instructions>\n{instructions}\n</instructions>"
    if not rest or rest[0]["role"] != "user":
        return ({"role": "user", "content": instructions}, *rest)
    content_parts: str | list[dict[str, Any]] = rest[0]["content"]
    is_text = isinstance(content_parts, str)
    content = f"{instructions}\n\n{content_parts}" if is_text else [_text_part(instructions), *content_parts]
    return ({"role": "user", "content": content}, *rest[1:])
