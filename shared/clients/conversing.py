"""Conversations with tools in the OpenAI protocol: our messages as its own, its completion as a turn of ours.

Called where errors are translated: the SDK does not check what it reads.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from shared.clients.delta_text import whole_text
from shared.clients.thoughts import without_thoughts
from shared.clients.translate_openai import filtered
from shared.errors import ModelFixableError
from shared.models.conversing import Message, ModelTurn, ModelUsage, ToolCall, ToolDefinition

if TYPE_CHECKING:
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletion, ChatCompletionMessage


def tool_arguments(tools: Sequence[ToolDefinition], *, may_call: bool) -> dict[str, Any]:
    """`tools` and `tool_choice` as the endpoint takes them.

    Tools are told of even when none may be called: endpoints refuse a conversation that holds calls of tools
    that they were not told of.
    """
    return {"tools": [_tool(tool) for tool in tools], "tool_choice": "auto" if may_call else "none"}


def read_turn(completion: "ChatCompletion") -> ModelTurn:
    """What the model said.

    Raises:
        ModelFixableError: neither text nor a call; or filtered, or refused.
    """
    choice = completion.choices[0]
    if choice.finish_reason == "content_filter":
        raise filtered()
    if choice.message.refusal:
        raise ModelFixableError("The model refused to answer.")
    text, calls = without_thoughts(whole_text(choice.message.content or "")), _calls(choice.message)
    if not text.strip() and not calls:
        raise ModelFixableError("The model said nothing.")
    tokens = completion.usage.total_tokens if completion.usage else None
    return ModelTurn(
        text=text,
        tool_calls=calls,
        tokens=tokens,
        usage=read_usage(completion.usage),
        cut=choice.finish_reason == "length",
    )


def read_usage(usage: "CompletionUsage | None") -> ModelUsage | None:
    """What was read and written; None when the endpoint does not say both."""
    counted = (usage.prompt_tokens, usage.completion_tokens) if usage else (None, None)
    if not all(isinstance(count, int) and count >= 0 for count in counted):
        return None
    return ModelUsage(input_tokens=counted[0], output_tokens=counted[1])


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


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    return {"type": "function", "function": tool.model_dump()}


def _calls(message: "ChatCompletionMessage") -> tuple[ToolCall, ...]:
    # The protocol has other kinds of calls; we offer functions only, so that no other can be meant.
    asked = [call for call in message.tool_calls or () if call.type == "function"]
    ids: set[str] = set()
    calls: list[ToolCall] = []
    for place, call in enumerate(asked):
        # Some endpoints leave the id out, or give all calls of a turn the same one.
        call_id = call.id if call.id and call.id not in ids else f"call_{place}"
        ids.add(call_id)
        name, arguments = whole_text(call.function.name), whole_text(call.function.arguments or "")
        calls.append(ToolCall(call_id=call_id, name=name, arguments=arguments))
    return tuple(calls)
