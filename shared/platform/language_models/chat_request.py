"""Chat requests in the OpenAI protocol, rendered for what an endpoint has of it. Pure.

A request tells which parts it used, so that a refusal can be held against those alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from shared.platform.errors import ModelFixableError
from shared.platform.language_models.endpoint import filtered
from shared.platform.language_models.features import Feature
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

if TYPE_CHECKING:
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletion, ChatCompletionMessage


def tool_arguments(tools: Sequence[ToolDefinition], *, may_call: bool) -> dict[str, Any]:
    """`tools` and `tool_choice` as the endpoint takes them.

    Tools are declared even when none may be called: endpoints refuse a conversation that holds calls of
    undeclared tools.
    """
    declared = [{"type": "function", "function": tool.model_dump()} for tool in tools]
    return {"tools": declared, "tool_choice": "auto" if may_call else "none"}


def read_turn(completion: "ChatCompletion") -> ModelTurn:
    """What the model said.

    Raises:
        ModelFixableError: neither text nor a call; or filtered, or refused.
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
    return not_empty(turn)


def check_ending(ending: str | None, *, is_refused: bool) -> None:
    """ModelFixableError for an answer that was filtered, or refused."""
    if ending == "content_filter":
        raise filtered()
    if is_refused:
        raise ModelFixableError("The model refused to answer.")


def not_empty(turn: ModelTurn) -> ModelTurn:
    """The turn; ModelFixableError when it has neither text nor a call."""
    if not turn.text.strip() and not turn.tool_calls:
        raise ModelFixableError("The model returned nothing.")
    return turn


def lacks_room(completion: "ChatCompletion", *, structured: bool) -> bool:
    """Whether the reply ended at its largest length and is of no use: hidden reasoning may have taken it.

    Text that is cut can be read; structured output and calls of tools can't.
    """
    choice = completion.choices[0]
    is_useless = structured or not choice.message.content or bool(choice.message.tool_calls)
    return choice.finish_reason == "length" and is_useless


def read_usage(usage: "CompletionUsage | None") -> ModelUsage | None:
    """What was read and written; None when the endpoint does not say both."""
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
    """`response_format` for structured output, strictly of the model's schema."""
    from openai import pydantic_function_tool

    # The SDK's public way to a strict schema is that of a tool's arguments; both are held to the same rules.
    schema = pydantic_function_tool(output)["function"].get("parameters")
    named = {"name": output.__name__, "schema": schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def as_sent(message: Message) -> dict[str, Any]:
    """A message of ours in the protocol's form."""
    said: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.pictures:
        said["content"] = [_text_part(message.text)]
        for picture in message.pictures:
            said["content"] += [_text_part(f"{picture.label}:"), _picture_part(picture.url)]
    if message.call_id is not None:
        said["tool_call_id"] = message.call_id
    if message.tool_calls:
        said["content"] = message.text or None
        said["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    return said


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _picture_part(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def _calls(message: "ChatCompletionMessage") -> tuple[ToolCall, ...]:
    # The protocol has other kinds of calls; we offer functions only, so that no other can be meant.
    asked = [call for call in message.tool_calls or () if call.type == "function"]
    return with_distinct_ids(
        [
            ToolCall(call_id=call.id or "", name=call.function.name, arguments=call.function.arguments or "")
            for call in asked
        ]
    )


def with_distinct_ids(asked: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls of one turn. Some endpoints leave the id out, or give all calls of a turn the same one."""
    ids: set[str] = set()
    calls: list[ToolCall] = []
    for place, call in enumerate(asked):
        call_id = call.call_id if call.call_id and call.call_id not in ids else f"call_{place}"
        ids.add(call_id)
        calls.append(
            ToolCall(call_id=call_id, name=whole_text(call.name), arguments=whole_text(call.arguments))
        )
    return tuple(calls)


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
    system: dict[str, Any] = {"role": "system", "content": prompt.system}
    if prompt.picture_url is None:
        user: dict[str, Any] = {"role": "user", "content": prompt.user}
        return _with_roles(ChatRequest(_by_role([system, user], features), {}))
    user = {"role": "user", "content": [_text_part(prompt.user), _picture_part(prompt.picture_url)]}
    return _with_roles(ChatRequest(_by_role([system, user], features), {}).having("images"))


def output_request(
    prompt: Prompt, output: type[BaseModel], features: frozenset[Feature], said: Sequence[Message] = ()
) -> ChatRequest:
    """One that is answered by structured output. `said`: what follows the prompt, to mend an answer."""
    if "json_schema" in features:
        request = _followed(prompt_request(prompt, features), said)
        return request.having("json_schema", **output_format(output))
    explained = prompt.model_copy(update={"system": f"{prompt.system}\n\n{schema_in_words(output)}"})
    request = _followed(prompt_request(explained, features), said)
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
    if "images" not in features:
        messages = [message.model_copy(update={"pictures": ()}) for message in messages]
    if tools and "tools" not in features:
        messages = conversation_in_words(messages, tools, may_call=may_call)
    request = _with_roles(ChatRequest(_by_role([as_sent(message) for message in messages], features), {}))
    if any(message.pictures for message in messages):
        request = request.having("images")
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
    """Answered piece by piece, with its token usage at the end."""
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
    instructions = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
    rest = [message for message in messages if message["role"] != "system"]
    if not instructions:
        return tuple(rest)
    instructions = f"<instructions>\n{instructions}\n</instructions>"
    if not rest or rest[0]["role"] != "user":
        return ({"role": "user", "content": instructions}, *rest)
    said: str | list[dict[str, Any]] = rest[0]["content"]
    is_text = isinstance(said, str)
    content = f"{instructions}\n\n{said}" if is_text else [_text_part(instructions), *said]
    return ({"role": "user", "content": content}, *rest[1:])
