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
# Of each part of the protocol: its field, what OpenRouter calls it, whether a request uses it.
_CHAT: dict[str, tuple[str, str, Callable[[ChatRequest], bool]]] = {
    "json_schema": (
        "response_format",
        "structured output (json_schema)",
        lambda one: one.format == "json_schema",
    ),
    "json_object": ("response_format", "JSON mode (json_object)", lambda one: one.format == "json_object"),
    "tools": ("tools", "tool use", lambda one: bool(one.tools) or one.has_role("tool")),
    "stream_options": ("stream_options", "stream_options", lambda one: one.stream_options is not None),
    "max_completion_tokens": (
        "max_completion_tokens",
        "max_completion_tokens",
        lambda one: one.max_completion_tokens is not None,
    ),
    "max_tokens": ("max_tokens", "max_tokens", lambda one: one.max_tokens is not None),
    "system": ("messages[0].role", "the role system", lambda one: one.has_role("system")),
    "images": ("messages[1].content", "image input", lambda one: any(m.image_urls for m in one.messages)),
}
_EMBEDDINGS: dict[str, tuple[str, str, Callable[[EmbeddingRequest], bool]]] = {
    "base64": ("encoding_format", "base64", lambda one: one.encoding_format == "base64"),
    "dimensions": ("dimensions", "dimensions", lambda one: one.dimensions is not None),
}


def check_chat(request: ChatRequest, knobs: Knobs) -> None:
    """
    Raises:
        ApiError: the request uses what this endpoint is without.
    """
    for name in knobs.without:
        if name in _CHAT and _CHAT[name][2](request):
            raise _refusal(name, *_CHAT[name][:2], knobs.dialect)


def check_embedding(request: EmbeddingRequest, knobs: Knobs) -> None:
    """
    Raises:
        ApiError: the request uses what this endpoint is without.
    """
    for name in knobs.without:
        if name in _EMBEDDINGS and _EMBEDDINGS[name][2](request):
            raise _refusal(name, *_EMBEDDINGS[name][:2], knobs.dialect)


def without_ignored(request: ChatRequest, knobs: Knobs) -> ChatRequest:
    """The request without what this endpoint accepts and ignores."""
    nothing: dict[str, object] = {"tools": (), "max_completion_tokens": None, "stream_options": None}
    update = {name: value for name, value in nothing.items() if name in knobs.ignore}
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


def _refusal(name: str, param: str, phrase: str, dialect: str) -> ApiError:
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
