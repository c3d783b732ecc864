"""Chat completions through the real openai SDK: whole, streamed, structured, with tools."""

import json
from typing import Literal

import openai
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionToolParam
from pydantic import BaseModel

from tests.contract.model_server.conftest import CHAT, KEY, OpenClient

pytestmark = pytest.mark.contract

PROMPT = """<question>At which pressure does the safety valve open?</question>
<query_type>CONTENT_SEARCH</query_type>
<documents><document doc_id="d1" filename="press.pdf" title="Press">
<block page="3" type="text">The maximum pressure is 250 bar. The safety valve opens at 270 bar.</block>
</document></documents>"""
CITED = '<cite doc_id="d1" quote="The safety valve opens at 270 bar."/>'
SEARCH: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "rag_semantic_search",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    },
}


class PlanReply(BaseModel):
    """A schema as an application would request it; the server reads it from the request."""

    kind: Literal["fact", "procedure", "evidence", "overview", "summary", "comparison", "listing"]
    question: str | None
    searches: list[str]
    keywords: list[str]
    documents: list[str]


class Unheard(BaseModel):
    """A schema for which the server has no handler."""

    verdict: Literal["yes", "no"]
    reasons: list[str]
    child: "Unheard | None"


async def test_an_answer_is_cited_and_counted(client: AsyncOpenAI) -> None:
    reply = await client.chat.completions.create(model=CHAT, messages=[{"role": "user", "content": PROMPT}])
    choice = reply.choices[0]
    assert CITED in (choice.message.content or "")
    assert choice.finish_reason == "stop"
    assert reply.usage is not None
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens > 40


async def test_streamed_pieces_are_the_whole_answer(client: AsyncOpenAI) -> None:
    whole = await client.chat.completions.create(model=CHAT, messages=[{"role": "user", "content": PROMPT}])
    stream = await client.chat.completions.create(
        model=CHAT,
        messages=[{"role": "user", "content": PROMPT}],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = [chunk async for chunk in stream]
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(pieces) == whole.choices[0].message.content
    assert len(pieces) > 10
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage == whole.usage


async def test_a_plan_is_parsed_into_the_callers_model(client: AsyncOpenAI) -> None:
    message = (
        '<conversation><turn role="user">What is the weight of the X200 pump?</turn>'
        '<turn role="assistant">12 kg.</turn></conversation><question>How do I clean it?</question>'
    )
    reply = await client.chat.completions.parse(
        model=CHAT, messages=[{"role": "user", "content": message}], response_format=PlanReply
    )
    plan = reply.choices[0].message.parsed
    assert plan is not None
    assert plan.kind == "fact"
    assert plan.question == "How do I clean it (X200)?"
    assert plan.searches == ["clean x200"]


async def test_an_unheard_schema_is_still_parsed(client: AsyncOpenAI) -> None:
    reply = await client.chat.completions.parse(
        model=CHAT, messages=[{"role": "user", "content": "anything"}], response_format=Unheard
    )
    assert reply.choices[0].message.parsed == Unheard(verdict="yes", reasons=[], child=None)


async def test_a_tool_is_called_whole_and_in_fragments(client: AsyncOpenAI) -> None:
    question = "What is the limit of the safety valve?"
    reply = await client.chat.completions.create(
        model=CHAT, messages=[{"role": "user", "content": question}], tools=[SEARCH]
    )
    choice = reply.choices[0]
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)
    call = (choice.message.tool_calls or [])[0]
    assert call.type == "function"
    assert json.loads(call.function.arguments) == {"query": question}
    async with client.chat.completions.stream(
        model=CHAT, messages=[{"role": "user", "content": question}], tools=[SEARCH]
    ) as stream:
        fragments = [event async for event in stream if event.type == "tool_calls.function.arguments.delta"]
        final = await stream.get_final_completion()
    assert len(fragments) > 2
    streamed = (final.choices[0].message.tool_calls or [])[0]
    assert streamed.function.arguments == call.function.arguments


async def test_the_token_limit_ends_free_text_but_keeps_citations_whole(client: AsyncOpenAI) -> None:
    short = await client.chat.completions.create(
        model=CHAT, messages=[{"role": "user", "content": "Hello"}], max_tokens=5
    )
    assert short.choices[0].finish_reason == "length"
    assert short.usage is not None
    assert short.usage.completion_tokens == 5
    with pytest.raises(openai.LengthFinishReasonError):
        await client.chat.completions.parse(
            model=CHAT,
            messages=[{"role": "user", "content": "<question>x</question>"}],
            response_format=PlanReply,
            max_completion_tokens=5,
        )
    both = PROMPT.replace("At which pressure", "What is the maximum pressure and at which pressure")
    cited = await client.chat.completions.create(
        model=CHAT, messages=[{"role": "user", "content": both}], max_tokens=40
    )
    assert (cited.choices[0].message.content or "").endswith("/>")


async def test_azures_base_reaches_the_same_model(open_client: OpenClient, address: str) -> None:
    message = [{"role": "user", "content": PROMPT}]
    v1 = open_client(base_url=f"{address}/openai/v1/", default_headers={"api-key": KEY})
    reply = await v1.chat.completions.create(model=CHAT, messages=message)  # type: ignore[arg-type]
    assert CITED in (reply.choices[0].message.content or "")


async def test_refusals_have_openais_shape(open_client: OpenClient) -> None:
    client = open_client()
    with pytest.raises(openai.AuthenticationError) as unknown_key:
        await open_client(api_key="wrong").models.retrieve(CHAT)
    assert unknown_key.value.code == "invalid_api_key"
    with pytest.raises(openai.NotFoundError) as unknown_model:
        await client.chat.completions.create(model="gpt-9", messages=[{"role": "user", "content": "x"}])
    assert (unknown_model.value.code, unknown_model.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.BadRequestError) as no_messages:
        await client.chat.completions.create(model=CHAT, messages=[])
    assert no_messages.value.param == "messages"
    with pytest.raises(openai.BadRequestError) as two_choices:
        await client.chat.completions.create(model=CHAT, messages=[{"role": "user", "content": "x"}], n=2)
    assert two_choices.value.param == "n"
    with pytest.raises(openai.NotFoundError):
        await client.moderations.create(input="x")
