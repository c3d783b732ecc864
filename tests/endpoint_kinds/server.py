"""The local model server, extended by knobs that make it behave like endpoints without parts of the protocol.

`dialect` selects the format of errors, which are worded as by real servers (see the table in docs/models.md).

| knob | value | effect |
|---|---|---|
| `without` | parts, joined by `+` | requests that use these parts are rejected |
| `dialect` | `openai`, `pydantic`, `router`, `text` | 400 with `param`; 422; 404; 400 with a text |
| `ignore` | parts | these parts of chat requests are accepted and ignored |
| `fenced`, `think` | 1 | JSON is in a code fence; a `<think>` element precedes the reply |
| `matryoshka` | 1 | vectors are shortened to the requested `dimensions` |
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Literal, get_args

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue
from starlette.responses import JSONResponse, Response

from local.model_server.embedding.minilm import unit
from local.model_server.knobs import Knobs
from local.model_server.protocol.replies import Json, Reply, embedding_list
from local.model_server.protocol.requests import ApiError, ChatRequest, EmbeddingRequest, read_body
from local.model_server.server import ModelServer
from tests.endpoint_kinds.words import call_in_words, in_fields

# Parts of the protocol that an endpoint may lack. `base64` and `dimensions` concern embeddings.
Part = Literal[
    "json_schema", "json_object", "tools", "stream_options", "max_completion_tokens", "max_tokens", "system",
    "images", "base64", "dimensions",
]  # fmt: skip
PARTS: tuple[str, ...] = get_args(Part)
THOUGHT = "<think>The words of the question are looked for in the documents.</think>\n\n"
_Parts = Annotated[tuple[Part, ...], BeforeValidator(lambda value: tuple(value.split("+")))]


class Kind(BaseModel):
    """The additional knobs of this server."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    without: _Parts = ()
    ignore: _Parts = ()
    dialect: Literal["openai", "pydantic", "router", "text"] = "openai"
    fenced: bool = False
    think: bool = False
    matryoshka: bool = False


def parse_kind(full: str) -> tuple[Kind, str]:
    """Split a model name into the kind of endpoint that it requests, and a model name with the remaining
    knobs.

    Raises:
        ValidationError: a value is misspelt.
    """
    base, _, suffix = full.partition("@")
    items = [item.partition("=") for item in suffix.split(",") if item]
    kind = {name: value or "1" for name, _, value in items if name in Kind.model_fields}
    others = ["".join(item) for item in items if item[0] not in Kind.model_fields]
    return Kind.model_validate(kind), f"{base}@{','.join(others)}"


class EndpointServer(ModelServer):
    """A model server that rejects the features that its kind lacks, and replies like an endpoint of that
    kind.
    """

    def knobs_of(self, model: str, *served: str) -> Knobs:
        return super().knobs_of(parse_kind(model)[1], *served)

    async def chat(self, raw: bytes) -> Response:
        request = read_body(ChatRequest, raw)
        kind, _ = parse_kind(request.model)
        if refusal := refusal_of_chat(request, kind):
            self.stats.count_request("chat", request.model, is_affected=False)
            raise refusal
        plain_request = in_fields(without_ignored(request, kind))
        return await super().chat(plain_request.model_dump_json(by_alias=True).encode())

    async def embed(self, raw: bytes) -> Response:
        request = read_body(EmbeddingRequest, raw)
        kind, _ = parse_kind(request.model)
        if refusal := refusal_of_embedding(request, kind):
            raise refusal
        if not kind.matryoshka:
            return await super().embed(raw)
        whole = request.model_copy(update={"dimensions": None, "encoding_format": "float"})
        response = await super().embed(whole.model_dump_json().encode())
        items = json.loads(bytes(response.body))["data"]
        vectors = np.array([item["embedding"] for item in items], np.float32)[:, : request.dimensions]
        return JSONResponse(embedding_list(unit(vectors), request.encoding_format, request.model, tokens=0))

    def reply_to(self, request: ChatRequest, knobs: Knobs) -> Reply:
        kind, _ = parse_kind(request.model)
        reply = super().reply_to(request, knobs)
        has_tools = "tools" not in kind.without + kind.ignore
        return decorated(reply if has_tools else call_in_words(reply), kind)


def _has_role(request: ChatRequest, role: str) -> bool:
    return any(message.role == role for message in request.messages)


def _format(request: ChatRequest) -> str | None:
    return request.response_format.type if request.response_format else None


# The request field of each part, and a function that checks whether a request uses the part.
_PLACES: dict[str, tuple[str, Callable[[ChatRequest], bool] | None]] = {
    "json_schema": ("response_format", lambda one: _format(one) == "json_schema"),
    "json_object": ("response_format", lambda one: _format(one) == "json_object"),
    "tools": ("tools", lambda one: bool(one.tools) or _has_role(one, "tool")),
    "system": ("messages[0].role", lambda one: _has_role(one, "system")),
    "images": ("messages[1].content", lambda one: any(m.image_urls for m in one.messages)),
}
_ROUTER_PHRASES = {"images": "image input", "system": "the role system", "tools": "tool use"}


def refusal_of_chat(request: ChatRequest, kind: Kind) -> ApiError | None:
    """Return the error for the first unsupported feature that the request uses, or None."""
    for name in kind.without:
        param, is_used = _PLACES.get(name, (name, None))
        if is_used(request) if is_used else getattr(request, name, None) is not None:
            return _refusal(name, param, kind.dialect)
    return None


def refusal_of_embedding(request: EmbeddingRequest, kind: Kind) -> ApiError | None:
    """Return the error for the first unsupported feature that the request uses, or None."""
    if "base64" in kind.without and request.encoding_format == "base64":
        return _refusal("base64", "encoding_format", kind.dialect)
    if "dimensions" in kind.without and request.dimensions is not None:
        return _refusal("dimensions", "dimensions", kind.dialect)
    return None


def without_ignored(request: ChatRequest, kind: Kind) -> ChatRequest:
    """Return the request without the fields that this endpoint accepts but ignores."""
    nothing: dict[str, object] = {"tools": (), "max_completion_tokens": None, "stream_options": None}
    update: dict[str, object] = {str(name): nothing[name] for name in kind.ignore if name in nothing}
    if _format(request) in kind.ignore:
        update["response_format"] = None
    return request.model_copy(update=update)


def decorated(reply: Reply, kind: Kind) -> Reply:
    """Return the reply as a model would write it that adds chatter or thinks aloud."""
    if reply.tool_call or reply.refusal:
        return reply
    text = reply.text
    if kind.fenced and text.startswith("{"):
        text = f"Here is the JSON that you asked for:\n\n```json\n{text}\n```\n\nLet me know if it helps."
    return replace(reply, text=f"{THOUGHT}{text}" if kind.think else text)


class _OtherShapeError(ApiError):
    """An error in the format of servers that only roughly resemble OpenAI's API."""

    def __init__(self, status: int, body: Json) -> None:
        super().__init__(status, "")
        self.body = body


def _refusal(name: str, param: str, dialect: str) -> ApiError:
    phrase = _ROUTER_PHRASES.get(name, name)
    if dialect == "pydantic":
        problem: JsonValue = {"loc": ["body", param], "msg": "Extra inputs are not permitted", "input": "…"}
        if name == "system":
            place: JsonValue = ["body", "messages", 0, "role"]
            problem = {"loc": place, "msg": "Input should be 'user' or 'assistant'", "input": "system"}
        return _OtherShapeError(422, {"detail": [problem]})
    if dialect == "router":
        message = f"No endpoints found that support {phrase}. To learn more, read about provider routing."
        return _OtherShapeError(404, {"error": {"message": message, "code": 404}})
    if dialect == "text":
        return _OtherShapeError(400, {"error": f"this model does not support {phrase}"})
    message = f"Unsupported parameter: '{param}' ({name}) is not supported with this model."
    if name == "images":
        message = "Invalid content type. image_url is only supported by certain models."
    return ApiError(400, message, code="unsupported_parameter", param=param)
