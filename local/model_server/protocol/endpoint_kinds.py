"""Endpoints with less of the protocol: the knob `without` names what is refused, `ignore` what has no effect.

The wordings of refusals are those that real servers have, by `dialect`; the table of servers is in
docs/models.md of the application that they were collected for.
"""

from collections.abc import Callable
from dataclasses import replace

from pydantic import JsonValue

from local.model_server.knobs import Knobs
from local.model_server.protocol.errors import ApiError
from local.model_server.protocol.replies import Reply
from local.model_server.protocol.requests import ChatRequest, EmbeddingRequest

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
