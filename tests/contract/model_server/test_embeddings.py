"""Embeddings through the real openai SDK."""

import asyncio

import openai
import pytest
from openai import AsyncOpenAI

from tests.contract.model_server.conftest import CHAT, EMBEDDING

pytestmark = pytest.mark.contract


async def test_floats_and_base64_are_the_same_vectors(client: AsyncOpenAI) -> None:
    texts = ["The valve opens.", "Lunch is at noon.", "Das Ventil öffnet."]
    decoded = await client.embeddings.create(model=EMBEDDING, input=texts)
    floats = await client.embeddings.create(model=EMBEDDING, input=texts, encoding_format="float")
    assert [item.index for item in decoded.data] == [0, 1, 2]
    for one, other in zip(decoded.data, floats.data, strict=True):
        assert len(one.embedding) == 384
        assert one.embedding == pytest.approx(other.embedding, abs=1e-6)
    assert decoded.usage.prompt_tokens == decoded.usage.total_tokens > 8


async def test_a_large_request_does_not_hold_up_a_chat(client: AsyncOpenAI) -> None:
    texts = [f"{index} " + "word " * 100 for index in range(24)]
    embedding = asyncio.ensure_future(client.embeddings.create(model=EMBEDDING, input=texts))
    await asyncio.sleep(0.1)
    document = "<document doc_id='d'><block>Some text here.</block></document>"
    message = f"<question>a</question><documents>{document}</documents>"
    await client.chat.completions.create(model=CHAT, messages=[{"role": "user", "content": message}])
    assert not embedding.done()
    assert len((await embedding).data) == 24


async def test_bad_inputs_are_refused_by_name(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as empty:
        await client.embeddings.create(model=EMBEDDING, input=["x", ""])
    assert (empty.value.param or "").startswith("input.1")
    with pytest.raises(openai.BadRequestError) as many:
        await client.embeddings.create(model=EMBEDDING, input=["x"] * 2049)
    assert many.value.param == "input"
    with pytest.raises(openai.BadRequestError) as shorter:
        await client.embeddings.create(model=EMBEDDING, input="x", dimensions=100)
    assert shorter.value.param == "dimensions"
    with pytest.raises(openai.NotFoundError):
        await client.embeddings.create(model=CHAT, input="x")
    with pytest.raises(openai.RateLimitError):
        await client.embeddings.create(model=f"{EMBEDDING}@fail=429", input="x")
