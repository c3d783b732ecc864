"""The model server without HTTP routing: admission of requests, worker threads, faults and counters."""

import asyncio
import time
import uuid
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from starlette.responses import JSONResponse, Response, StreamingResponse

from local.model_server.embedding.minilm import DIMENSIONS
from local.model_server.embedding.service import MINILM_NAME, EmbeddingService
from local.model_server.knobs import Knobs, hidden_tokens, parse_knobs, with_fault
from local.model_server.protocol.delivery import (
    CUT_BODY,
    Delivery,
    StalledResponse,
    apply_content_knobs,
    lengthen,
    stream,
    whole_response,
)
from local.model_server.protocol.replies import Envelope, Json, Reply, Usage, embedding_list
from local.model_server.protocol.requests import ApiError, ChatRequest, EmbeddingRequest, read_body
from local.model_server.respond import CHAT_MODEL, write_reply
from local.model_server.tasks import task_of

LATEST_CALLS = 200  # number of calls listed in the statistics, more than one question makes


@dataclass
class Call:
    """A chat request with its token counts, as a provider would bill them. Completion tokens are counted up
    to the last piece delivered.

    Failed requests cost nothing.
    """

    task: str
    prompt_tokens: int
    completion_tokens: int = 0


@dataclass
class Stats:
    """Counters since the start of the server."""

    texts_embedded: int = 0
    failures: int = 0
    _requests: Counter[str] = field(default_factory=Counter)
    _models: Counter[str] = field(default_factory=Counter)
    _affected: Counter[str] = field(default_factory=Counter)
    _call_count: int = 0
    _calls: deque[Call] = field(default_factory=lambda: deque(maxlen=LATEST_CALLS))

    def count_request(self, kind: str, model: str, *, is_affected: bool) -> int:
        """Count a request and return its number. Numbers start at 1 and count the requests for this model
        name to which the knobs apply.
        """
        self._requests[kind] += 1
        self._models[model] += 1
        self._affected[model] += is_affected
        return self._affected[model]

    def begin_call(self, task: str, prompt_tokens: int) -> Call:
        """Record a chat request and return it. The caller adds completion tokens while the reply is
        delivered.
        """
        call = Call(task, prompt_tokens)
        self._call_count += 1
        self._calls.append(call)
        return call

    @property
    def body(self) -> Json:
        latest = [[call.task, call.prompt_tokens, call.completion_tokens] for call in self._calls]
        return {
            "requests": {kind: self._requests[kind] for kind in ("chat", "embeddings")},
            "by_model": dict(sorted(self._models.items())),
            "texts_embedded": self.texts_embedded,
            "calls": {"count": self._call_count, "latest": latest},
            "failures_injected": self.failures,
        }


CHAT_WORKERS = 2
EMBEDDING_WORKERS = 2  # size of a separate pool, so that embedding requests don't block chat
# Enough for the searches of a question or a small file; larger requests have low priority.
MOST_URGENT_TEXTS = 8
PICTURE_TOKENS = 85  # number of tokens that OpenAI bills for a low-detail picture


class ModelServer:
    """The state of a server process. Unless stated otherwise, methods run on the event loop."""

    def __init__(self, embedder: EmbeddingService) -> None:
        self.embedder = embedder
        self.stats = Stats()
        self._chat_pool = ThreadPoolExecutor(CHAT_WORKERS, thread_name_prefix="chat")
        self._embedding_pool = ThreadPoolExecutor(EMBEDDING_WORKERS, thread_name_prefix="embeddings")
        self._bulk_pool = ThreadPoolExecutor(EMBEDDING_WORKERS, thread_name_prefix="bulk-embeddings")

    def close(self) -> None:
        for pool in (self._chat_pool, self._embedding_pool, self._bulk_pool):
            pool.shutdown(wait=False, cancel_futures=True)
        self.embedder.close()

    def knobs_of(self, model: str, *served: str) -> Knobs:
        """Parse the knobs in a model name and check that the model is served.

        Raises:
            ApiError: 404 for another model, 400 for invalid knobs.
        """
        base, _, suffix = model.partition("@")
        if base not in served:
            message = f"The model `{base}` is not served here, only {', '.join(served)}."
            raise ApiError(404, message, code="model_not_found", param="model")
        return parse_knobs(suffix)

    async def chat(self, raw: bytes) -> Response:
        """Handle POST /chat/completions, streamed or not."""
        request = read_body(ChatRequest, raw)
        task = task_of(request)
        knobs = self._admit("chat", request.model, CHAT_MODEL, task)
        loop = asyncio.get_running_loop()
        reply, usage = await loop.run_in_executor(self._chat_pool, self._write, request, knobs)
        envelope = Envelope(f"chatcmpl-{uuid.uuid4().hex}", int(time.time()), request.model)
        include_usage = bool(request.stream_options and request.stream_options.include_usage)
        delivery = Delivery(envelope, reply, usage, knobs, include_usage)
        call = self.stats.begin_call(task, usage.prompt_tokens)
        if request.stream:
            return StreamingResponse(_count_pieces(delivery, call), media_type="text/event-stream")
        try:
            response = await whole_response(delivery)
        except ApiError:
            call.prompt_tokens = 0
            raise
        call.completion_tokens = usage.completion_tokens if knobs.stall is None else 0
        return response

    async def embed(self, raw: bytes) -> Response:
        """Handle POST /embeddings. Requests with many texts run in low-priority threads."""
        request = read_body(EmbeddingRequest, raw)
        knobs = self._admit("embeddings", request.model, MINILM_NAME, "embeddings")
        if request.dimensions not in {None, DIMENSIONS}:
            message = f"{MINILM_NAME} supports only {DIMENSIONS} dimensions."
            raise ApiError(400, message, code="invalid_value", param="dimensions")
        if knobs.stall is not None:
            return StalledResponse()
        await asyncio.sleep(knobs.ttft / 1000)
        loop = asyncio.get_running_loop()
        if len(request.input) > MOST_URGENT_TEXTS:
            pool, embed = self._bulk_pool, self.embedder.embed_in_bulk
        else:
            pool, embed = self._embedding_pool, self.embedder.embed
        vectors = await loop.run_in_executor(pool, embed, request.input)
        tokens = await loop.run_in_executor(pool, self._count_all, request.input)
        self.stats.texts_embedded += len(request.input)
        if knobs.garbage:
            return Response(CUT_BODY, media_type="application/json")
        return JSONResponse(embedding_list(vectors, request.encoding_format, request.model, tokens))

    def _admit(self, kind: str, model: str, served: str, task: str) -> Knobs:
        """Count a request and return the knobs that apply to it, or raise the failure that they request."""
        requested = self.knobs_of(model, served)
        is_affected = requested.apply_to(task)
        number = self.stats.count_request(kind, model, is_affected=is_affected)
        knobs = with_fault(requested, number) if is_affected else Knobs()
        if knobs.fail and knobs.fail.is_due(model, number):
            self.stats.failures += 1
            headers = {"retry-after": str(knobs.retry_after)} if knobs.retry_after is not None else {}
            message = f"Injected failure {knobs.fail.status} (request {number})."
            raise ApiError(knobs.fail.status, message, code="injected", headers=headers)
        return knobs

    def reply_to(self, request: ChatRequest, knobs: Knobs) -> Reply:
        """Return the reply with content faults applied, before truncation to the token limit. Runs in a
        worker thread.
        """
        reply = write_reply(request, self.embedder, knobs.toolloop, delegates=knobs.delegate)
        return apply_content_knobs(reply, knobs)

    def _write(self, request: ChatRequest, knobs: Knobs) -> tuple[Reply, Usage]:
        """Return the reply, truncated to its token limit, and its token usage. Runs in a worker thread."""
        hidden = hidden_tokens(knobs, request)
        reply = self._cut(self.reply_to(request, knobs), request, knobs, hidden)
        pictures = sum(len(message.image_urls) for message in request.messages)
        prompt_tokens = self._count_all(one.text for one in request.messages) + pictures * PICTURE_TOKENS
        completion_tokens = self.embedder.count_tokens(reply.spoken) + hidden
        return reply, Usage(prompt_tokens, completion_tokens, hidden)

    def _cut(self, reply: Reply, request: ChatRequest, knobs: Knobs, hidden: int) -> Reply:
        """Truncate the reply to its token limit minus the hidden tokens. With the knob `overtalk`, exceed the
        limit instead.
        """
        if knobs.overtalk:
            return lengthen(reply, (request.output_limit or 0) + knobs.overtalk, self.embedder.count_tokens)
        limits = [limit for limit in (knobs.cut, request.output_limit) if limit is not None]
        if not limits or reply.refusal:
            return reply
        if (limit := min(limits) - hidden) <= 0:
            return Reply(finish_reason="length")
        text, was_cut = self.embedder.cut_tokens(reply.spoken, limit)
        return replace(reply.with_text(text), finish_reason="length") if was_cut else reply

    def _count_all(self, texts: Iterable[str]) -> int:
        return sum(self.embedder.count_tokens(text) for text in texts)


async def _count_pieces(delivery: Delivery, call: Call) -> AsyncIterator[bytes]:
    """Yield the events of a stream, and update the number of delivered tokens in `call`."""
    pieces = max(len(delivery.deltas), 1)
    piece_count = 0
    async for event in stream(delivery):
        yield event
        piece_count += 1
        call.completion_tokens = round(delivery.usage.completion_tokens * min(piece_count / pieces, 1.0))
