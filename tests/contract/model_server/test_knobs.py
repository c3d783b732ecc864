"""Each fault and speed that the model's name can select, as seen by the real openai SDK."""

import json
import time

import httpx2
import openai
import pytest
from openai import AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletionChunk

from tests.contract.model_server.conftest import CHAT, EMBEDDING, OpenClient, elapsed_s
from tests.contract.model_server.test_chat import SEARCH, PlanReply

pytestmark = pytest.mark.contract
HELLO = "Hello there"


async def ask(client: AsyncOpenAI, knobs: str) -> openai.types.chat.ChatCompletion:
    return await client.chat.completions.create(
        model=f"{CHAT}@{knobs}", messages=[{"role": "user", "content": HELLO}]
    )


async def stream(client: AsyncOpenAI, knobs: str) -> AsyncStream[ChatCompletionChunk]:
    return await client.chat.completions.create(
        model=f"{CHAT}@{knobs}", messages=[{"role": "user", "content": HELLO}], stream=True
    )


async def receive(client: AsyncOpenAI, knobs: str, received: list[ChatCompletionChunk]) -> None:
    """Stream into `received`, which keeps the chunks that precede an error."""
    async for chunk in await stream(client, knobs):
        received.append(chunk)  # noqa: PERF401  (kept up to the error)


def pieces_of(chunks: list[ChatCompletionChunk]) -> list[str]:
    return [chunk.choices[0].delta.content for chunk in chunks if chunk.choices[0].delta.content]


async def test_a_counted_failure_is_retried_away_by_the_client(open_client: OpenClient) -> None:
    reply = await ask(open_client(max_retries=2), "fail=429:2,retry_after=0")
    assert reply.choices[0].finish_reason == "stop"


@pytest.mark.parametrize(
    ("status", "error"),
    [(429, openai.RateLimitError), (500, openai.InternalServerError), (403, openai.PermissionDeniedError)],
)
async def test_a_failure_has_its_status_and_retry_after(
    client: AsyncOpenAI, status: int, error: type[openai.APIStatusError]
) -> None:
    with pytest.raises(error) as failed:
        await ask(client, f"fail={status},retry_after=7")
    assert failed.value.response.headers["retry-after"] == "7"
    assert failed.value.code == "injected"


async def test_time_to_first_token_and_pace_are_kept(client: AsyncOpenAI) -> None:
    started = time.monotonic()
    chunks = [chunk async for chunk in await stream(client, "ttft=300,tps=50")]
    assert elapsed_s(started) >= 0.3 + (len(chunks) - 2) / 50
    started = time.monotonic()
    await ask(client, "ttft=300,tps=50")
    assert elapsed_s(started) >= 0.3 + (len(chunks) - 2) / 50


@pytest.mark.parametrize("after", [0, 1])
async def test_a_stall_ends_in_the_clients_timeout(open_client: OpenClient, after: int) -> None:
    client = open_client(timeout=1.0)
    received: list[ChatCompletionChunk] = []
    with pytest.raises((openai.APITimeoutError, httpx2.TimeoutException)):
        await receive(client, f"stall={after}", received)
    assert len(pieces_of(received)) == after
    with pytest.raises(openai.APITimeoutError):
        await ask(client, "stall=1")


async def test_a_mid_stream_error_is_raised_by_the_client(client: AsyncOpenAI) -> None:
    received: list[ChatCompletionChunk] = []
    with pytest.raises(openai.APIError, match=r"mid-stream"):
        await receive(client, "midstream=3", received)
    assert len(pieces_of(received)) == 3


async def test_a_dropped_connection_is_no_complete_stream(client: AsyncOpenAI) -> None:
    received: list[ChatCompletionChunk] = []
    with pytest.raises((openai.APIConnectionError, httpx2.RemoteProtocolError)):
        await receive(client, "drop=2", received)
    assert not any(chunk.choices[0].finish_reason for chunk in received)


async def test_cut_ends_with_finish_reason_length(client: AsyncOpenAI) -> None:
    reply = await ask(client, "cut=4")
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage is not None
    assert reply.usage.completion_tokens == 4


@pytest.mark.parametrize(("limit", "ending"), [(200, "length"), (800, "stop")])
async def test_hidden_tokens_take_their_time_and_their_part_of_the_limit(
    client: AsyncOpenAI, limit: int, ending: str
) -> None:
    started = time.monotonic()
    reply = await client.chat.completions.create(
        model=f"{CHAT}@thinks,tps=500",
        messages=[{"role": "user", "content": HELLO}],
        reasoning_effort="low",
        max_completion_tokens=limit,
    )
    assert elapsed_s(started) >= 200 / 500
    assert reply.choices[0].finish_reason == ending
    assert bool(reply.choices[0].message.content) == (ending == "stop")
    assert reply.usage is not None
    assert reply.usage.completion_tokens_details is not None
    assert reply.usage.completion_tokens_details.reasoning_tokens == 200


async def test_garbage_content_is_no_json_and_a_garbage_body_is_no_reply(client: AsyncOpenAI) -> None:
    with pytest.raises(ValueError, match="JSON"):
        await client.chat.completions.parse(
            model=f"{CHAT}@garbage=content",
            messages=[{"role": "user", "content": HELLO}],
            response_format=PlanReply,
        )
    completion = await client.chat.completions.create(
        model=f"{CHAT}@garbage=content",
        messages=[{"role": "user", "content": HELLO}],
        tools=[SEARCH],
    )
    call = (completion.choices[0].message.tool_calls or [])[0]
    assert call.type == "function"
    with pytest.raises(json.JSONDecodeError):
        json.loads(call.function.arguments)
    with pytest.raises(json.JSONDecodeError):
        await ask(client, "garbage=body")
    with pytest.raises(json.JSONDecodeError):
        [chunk async for chunk in await stream(client, "garbage=body")]
    with pytest.raises(json.JSONDecodeError):
        await client.embeddings.create(model=f"{EMBEDDING}@garbage=content", input="x")


async def test_a_filtered_or_refused_answer_is_marked_as_such(client: AsyncOpenAI) -> None:
    assert (await ask(client, "filter=1")).choices[0].finish_reason == "content_filter"
    refused = (await ask(client, "refuse=1")).choices[0].message
    assert refused.content is None
    assert refused.refusal
