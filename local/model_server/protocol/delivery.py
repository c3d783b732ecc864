"""Sends a reply at the pace and with the faults that the model's name asks for."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace

from starlette.responses import JSONResponse, Response, StreamingResponse

from local.model_server.knobs import Knobs
from local.model_server.protocol.errors import ApiError
from local.model_server.protocol.overtalk import FILLER
from local.model_server.protocol.replies import (
    Envelope,
    Json,
    Reply,
    ToolCall,
    Usage,
    chunk,
    completion,
    tool_call_piece,
    tool_call_start,
    usage_chunk,
)

LONGEST_PIECE = 8  # characters: long words and tags come in several pieces, as from a tokenizer
ARGUMENT_PIECE = 12
_PIECE = re.compile(rf"\s*\S{{1,{LONGEST_PIECE}}}|\s+")
_CUT_BODY = '{"object": "list", "data": ['
_FOREIGN_BODY: Json = {"status": "ok", "result": "no model speaks like this"}
_SHAPELESS = '{"unexpected": true}'
_DISCONNECT_POLL_S = 0.1

Waiter = Callable[[], Awaitable[bool]]


class DroppedError(ConnectionError):
    """The connection is to be closed in the middle: asked for by the knob `drop`."""


@dataclass(frozen=True)
class Delivery:
    """One reply on its way. `is_disconnected` tells whether the client still listens."""

    envelope: Envelope
    reply: Reply
    usage: Usage
    knobs: Knobs
    include_usage: bool
    is_disconnected: Waiter


def apply_content_knobs(reply: Reply, knobs: Knobs) -> Reply:
    """The reply with another text, if the knobs ask for one."""
    if knobs.refuse:
        return Reply(refusal="The local model was asked by its name to refuse.")
    if knobs.filter:
        return replace(reply, text="", tool_call=None, finish_reason="content_filter")
    if knobs.garbage in {"content", "shape"} and reply.tool_call:
        arguments = '{"query": "no end' if knobs.garbage == "content" else _SHAPELESS
        return replace(reply, tool_call=ToolCall(reply.tool_call.name, arguments))
    if knobs.garbage in {"content", "shape"}:
        return replace(reply, text='{"garbage": [1, 2, ' if knobs.garbage == "content" else _SHAPELESS)
    if knobs.length and not reply.tool_call:
        pieces = split_pieces(FILLER * (knobs.length // 8 + 1))
        return replace(reply, text="".join(pieces[: knobs.length]))
    return reply


def split_pieces(text: str) -> list[str]:
    """The text as it is streamed: words, with the space before them; joined they are the text."""
    return _PIECE.findall(text)


async def wait_whole(delivery: Delivery) -> None:
    """Before a reply that is sent in one body: as long as streaming it would take; for ever if it stalls."""
    knobs = delivery.knobs
    if knobs.stall is not None:
        await hang(delivery.is_disconnected)
    pieces = len(_deltas(delivery.reply, knobs))
    per_piece_s = knobs.drip / 1000 if knobs.drip else 1 / knobs.tps if knobs.tps else 0.0
    await asyncio.sleep(knobs.ttft / 1000 + pieces * per_piece_s)


def whole(delivery: Delivery) -> Response:
    """The reply in one body, or what a fault makes of it.

    Raises:
        ApiError: what would break a stream in its middle leaves nothing of a whole body.
    """
    knobs = delivery.knobs
    if knobs.midstream is not None:
        raise ApiError(500, "Injected instead of a whole body.", code="injected")
    if knobs.garbage == "protocol":
        return JSONResponse(_FOREIGN_BODY)
    if knobs.garbage == "body":
        return Response(_CUT_BODY, media_type="application/json")
    body = completion(delivery.envelope, delivery.reply, delivery.usage)
    if knobs.drop is not None:
        return StreamingResponse(_broken(json.dumps(body)), media_type="application/json")
    return JSONResponse(body)


async def _broken(body: str) -> AsyncIterator[bytes]:
    yield body[: len(body) // 2].encode()
    raise DroppedError


async def hang(is_disconnected: Waiter) -> None:
    """Say nothing more until the client goes away."""
    while not await is_disconnected():  # noqa: ASYNC110  (the server offers no event for it)
        await asyncio.sleep(_DISCONNECT_POLL_S)


async def stream(delivery: Delivery) -> AsyncIterator[bytes]:
    """Server-sent events of a completion, with [DONE] at the end unless a fault ends it before."""
    await asyncio.sleep(delivery.knobs.ttft / 1000)
    if delivery.knobs.stall == 0:
        await hang(delivery.is_disconnected)
        return
    if delivery.knobs.drop == 0:
        raise DroppedError
    envelope, reply = delivery.envelope, delivery.reply
    yield _event(chunk(envelope, {"role": "assistant", "content": None if reply.tool_call else ""}))
    if reply.tool_call:
        yield _event(chunk(envelope, tool_call_start(envelope, reply.tool_call)))
    count = 0
    for count, delta in enumerate(_deltas(reply, delivery.knobs), start=1):
        await _pace(delivery.knobs)
        yield _event(chunk(envelope, delta))
        if fault := _fault_after(count, delivery.knobs):
            yield fault
            return
        if count == delivery.knobs.stall:
            await hang(delivery.is_disconnected)
            return
    yield _event(chunk(envelope, {}, reply.finish_reason))
    if delivery.include_usage:
        yield _event(usage_chunk(envelope, delivery.usage))
    yield b"data: [DONE]\n\n"


def piece_count(delivery: Delivery) -> int:
    """How many pieces the reply is streamed in; one at least."""
    return max(len(_deltas(delivery.reply, delivery.knobs)), 1)


def _deltas(reply: Reply, knobs: Knobs) -> list[Json]:
    if reply.tool_call:
        text = reply.tool_call.arguments
        size = 1 if knobs.drip else ARGUMENT_PIECE
        return [tool_call_piece(text[at : at + size]) for at in range(0, len(text), size)]
    if reply.refusal:
        return [{"refusal": piece} for piece in split_pieces(reply.refusal)]
    pieces = list(reply.text) if knobs.drip else split_pieces(reply.text)
    return [{"content": piece} for piece in pieces]


async def _pace(knobs: Knobs) -> None:
    if knobs.drip:
        await asyncio.sleep(knobs.drip / 1000)
    elif knobs.tps:
        await asyncio.sleep(1 / knobs.tps)


def _fault_after(count: int, knobs: Knobs) -> bytes | None:
    """What ends the stream after that many pieces.

    Raises:
        DroppedError: the connection is to break here.
    """
    if count == knobs.drop:
        raise DroppedError
    if knobs.garbage == "body" and count == 1:
        return b'data: {"id": "chatcmpl-garbage", "choices": [\n\n'
    if knobs.garbage == "protocol" and count == 1:
        return _event(_FOREIGN_BODY)
    if count == knobs.midstream:
        error = {
            "message": "Injected in mid-stream.",
            "type": "server_error",
            "param": None,
            "code": "injected",
        }
        return _event({"error": error})
    return None


def _event(body: Json) -> bytes:
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n".encode()
