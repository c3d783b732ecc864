"""The model server behind its routes: embeds, writes replies in threads, counts, applies knobs."""

import asyncio
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from starlette.responses import JSONResponse, Response, StreamingResponse

from local.model_server.embedding.service import HASHING_NAME, EmbeddingService
from local.model_server.knobs import Knobs, ModelName, parse_model_name
from local.model_server.plain_chat import CHAT_MODEL
from local.model_server.protocol.delivery import (
    Delivery,
    Waiter,
    apply_content_knobs,
    hang,
    stream,
    wait_whole,
)
from local.model_server.protocol.errors import ApiError
from local.model_server.protocol.replies import Envelope, Reply, Usage, completion, embedding_list
from local.model_server.protocol.requests import ChatRequest, EmbeddingRequest, read_body
from local.model_server.respond import Written, write_reply
from local.model_server.stats import Stats

CHAT_WORKERS = 2
EMBEDDING_WORKERS = 2  # of their own: embedding requests that wait take no worker from chat
PICTURE_TOKENS = 85  # what OpenAI counts for a picture in low detail


class ModelServer:
    """The state of one server process. All methods but `load` belong to the event loop."""

    def __init__(self, embedder: EmbeddingService) -> None:
        self.embedder = embedder
        self.stats = Stats()
        self.started_at = int(time.time())
        self._chat_pool = ThreadPoolExecutor(CHAT_WORKERS, thread_name_prefix="chat")
        self._embedding_pool = ThreadPoolExecutor(EMBEDDING_WORKERS, thread_name_prefix="embeddings")

    @classmethod
    async def load(cls, weights: Path | None) -> "ModelServer":
        """Load the weights (0.3 s) without blocking the event loop."""
        return cls(await asyncio.to_thread(EmbeddingService, weights))

    def close(self) -> None:
        for pool in (self._chat_pool, self._embedding_pool):
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
        return model

    async def chat(self, raw: bytes, deployment: str | None, is_disconnected: Waiter) -> Response:
        """Answer POST /chat/completions."""
        request = read_body(ChatRequest, raw)
        model = self._admit("chat", deployment or request.model, CHAT_MODEL)
        loop = asyncio.get_running_loop()
        written, usage = await loop.run_in_executor(self._chat_pool, self._write, request, model.knobs)
        self.stats.count_reply(written.task, usage)
        envelope = Envelope(f"chatcmpl-{uuid.uuid4().hex}", int(time.time()), model.full)
        include_usage = bool(request.stream_options and request.stream_options.include_usage)
        delivery = Delivery(envelope, written.reply, usage, model.knobs, include_usage, is_disconnected)
        if request.stream:
            return StreamingResponse(stream(delivery), media_type="text/event-stream")
        await wait_whole(delivery)
        if model.knobs.garbage == "body":
            return _garbage()
        return JSONResponse(completion(envelope, written.reply, usage))

    async def embed(self, raw: bytes, deployment: str | None, is_disconnected: Waiter) -> Response:
        """Answer POST /embeddings."""
        request = read_body(EmbeddingRequest, raw)
        model = self._admit("embeddings", deployment or request.model, self.embedder.model)
        if request.dimensions not in {None, self.embedder.dimensions}:
            message = f"{self.embedder.model} has {self.embedder.dimensions} dimensions and no others."
            raise ApiError(400, message, code="invalid_value", param="dimensions")
        if model.knobs.stall is not None:
            await hang(is_disconnected)
        await asyncio.sleep(model.knobs.ttft / 1000)
        loop = asyncio.get_running_loop()
        vectors = await loop.run_in_executor(self._embedding_pool, self.embedder.embed, request.input)
        tokens = await loop.run_in_executor(self._embedding_pool, self._count_all, request.input)
        self.stats.count_embeddings(len(request.input), tokens)
        if model.knobs.garbage:
            return _garbage()
        return JSONResponse(embedding_list(vectors, request.encoding_format, model.full, tokens))

    def _admit(self, kind: str, full_name: str, expected: str) -> ModelName:
        """Resolve and count a request, and fail it if its knobs say so."""
        model = self.resolve(full_name)
        if model.base != expected:
            message = f"The model `{model.base}` does not serve {kind}; `{expected}` does."
            raise ApiError(404, message, code="model_not_found", param="model")
        number = self.stats.count_request(kind, model.full)
        failure = model.knobs.fail
        if failure and failure.is_due(model.full, number):
            self.stats.count_failure()
            seconds = model.knobs.retry_after
            headers = {"retry-after": str(seconds)} if seconds is not None else {}
            message = f"Injected failure {failure.status} (request {number})."
            raise ApiError(failure.status, message, code="injected", headers=headers)
        return model

    def _write(self, request: ChatRequest, knobs: Knobs) -> tuple[Written, Usage]:
        """Runs in a worker thread: the reply with content knobs and token limits applied, and its tokens."""
        written = write_reply(request, self.embedder, knobs.toolloop)
        reply = self._cut(apply_content_knobs(written.reply, knobs), request, knobs)
        spoken = reply.tool_call.arguments if reply.tool_call else reply.text or reply.refusal or ""
        texts = [message.text for message in request.messages]
        pictures = sum(len(message.image_urls) for message in request.messages)
        prompt_tokens = self._count_all(texts) + pictures * PICTURE_TOKENS
        usage = Usage(prompt_tokens, self.embedder.count_tokens(spoken))
        return Written(reply, written.task), usage

    def _cut(self, reply: Reply, request: ChatRequest, knobs: Knobs) -> Reply:
        limits = [limit for limit in (knobs.cut, request.output_limit) if limit is not None]
        if not limits or reply.tool_call or reply.refusal:
            return reply
        text, was_cut = self.embedder.cut_tokens(reply.text, min(limits))
        return replace(reply, text=text, finish_reason="length") if was_cut else reply

    def _count_all(self, texts: list[str] | tuple[str, ...]) -> int:
        return sum(self.embedder.count_tokens(text) for text in texts)


def _garbage() -> Response:
    return Response(b'{"object": "list", "data": [', media_type="application/json")
