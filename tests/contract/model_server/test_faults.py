"""Faults limited to some tasks, replies beyond their token limit, and chaos, also in structured replies and
tool calls.
"""

import json

import openai
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion
from pydantic import ValidationError

from shared.answering.profiles import ComparatorReport
from tests.contract.model_server.conftest import CHAT, EMBEDDING
from tests.contract.model_server.test_chat import PROMPT, PlanReply
from tests.contract.model_server.test_sub_agents import NEW, OLD, TOOLS, task

pytestmark = pytest.mark.contract


async def plan(client: AsyncOpenAI, knobs: str) -> ChatCompletion:
    return await client.chat.completions.parse(
        model=f"{CHAT}@{knobs}",
        messages=[{"role": "user", "content": "<question>What is new?</question>"}],
        response_format=PlanReply,
    )


async def answer(client: AsyncOpenAI, knobs: str, **more: object) -> ChatCompletion:
    reply: ChatCompletion = await client.chat.completions.create(  # type: ignore[call-overload]
        model=f"{CHAT}@{knobs}", messages=[{"role": "user", "content": PROMPT}], **more
    )
    return reply


async def report(client: AsyncOpenAI, knobs: str, **more: object) -> ChatCompletion:
    reply: ChatCompletion = await client.chat.completions.parse(
        model=f"{CHAT}@{knobs}",
        messages=[task("report", OLD, NEW)],
        response_format=ComparatorReport,
        **more,  # type: ignore[arg-type]
    )
    return reply


async def work(client: AsyncOpenAI, knobs: str, **more: object) -> ChatCompletion:
    reply: ChatCompletion = await client.chat.completions.create(  # type: ignore[call-overload]
        model=f"{CHAT}@{knobs}", messages=[task("work", OLD, NEW)], tools=TOOLS, **more
    )
    return reply


@pytest.mark.parametrize(
    ("only", "failing"),
    [
        ("plan", {"plan"}),
        ("answer", {"answer"}),
        ("sub_agent", {"report", "work"}),
        ("plan+answer", {"plan", "answer"}),
        ("ComparatorReport", {"report"}),
    ],
)
async def test_a_fault_strikes_only_the_tasks_it_is_for(
    client: AsyncOpenAI, only: str, failing: set[str]
) -> None:
    failed = set()
    for ask in (plan, answer, report, work):
        try:
            await ask(client, f"fail=500,only={only}")
        except openai.InternalServerError:
            failed.add(ask.__name__)
    assert failed == failing


async def test_a_counted_fault_counts_the_requests_it_is_for(client: AsyncOpenAI) -> None:
    knobs = "fail=503:1,only=answer,ttft=1"
    await plan(client, knobs)
    with pytest.raises(openai.InternalServerError):
        await answer(client, knobs)
    await answer(client, knobs)


async def test_embeddings_have_no_fault_that_is_for_answers(client: AsyncOpenAI) -> None:
    await client.embeddings.create(model=f"{EMBEDDING}@fail=500,only=answer", input="x")
    with pytest.raises(openai.InternalServerError):
        await client.embeddings.create(model=f"{EMBEDDING}@fail=500,only=embeddings", input="x")


async def test_what_talks_over_its_limit_says_how_much_it_said(client: AsyncOpenAI) -> None:
    for ask in (answer, report, work):
        reply = await ask(client, "overtalk=300", max_completion_tokens=200)
        assert reply.usage is not None
        assert reply.usage.completion_tokens >= 500
        assert reply.choices[0].finish_reason in {"stop", "tool_calls"}
    completion = await report(client, "overtalk=300", max_completion_tokens=200)
    ComparatorReport.model_validate_json(completion.choices[0].message.content or "")


async def test_a_value_of_another_shape_is_json_and_fits_no_schema(client: AsyncOpenAI) -> None:
    with pytest.raises(ValidationError):
        await report(client, "garbage=shape")
    completion = await work(client, "garbage=shape,toolloop")
    message = completion.choices[0].message
    text = message.content or message.tool_calls[0].function.arguments  # type: ignore[index,union-attr]
    assert json.loads(text) == {"unexpected": True}


async def test_a_body_that_is_not_of_the_protocol_holds_no_choices(client: AsyncOpenAI) -> None:
    assert (await answer(client, "garbage=protocol")).choices is None
    stream = await client.chat.completions.create(
        model=f"{CHAT}@garbage=protocol", messages=[{"role": "user", "content": PROMPT}], stream=True
    )
    chunks = [chunk async for chunk in stream]
    assert chunks[-1].choices is None


@pytest.mark.parametrize("knob", ["drop=2", "midstream=2"])
async def test_what_breaks_a_stream_leaves_nothing_of_a_whole_body(client: AsyncOpenAI, knob: str) -> None:
    for ask in (answer, report, work):
        with pytest.raises((openai.APIConnectionError, openai.InternalServerError)):
            await ask(client, knob)
