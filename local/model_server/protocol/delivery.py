"""Delivers replies with the delays and faults that the model name requests."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from local.model_server.knobs import Knobs
from local.model_server.protocol.replies import Envelope, Json, Reply, Usage
from local.model_server.protocol.requests import ApiError

FILLER = " This sentence only fills the length that was asked for."


def lengthen(reply: Reply, least_tokens: int, count: Callable[[str], int]) -> Reply:
    """Lengthen a reply to at least `least_tokens`, measured with `count`. Replies that are long enough, and
    refusals, are returned unchanged.
    """
    missing = least_tokens - count(reply.spoken)
    if missing <= 0 or reply.refusal:
        return reply
    filler = FILLER * (1 + missing // count(FILLER))
    if not reply.spoken.startswith("{"):
        return reply.with_text(f"{reply.spoken}{filler}".strip())
    parts = json.loads(reply.spoken)
    lists = {name: part for name, part in parts.items() if isinstance(part, list) and part}
    texts = {name: part for name, part in parts.items() if isinstance(part, str)}
    if longest := max(lists or texts, key=lambda name: len(parts[name]), default=None):
        # Number of tokens of the list items, without the brackets.
        once = max(1, count(json.dumps(parts[longest], ensure_ascii=False)) - 2)
        parts[longest] += lists[longest] * (1 + missing // once) if lists else filler
    return reply.with_text(json.dumps(parts, ensure_ascii=False))


ARGUMENT_PIECE = 12
CUT_BODY = '{"object": "list", "data": ['
# Matches a piece of a stream; long words and tags are split, as by a tokenizer.
_PIECE = re.compile(r"\s*\S{1,8}|\s+")
_FOREIGN_BODY: Json = {"status": "ok", "result": "no model speaks like this"}
_GARBAGE = {"content": '{"garbage": [1, 2, ', "shape": '{"unexpected": true}'}
_INJECTED = ApiError(500, "Injected in mid-stream.", code="injected")


class DroppedError(ConnectionError):
    """Error that makes the server close the connection in the middle of a reply, as the knob `drop`
    requests.
    """


class StalledResponse(Response):
    """A response that sends nothing, not even headers, until the client disconnects."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass


@dataclass(frozen=True)
class Delivery:
    """A reply ready to be sent, with the knobs that determine its pace and faults."""

    envelope: Envelope
    reply: Reply
    usage: Usage
    knobs: Knobs
    include_usage: bool

    @property
    def deltas(self) -> list[Json]:
        """The pieces of the reply as OpenAI `delta` objects, in order."""
        spoken = self.reply.spoken
        if self.reply.tool_call:
            pieces = [spoken[at : at + ARGUMENT_PIECE] for at in range(0, len(spoken), ARGUMENT_PIECE)]
            return [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces]
        return [{"refusal" if self.reply.refusal else "content": piece} for piece in _PIECE.findall(spoken)]

    @property
    def piece_s(self) -> float:
        """The delay between two pieces, in seconds."""
        return 1 / self.knobs.tps if self.knobs.tps else 0.0

    @property
    def first_s(self) -> float:
        """The delay before the first piece, in seconds, including the time for hidden reasoning tokens."""
        return self.knobs.ttft / 1000 + self.usage.hidden_tokens * self.piece_s


def apply_content_knobs(reply: Reply, knobs: Knobs) -> Reply:
    """Return the reply unchanged, unless a knob replaces it by a refusal, an empty filtered reply or invalid
    content.
    """
    if knobs.refuse:
        return Reply(refusal="The local model was asked by its name to refuse.")
    if knobs.filter:
        return replace(reply, text="", tool_call=None, finish_reason="content_filter")
    return reply.with_text(_GARBAGE[knobs.garbage]) if knobs.garbage in _GARBAGE else reply


async def whole_response(delivery: Delivery) -> Response:
    """Return a non-streamed response after the time that streaming would have taken. If a knob requests a
    fault, return the faulty response instead.

    Raises:
        ApiError: a fault in the middle of a stream replaces a whole body.
    """
    knobs = delivery.knobs
    if knobs.stall is not None:
        return StalledResponse()
    await asyncio.sleep(delivery.first_s + len(delivery.deltas) * delivery.piece_s)
    if knobs.midstream is not None:
        raise _INJECTED
    if knobs.garbage == "protocol":
        return JSONResponse(_FOREIGN_BODY)
    if knobs.garbage == "body":
        return Response(CUT_BODY, media_type="application/json")
    body = delivery.envelope.completion(delivery.reply, delivery.usage)
    if knobs.drop is not None:
        return StreamingResponse(_broken(json.dumps(body)), media_type="application/json")
    return JSONResponse(body)


async def _broken(body: str) -> AsyncIterator[bytes]:
    yield body[: len(body) // 2].encode()
    raise DroppedError


async def stream(delivery: Delivery) -> AsyncIterator[bytes]:
    """Yield the server-sent events of a streamed completion. The stream ends with [DONE] unless a fault
    interrupts it.
    """
    envelope, reply, knobs = delivery.envelope, delivery.reply, delivery.knobs
    await asyncio.sleep(delivery.first_s)
    if fault := await _fault_after(0, knobs):
        yield fault
        return
    yield _event(envelope.chunk({"role": "assistant", "content": None if reply.tool_call else ""}))
    if reply.tool_call:
        yield _event(
            envelope.chunk({"tool_calls": [{"index": 0, **envelope.tool_call_body(reply.tool_call, "")}]})
        )
    for count, delta in enumerate(delivery.deltas, start=1):
        await asyncio.sleep(delivery.piece_s)
        yield _event(envelope.chunk(delta))
        if fault := await _fault_after(count, knobs):
            yield fault
            return
    yield _event(envelope.chunk({}, reply.finish_reason))
    if delivery.include_usage:
        yield _event(envelope.usage_chunk(delivery.usage))
    yield b"data: [DONE]\n\n"


async def _fault_after(count: int, knobs: Knobs) -> bytes | None:
    """Return the event of a fault due after `count` pieces, or None. A stall waits here until the client
    disconnects.

    Raises:
        DroppedError: if the connection must break at this point.
    """
    if count == knobs.stall:
        await asyncio.Event().wait()  # the task is cancelled when the client disconnects
    if count == knobs.drop:
        raise DroppedError
    if count == knobs.midstream:
        return _event(_INJECTED.body)
    if count and knobs.garbage == "body":
        return f"data: {CUT_BODY}\n\n".encode()
    return _event(_FOREIGN_BODY) if count and knobs.garbage == "protocol" else None


def _event(body: Json) -> bytes:
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n".encode()
