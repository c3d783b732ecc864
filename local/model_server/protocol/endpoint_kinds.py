"""Endpoints with less of the protocol: the knob `without` names what is refused, `ignore` what has no effect.

The wordings of refusals are those that real servers have, by `dialect`; the table of servers is in
docs/models.md of the application that they were collected for.

Schemas and tools that stand in the prompt instead of in fields of the request, as fields again. Pure.

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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pydantic import JsonValue, TypeAdapter, ValidationError

from local.model_server.knobs import Knobs
from local.model_server.protocol.replies import Reply
from local.model_server.protocol.requests import (
    ApiError,
    Body,
    ChatRequest,
    ContentPart,
    EmbeddingRequest,
    FunctionSpec,
    JsonSchema,
    Message,
    ResponseFormat,
    ToolSpec,
)

THOUGHT = "<think>The words of the question are looked for in the documents.</think>\n\n"
# Where a part of the protocol is not a field of its name: the field, and whether a request uses it.
_PLACES: dict[str, tuple[str, Callable[[ChatRequest], bool] | None]] = {
    "json_schema": ("response_format", lambda one: one.format == "json_schema"),
    "json_object": ("response_format", lambda one: one.format == "json_object"),
    "tools": ("tools", lambda one: bool(one.tools) or one.has_role("tool")),
    "system": ("messages[0].role", lambda one: one.has_role("system")),
    "images": ("messages[1].content", lambda one: any(m.image_urls for m in one.messages)),
}
_ROUTER_PHRASES = {"images": "image input", "system": "the role system", "tools": "tool use"}


def check_chat(request: ChatRequest, knobs: Knobs) -> None:
    """
    Raises:
        ApiError: the request uses what this endpoint is without.
    """
    for name in knobs.without:
        param, is_used = _PLACES.get(name, (name, None))
        if is_used(request) if is_used else getattr(request, name, None) is not None:
            raise _refusal(name, param, knobs.dialect)


def check_embedding(request: EmbeddingRequest, knobs: Knobs) -> None:
    """
    Raises:
        ApiError: the request uses what this endpoint is without.
    """
    if "base64" in knobs.without and request.encoding_format == "base64":
        raise _refusal("base64", "encoding_format", knobs.dialect)
    if "dimensions" in knobs.without and request.dimensions is not None:
        raise _refusal("dimensions", "dimensions", knobs.dialect)


def without_ignored(request: ChatRequest, knobs: Knobs) -> ChatRequest:
    """The request without what this endpoint accepts and ignores."""
    nothing: dict[str, object] = {"tools": (), "max_completion_tokens": None, "stream_options": None}
    update: dict[str, object] = {str(name): nothing[name] for name in knobs.ignore if name in nothing}
    if request.format in knobs.ignore:
        update["response_format"] = None
    return request.model_copy(update=update)


def decorated(reply: Reply, knobs: Knobs) -> Reply:
    """The reply as a chatty model words it, or one that thinks aloud."""
    if reply.tool_call or reply.refusal:
        return reply
    text = reply.text
    if knobs.fenced and text.startswith("{"):
        text = f"Here is the JSON that you asked for:\n\n```json\n{text}\n```\n\nLet me know if it helps."
    return replace(reply, text=f"{THOUGHT}{text}" if knobs.think else text)


def _refusal(name: str, param: str, dialect: str) -> ApiError:
    phrase = _ROUTER_PHRASES.get(name, name)
    if dialect == "pydantic":
        problem: JsonValue = {"loc": ["body", param], "msg": "Extra inputs are not permitted", "input": "…"}
        if name == "system":
            place: JsonValue = ["body", "messages", 0, "role"]
            problem = {"loc": place, "msg": "Input should be 'user' or 'assistant'", "input": "system"}
        return ApiError(422, "", raw={"detail": [problem]})
    if dialect == "router":
        message = f"No endpoints found that support {phrase}. To learn more, read about provider routing."
        return ApiError(404, "", raw={"error": {"message": message, "code": 404}})
    if dialect == "text":
        return ApiError(400, "", raw={"error": f"this model does not support {phrase}"})
    message = f"Unsupported parameter: '{param}' ({name}) is not supported with this model."
    if name == "images":
        message = "Invalid content type. image_url is only supported by certain models."
    return ApiError(400, message, code="unsupported_parameter", param=param)


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


@dataclass(frozen=True)
class Asked:
    """A request with everything in fields. `calls_in_words`: its tools were words, so are their calls."""

    request: ChatRequest
    calls_in_words: bool = False

    def spoken(self, reply: Reply) -> Reply:
        """The reply as this request can take it."""
        if not self.calls_in_words or reply.tool_call is None:
            return reply
        try:
            arguments = json.loads(reply.tool_call.arguments)
        except ValueError:
            arguments = reply.tool_call.arguments
        call = {"name": reply.tool_call.name, "arguments": arguments}
        text = json.dumps({"tool_calls": [call]}, ensure_ascii=False)
        return replace(reply, text=text, tool_call=None, finish_reason="stop")


def in_fields(request: ChatRequest) -> Asked:
    """The request as it would be if the endpoint took schemas, tools and messages of the system."""
    first, *others = request.messages
    if first.role == "user" and (found := _INSTRUCTIONS.match(first.text)):
        parts = [part for part in first.content if part.type != "text"]
        rest = ContentPart(type="text", text=first.text[found.end() :])
        first = first.model_copy(update={"content": (rest, *parts)})
        request = request.model_copy(update={"messages": (_message("system", found[1]), first, *others)})
    system = "\n".join([*request.texts_of("system"), *request.texts_of("developer")])
    try:
        if request.format != "json_schema" and (found := _SCHEMA.search(system)):
            schema = JsonSchema(name=found[1], schema=json.loads(found[2]))
            shape = ResponseFormat(type="json_schema", json_schema=schema)
            update = {"response_format": shape, "messages": _up_to_material(request.messages)}
            return Asked(request.model_copy(update=update))
        if request.tools or not (found := _TOOLS.search(system)):
            return Asked(request)
        tools = tuple(ToolSpec(function=spec) for spec in _SPECS.validate_json(found[1]))
    except ValueError:  # words that only look like it
        return Asked(request)
    told = tuple(part for message in request.messages for part in _with_calls_and_results(message))
    choice = "auto" if '"tool_calls"' in system.partition("</tools>")[2] else "none"
    update = {"messages": told, "tools": tools, "tool_choice": choice}
    return Asked(request.model_copy(update=update), calls_in_words=True)


def _up_to_material(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Without what asks for the same again: the last message of the user with an element is the task."""
    ends = [at for at, one in enumerate(messages, 1) if one.role == "user" and _ELEMENT.search(one.text)]
    return messages[: ends[-1]] if ends else messages


def _with_calls_and_results(message: Message) -> Iterator[Message]:
    """The same with calls of an answer in its field, and each result as a message of its tool."""
    if message.role == "assistant" and (start := message.text.find(_CALLS)) >= 0:
        try:
            said = _Calls.model_validate_json(message.text[start:]).tool_calls
        except ValidationError:
            yield message
            return
        calls = [{"function": {"name": one.name, "arguments": json.dumps(one.arguments)}} for one in said]
        yield _message("assistant", message.text[:start], calls)
    elif message.role == "user" and _RESULT.search(message.text):
        yield from (_message("tool", result) for result in _RESULT.findall(message.text))
        if rest := _RESULT.sub("", message.text).strip():
            yield _message("user", rest)
    else:
        yield message


def _message(role: str, text: str, calls: object = ()) -> Message:
    return Message.model_validate({"role": role, "content": text, "tool_calls": calls})
