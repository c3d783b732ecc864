"""The model server behind its routes: embeds, writes replies in threads, counts, applies knobs."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from starlette.responses import JSONResponse, Response, StreamingResponse

from local.model_server import chaos
from local.model_server.embedding.service import HASHING_NAME, EmbeddingService, shorten
from local.model_server.knobs import Knobs, ModelName, parse_knobs, parse_model_name
from local.model_server.pace import paced
from local.model_server.plain_chat import CHAT_MODEL
from local.model_server.protocol.delivery import (
    Delivery,
    Waiter,
    apply_content_knobs,
    hang,
    piece_count,
    stream,
    wait_whole,
    whole,
)
from local.model_server.protocol.endpoint_kinds import check_chat, check_embedding, decorated, without_ignored
from local.model_server.protocol.errors import ApiError
from local.model_server.protocol.in_words import in_fields
from local.model_server.protocol.overtalk import talk_over
from local.model_server.protocol.replies import Envelope, Reply, ToolCall, Usage, embedding_list
from local.model_server.protocol.requests import ChatRequest, EmbeddingRequest, read_body
from local.model_server.respond import Written, write_reply
from local.model_server.stats import Call, Stats
from local.model_server.tasks import task_of

CHAT_WORKERS = 2
EMBEDDING_WORKERS = 2  # of their own: embedding requests that wait take no worker from chat
MOST_URGENT_TEXTS = 8  # of one request: a question's searches, or a small file; more are bulk
PICTURE_TOKENS = 85  # what OpenAI counts for a picture in low detail


class ModelServer:
    """The state of one server process. All methods but `load` belong to the event loop."""

    def __init__(self, embedder: EmbeddingService, knobs: str = "") -> None:
        """`knobs`: for all requests whose model's name has none."""
        self.embedder = embedder
        self._knobs = parse_knobs(knobs)
        self.stats = Stats()
        self.started_at = int(time.time())
        self._chat_pool = ThreadPoolExecutor(CHAT_WORKERS, thread_name_prefix="chat")
        self._embedding_pool = ThreadPoolExecutor(EMBEDDING_WORKERS, thread_name_prefix="embeddings")
        self._bulk_pool = ThreadPoolExecutor(EMBEDDING_WORKERS, thread_name_prefix="bulk-embeddings")

    @classmethod
    async def load(cls, weights: Path | None, knobs: str = "") -> "ModelServer":
        """Load the weights (0.3 s) without blocking the event loop."""
        return cls(await asyncio.to_thread(EmbeddingService, weights), knobs)

    def close(self) -> None:
        for pool in (self._chat_pool, self._embedding_pool, self._bulk_pool):
            pool.shutdown(wait=False, cancel_futures=True)
        self.embedder.close()

    def resolve(self, full_name: str) -> ModelName:
        """The model that a name asks for.

        Raises:
            ApiError: 404 for a model that is not served here, 400 for bad knobs.
        """
        model = parse_model_name(full_name)
        if model.base not in {CHAT_MODEL, self.embedder.model}:
            hint = " (its package is not installed)" if self.embedder.model == HASHING_NAME else ""
            served = f"{CHAT_MODEL}, {self.embedder.model}"
            message = f"The model `{model.base}` does not exist here{hint}; served are {served}."
            raise ApiError(404, message, code="model_not_found", param="model")
        return model if "@" in full_name else replace(model, knobs=self._knobs)

    async def chat(self, raw: bytes, deployment: str | None, is_disconnected: Waiter) -> Response:
        """Answer POST /chat/completions."""
        sent = read_body(ChatRequest, raw)
        task = task_of(in_fields(sent).request)
        model = self._admit("chat", deployment or sent.model, CHAT_MODEL, task)
        check_chat(sent, model.knobs)
        model = replace(model, knobs=paced(model.knobs, sent))
        request = without_ignored(sent, model.knobs)
        loop = asyncio.get_running_loop()
        written, usage = await loop.run_in_executor(self._chat_pool, self._write, request, model.knobs)
        self.stats.count_reply(written.task, usage)
        envelope = Envelope(f"chatcmpl-{uuid.uuid4().hex}", int(time.time()), model.full)
        include_usage = bool(request.stream_options and request.stream_options.include_usage)
        delivery = Delivery(envelope, written.reply, usage, model.knobs, include_usage, is_disconnected)
        call = self.stats.begin_call(written.task, usage.prompt_tokens)
        if request.stream:
            return StreamingResponse(_counted(delivery, call), media_type="text/event-stream")
        await wait_whole(delivery)
        try:
            response = whole(delivery)
        except ApiError:
            call.prompt_tokens = 0
            raise
        call.completion_tokens = usage.completion_tokens if model.knobs.stall is None else 0
        return response

    async def embed(self, raw: bytes, deployment: str | None, is_disconnected: Waiter) -> Response:
        """Answer POST /embeddings."""
        request = read_body(EmbeddingRequest, raw)
        model = self._admit("embeddings", deployment or request.model, self.embedder.model, "embeddings")
        check_embedding(request, model.knobs)
        wanted = request.dimensions or self.embedder.dimensions
        may_shorten = model.knobs.matryoshka and wanted < self.embedder.dimensions
        if wanted != self.embedder.dimensions and not may_shorten:
            message = f"{self.embedder.model} has {self.embedder.dimensions} dimensions and no others."
            raise ApiError(400, message, code="invalid_value", param="dimensions")
        if model.knobs.stall is not None:
            await hang(is_disconnected)
        await asyncio.sleep(model.knobs.ttft / 1000)
        loop = asyncio.get_running_loop()
        if len(request.input) > MOST_URGENT_TEXTS:
            pool, embed = self._bulk_pool, self.embedder.embed_in_bulk
        else:
            pool, embed = self._embedding_pool, self.embedder.embed
        vectors = await loop.run_in_executor(pool, embed, request.input)
        tokens = await loop.run_in_executor(pool, self._count_all, request.input)
        if may_shorten:
            vectors = shorten(vectors, wanted)
        self.stats.count_embeddings(len(request.input), tokens)
        if model.knobs.garbage:
            return _garbage()
        return JSONResponse(embedding_list(vectors, request.encoding_format, model.full, tokens))

    def _admit(self, kind: str, full_name: str, expected: str, task: str) -> ModelName:
        """Resolve and count a request, with the knobs that are for it; fail it if they say so."""
        model = self.resolve(full_name)
        if model.base != expected:
            message = f"The model `{model.base}` does not serve {kind}; `{expected}` does."
            raise ApiError(404, message, code="model_not_found", param="model")
        is_struck = model.knobs.are_for(task)
        number = self.stats.count_request(kind, model.full, is_struck=is_struck)
        knobs = self._due(model.knobs, number) if is_struck else Knobs()
        if knobs.fail and knobs.fail.is_due(model.full, number):
            self.stats.count_failure()
            headers = {"retry-after": str(knobs.retry_after)} if knobs.retry_after is not None else {}
            message = f"Injected failure {knobs.fail.status} (request {number})."
            raise ApiError(knobs.fail.status, message, code="injected", headers=headers)
        return replace(model, knobs=knobs)

    def _due(self, knobs: Knobs, number: int) -> Knobs:
        if knobs.chaos is None:
            return knobs
        fault = chaos.draw(knobs.chaos, number)
        self.stats.count_draw(fault)
        return chaos.with_fault(knobs, fault)

    def _write(self, request: ChatRequest, knobs: Knobs) -> tuple[Written, Usage]:
        """Runs in a worker thread: the reply with content knobs and token limits applied, and its tokens."""
        asked = in_fields(request)
        written = write_reply(asked.request, self.embedder, knobs.toolloop, delegates=knobs.delegate)
        said = decorated(asked.spoken(apply_content_knobs(written.reply, knobs)), knobs)
        reply = self._cut(said, request, knobs)
        spoken = reply.tool_call.arguments if reply.tool_call else reply.text or reply.refusal or ""
        texts = [message.text for message in request.messages]
        pictures = sum(len(message.image_urls) for message in request.messages)
        prompt_tokens = self._count_all(texts) + pictures * PICTURE_TOKENS
        usage = Usage(prompt_tokens, self.embedder.count_tokens(spoken) + knobs.hidden, knobs.hidden)
        return Written(reply, written.task), usage

    def _cut(self, reply: Reply, request: ChatRequest, knobs: Knobs) -> Reply:
        if knobs.overtalk:
            return talk_over(reply, (request.output_limit or 0) + knobs.overtalk, self.embedder.count_tokens)
        limits = [limit for limit in (knobs.cut, request.output_limit) if limit is not None]
        if knobs.hidden and request.output_limit == knobs.hidden:
            return Reply(finish_reason="length")
        limits = [limit - knobs.hidden for limit in limits]
        if not limits or reply.refusal:
            return reply
        spoken = reply.tool_call.arguments if reply.tool_call else reply.text
        text, was_cut = self.embedder.cut_tokens(spoken, min(limits))
        if not was_cut:
            return reply
        call = reply.tool_call and ToolCall(reply.tool_call.name, text)
        return replace(reply, text="" if call else text, tool_call=call, finish_reason="length")

    def _count_all(self, texts: list[str] | tuple[str, ...]) -> int:
        return sum(self.embedder.count_tokens(text) for text in texts)


async def _counted(delivery: Delivery, call: Call) -> AsyncIterator[bytes]:
    """The stream; `call` has the tokens of the pieces that were sent."""
    pieces = piece_count(delivery)
    sent = 0
    async for event in stream(delivery):
        yield event
        sent += 1
        call.completion_tokens = round(delivery.usage.completion_tokens * min(sent / pieces, 1.0))


def _garbage() -> Response:
    return Response(b'{"object": "list", "data": [', media_type="application/json")
