"""Sends a reply at the pace and with the faults that the model's name asks for."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace

from local.model_server.knobs import Knobs
from local.model_server.protocol.replies import (
    Envelope,
    Json,
    Reply,
    ToolCall,
    Usage,
    chunk,
    tool_call_piece,
    tool_call_start,
    usage_chunk,
)

LONGEST_PIECE = 8  # characters: long words and tags come in several pieces, as from a tokenizer
ARGUMENT_PIECE = 12
_PIECE = re.compile(rf"\s*\S{{1,{LONGEST_PIECE}}}|\s+")
_FILLER_WORDS = "This sentence only fills the length that was asked for. "
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
    if knobs.garbage == "content" and reply.tool_call:
        return replace(reply, tool_call=ToolCall(reply.tool_call.name, '{"query": "no end'))
    if knobs.garbage == "content":
        return replace(reply, text='{"garbage": [1, 2, ')
    if knobs.length and not reply.tool_call:
        pieces = split_pieces(_FILLER_WORDS * (knobs.length // 8 + 1))
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
    pieces = len(split_pieces(delivery.reply.text))
    per_piece_s = 1 / knobs.tps if knobs.tps else 0.0
    drip_s = len(delivery.reply.text) * knobs.drip / 1000 if knobs.drip else 0.0
    await asyncio.sleep(knobs.ttft / 1000 + pieces * per_piece_s + drip_s)


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


def _deltas(reply: Reply, knobs: Knobs) -> list[Json]:
    if reply.tool_call:
        text = reply.tool_call.arguments
        return [tool_call_piece(text[at : at + ARGUMENT_PIECE]) for at in range(0, len(text), ARGUMENT_PIECE)]
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
