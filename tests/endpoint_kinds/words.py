"""Converts schemas and tools that are described in a prompt back to fields of the request. Pure.

Applications describe them in the prompt for endpoints that support neither. The module recognises a
convention that any application could use:

    <instructions> of a user's message       the system's message, where a model has no such role
    <json_schema name="…"> of the system's   the schema of the answer
    <tools> of the system's                  a list of {name, description, parameters}
    {"tool_calls": [{name, arguments}]}      a call, as the whole text of an answer or within it
    <tool_result call_id="…">                a result, in a message of the user
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from pydantic import TypeAdapter, ValidationError

from local.model_server.protocol.replies import Reply
from local.model_server.protocol.requests import (
    Body,
    ChatRequest,
    ContentPart,
    FunctionSpec,
    JsonSchema,
    Message,
    ResponseFormat,
    ToolSpec,
)

_INSTRUCTIONS = re.compile(r"\s*<instructions>\n?(.*?)</instructions>\s*", re.DOTALL)
_SCHEMA = re.compile(r'<json_schema name="([^"]*)">(.*?)</json_schema>', re.DOTALL)
_TOOLS = re.compile(r"<tools>(.*?)</tools>", re.DOTALL)
_RESULT = re.compile(r"<tool_result[^>]*>(.*?)</tool_result>", re.DOTALL)
_ELEMENT = re.compile(r"<[a-z_]+[ >]")
_CALLS = '{"tool_calls"'
_SPECS = TypeAdapter(tuple[FunctionSpec, ...])


class _Call(Body):
    name: str
    arguments: object = None


class _Calls(Body):
    tool_calls: tuple[_Call, ...]


def call_in_words(reply: Reply) -> Reply:
    """Return the reply with its tool call, if any, written as text."""
    if reply.tool_call is None:
        return reply
    try:
        arguments = json.loads(reply.tool_call.arguments)
    except ValueError:
        arguments = reply.tool_call.arguments
    call = {"name": reply.tool_call.name, "arguments": arguments}
    text = json.dumps({"tool_calls": [call]}, ensure_ascii=False)
    return replace(reply, text=text, tool_call=None, finish_reason="stop")


def in_fields(request: ChatRequest) -> ChatRequest:
    """Return the request that a client would send to an endpoint which supports schemas, tools and system
    messages.
    """
    first, *others = request.messages
    if first.role == "user" and (match := _INSTRUCTIONS.match(first.text)):
        parts = [part for part in first.content if part.type != "text"]
        rest = ContentPart(type="text", text=first.text[match.end() :])
        first = first.model_copy(update={"content": (rest, *parts)})
        request = request.model_copy(update={"messages": (_message("system", match[1]), first, *others)})
    system = "\n".join([*request.texts_of("system"), *request.texts_of("developer")])
    try:
        if not (request.response_format and request.response_format.json_schema) and (
            match := _SCHEMA.search(system)
        ):
            schema = JsonSchema(name=match[1], schema=json.loads(match[2]))
            shape = ResponseFormat(type="json_schema", json_schema=schema)
            update = {"response_format": shape, "messages": _up_to_material(request.messages)}
            return request.model_copy(update=update)
        if request.tools or not (match := _TOOLS.search(system)):
            return request
        tools = tuple(ToolSpec(function=spec) for spec in _SPECS.validate_json(match[1]))
    except ValueError:  # the text only resembles an instruction
        return request
    messages = tuple(part for message in request.messages for part in _with_calls_and_results(message))
    choice = "auto" if '"tool_calls"' in system.partition("</tools>")[2] else "none"
    update = {"messages": messages, "tools": tools, "tool_choice": choice}
    return request.model_copy(update=update)


def _up_to_material(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Drop the messages after the last user message that contains an element, because they only repeat the
    task.
    """
    ends = [at for at, one in enumerate(messages, 1) if one.role == "user" and _ELEMENT.search(one.text)]
    return messages[: ends[-1]] if ends else messages


def _with_calls_and_results(message: Message) -> Iterator[Message]:
    """Yield the message with tool calls moved from the text to their field, and each tool result as a tool
    message.
    """
    if message.role == "assistant" and (start := message.text.find(_CALLS)) >= 0:
        try:
            tool_calls = _Calls.model_validate_json(message.text[start:]).tool_calls
        except ValidationError:
            yield message
            return
        calls = [
            {"function": {"name": one.name, "arguments": json.dumps(one.arguments)}} for one in tool_calls
        ]
        yield _message("assistant", message.text[:start], calls)
    elif message.role == "user" and _RESULT.search(message.text):
        yield from (_message("tool", result) for result in _RESULT.findall(message.text))
        if rest := _RESULT.sub("", message.text).strip():
            yield _message("user", rest)
    else:
        yield message


def _message(role: str, text: str, calls: object = ()) -> Message:
    return Message.model_validate({"role": role, "content": text, "tool_calls": calls})
