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
    messages = request.messages
    if messages[0].role == "user" and (found := _INSTRUCTIONS.match(messages[0].text)):
        rest, others = (
            messages[0].text[found.end() :],
            [one for one in messages[0].content if one.type != "text"],
        )
        first = messages[0].model_copy(update={"content": (*_message("user", rest).content, *others)})
        messages = (_message("system", found[1]), first, *messages[1:])
        request = request.model_copy(update={"messages": messages})
    system = "\n".join(message.text for message in messages if message.role in ("system", "developer"))
    if request.format != "json_schema" and (schema := _schema(system)):
        shape = ResponseFormat(type="json_schema", json_schema=schema)
        update = {"response_format": shape, "messages": _up_to_material(messages)}
        return Asked(request.model_copy(update=update))
    if request.tools or not (tools := _tools(system)):
        return Asked(request)
    may_call = f'"{_CALLS}"' in system.partition("</tools>")[2]
    told = tuple(part for message in messages for part in _with_calls_and_results(message))
    update = {"messages": told, "tools": tools, "tool_choice": "auto" if may_call else "none"}
    return Asked(request.model_copy(update=update), calls_in_words=True)


def _schema(system: str) -> JsonSchema | None:
    found = _SCHEMA.search(system)
    value = _value(found[2]) if found else None
    return JsonSchema(name=found[1], schema=value) if found and isinstance(value, dict) else None


def _tools(system: str) -> tuple[ToolSpec, ...]:
    found = _TOOLS.search(system)
    told = _value(found[1]) if found else None
    try:
        specs = [FunctionSpec.model_validate(one) for one in told] if isinstance(told, list) else []
    except ValidationError:
        return ()
    return tuple(ToolSpec(type="function", function=spec) for spec in specs)


def _up_to_material(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Without what asks for the same again: the last message of the user with an element is the task."""
    ends = [at for at, one in enumerate(messages, 1) if one.role == "user" and _ELEMENT.search(one.text)]
    return messages[: ends[-1]] if ends else messages


def _with_calls_and_results(message: Message) -> Iterator[Message]:
    """The same with calls of an answer in its field, and each result as a message of its tool."""
    if message.role == "assistant":
        start = message.text.find(f'{{"{_CALLS}"')
        said = _value(message.text[start:]) if start >= 0 else None
        asked = said.get(_CALLS) if isinstance(said, dict) else None
        calls = [
            {"function": {"name": str(call.get("name")), "arguments": json.dumps(call.get("arguments"))}}
            for call in (asked if isinstance(asked, list) else ())
            if isinstance(call, dict)
        ]
        yield _message("assistant", message.text[:start], calls) if calls else message
    elif message.role == "user" and _RESULT.search(message.text):
        yield from (_message("tool", result) for result in _RESULT.findall(message.text))
        if rest := _RESULT.sub("", message.text).strip():
            yield _message("user", rest)
    else:
        yield message


def _message(role: str, text: str, calls: object = ()) -> Message:
    return Message.model_validate({"role": role, "content": text, "tool_calls": calls})


def _value(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return text
    return value
