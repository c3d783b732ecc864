"""Schemas and tools that stand in the prompt instead of in fields of the request, as fields again. Pure.

An application does so where an endpoint takes neither. What this server recognises is a convention that any
application could use:

    <instructions> of a user's message       the system's message, where a model has no such role
    <json_schema name="…"> of the system's   the schema of the answer
    <tools> of the system's                  a list of {name, description, parameters}
    {"tool_calls": [{name, arguments}]}      a call, as the whole text of an answer or within it
    <tool_result call_id="…">                a result, in a message of the user
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pydantic import JsonValue, ValidationError

from local.model_server.protocol.replies import Reply
from local.model_server.protocol.requests import (
    ChatRequest,
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
_CALLS = "tool_calls"


@dataclass(frozen=True)
class Asked:
    """A request with everything in fields. `calls_in_words`: its tools were words, so are their calls."""

    request: ChatRequest
    calls_in_words: bool = False

    def spoken(self, reply: Reply) -> Reply:
        """The reply as this request can take it."""
        if not self.calls_in_words or reply.tool_call is None:
            return reply
        call = {"name": reply.tool_call.name, "arguments": _value(reply.tool_call.arguments)}
        text = json.dumps({_CALLS: [call]}, ensure_ascii=False)
        return replace(reply, text=text, tool_call=None, finish_reason="stop")


def in_fields(request: ChatRequest) -> Asked:
    """The request as it would be if the endpoint took schemas, tools and messages of the system."""
    messages = tuple(_with_system(request.messages))
    system = "\n".join(message.text for message in messages if message.role in ("system", "developer"))
    request = request.model_copy(update={"messages": messages})
    if (schema := _schema(system)) and not (request.response_format and request.response_format.json_schema):
        shape = ResponseFormat(type="json_schema", json_schema=schema)
        update = {"response_format": shape, "messages": _up_to_material(messages)}
        return Asked(request.model_copy(update=update))
    if request.tools or not (tools := _tools(system)):
        return Asked(request)
    may_call = f'"{_CALLS}"' in system.partition("</tools>")[2]
    told = tuple(part for message in messages for part in _with_calls_and_results(message))
    update = {"messages": told, "tools": tools, "tool_choice": "auto" if may_call else "none"}
    return Asked(request.model_copy(update=update), calls_in_words=True)


def _with_system(messages: tuple[Message, ...]) -> Iterator[Message]:
    for place, message in enumerate(messages):
        found = _INSTRUCTIONS.match(message.text) if place == 0 and message.role == "user" else None
        if found is None:
            yield message
            continue
        yield _message("system", found.group(1))
        first, *others = message.content
        rest = first.model_copy(update={"text": first.text[found.end() :]})
        yield message.model_copy(update={"content": (rest, *others)})


def _schema(system: str) -> JsonSchema | None:
    found = _SCHEMA.search(system)
    value = _value(found.group(2)) if found else None
    return JsonSchema(name=found.group(1), schema=value) if found and isinstance(value, dict) else None


def _tools(system: str) -> tuple[ToolSpec, ...]:
    found = _TOOLS.search(system)
    told = _value(found.group(1)) if found else None
    try:
        specs = [FunctionSpec.model_validate(one) for one in told] if isinstance(told, list) else []
    except ValidationError:
        return ()
    return tuple(ToolSpec(type="function", function=spec) for spec in specs)


def _up_to_material(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Without what asks for the same again: the last message of the user with an element is the task."""
    places = [
        place
        for place, message in enumerate(messages)
        if message.role == "user" and _ELEMENT.search(message.text)
    ]
    return messages[: places[-1] + 1] if places else messages


def _with_calls_and_results(message: Message) -> Iterator[Message]:
    if message.role == "assistant":
        yield _with_calls(message)
        return
    if message.role != "user":
        yield message
        return
    yield from (_message("tool", found.group(1)) for found in _RESULT.finditer(message.text))
    rest = _RESULT.sub("", message.text).strip()
    if rest:
        yield _message("user", rest)


def _with_calls(message: Message) -> Message:
    start = message.text.find(f'{{"{_CALLS}"')
    said = _value(message.text[start:]) if start >= 0 else None
    asked = said.get(_CALLS) if isinstance(said, dict) else None
    if not isinstance(asked, list):
        return message
    calls = [
        {"function": {"name": str(call.get("name")), "arguments": json.dumps(call.get("arguments"))}}
        for call in asked
        if isinstance(call, dict)
    ]
    body = {"role": "assistant", "content": message.text[:start], "tool_calls": calls}
    return Message.model_validate(body)


def _message(role: str, text: str) -> Message:
    return Message.model_validate({"role": role, "content": text})


def _value(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return text
    return value
