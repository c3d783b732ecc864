"""Turns of sub-agents through the real openai SDK: tools first, then a report, whole or piece by piece."""

import json

import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
from pydantic_core import from_json

from shared.answering.profiles import ComparatorReport, DocReaderReport
from tests.contract.model_server.conftest import CHAT

pytestmark = pytest.mark.contract

OLD = """<document doc_id="old" filename="press-2021.pdf" title="Press manual 2021">
<block page="4" heading="3 Safety">The maximum pressure is 230 bar. Wear goggles at all times.</block>
</document>"""
NEW = """<document doc_id="new" filename="press-2024.pdf" title="Press manual 2024">
<block page="3" heading="3 Safety">The maximum pressure is 250 bar. The oil is changed yearly.</block>
</document>"""
TARGETS = "<targets>old: press-2021.pdf\nnew: press-2024.pdf</targets>"


def task(then: str, *documents: str) -> ChatCompletionMessageParam:
    """Return the message with a sub-agent's task."""
    text = (
        f"<task>Compare the maximum pressure in both press manuals</task>\n{TARGETS}\n"
        f"<documents>{''.join(documents)}</documents>\n<next>{then}</next>"
    )
    return {"role": "user", "content": text}


def tool(name: str) -> ChatCompletionToolParam:
    properties = {"query": {"type": "string"}, "doc_ids": {"type": "array", "items": {"type": "string"}}}
    return {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": properties, "required": ["query"]},
        },
    }


TOOLS = [tool("rag_semantic_search"), tool("rag_metadata_search")]


async def test_a_document_without_passages_is_searched_and_then_all_is_ready(client: AsyncOpenAI) -> None:
    user_message = task("work", OLD)
    first = await client.chat.completions.create(model=CHAT, messages=[user_message], tools=TOOLS)
    message = first.choices[0].message
    call = (message.tool_calls or [])[0]
    assert call.type == "function"
    assert call.function.name == "rag_semantic_search"
    assert json.loads(call.function.arguments)["doc_ids"] == ["new"]
    conversation: list[ChatCompletionMessageParam] = [
        user_message,
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.function.name, "arguments": call.function.arguments},
                }
            ],
        },
        {"role": "tool", "tool_call_id": call.id, "content": f"<documents>{NEW}</documents>"},
    ]
    second = await client.chat.completions.create(model=CHAT, messages=conversation, tools=TOOLS)
    assert second.choices[0].message.content == "READY"
    assert second.choices[0].finish_reason == "stop"


async def test_a_report_streams_piece_by_piece_with_its_usage_at_the_end(client: AsyncOpenAI) -> None:
    async with client.chat.completions.stream(
        model=CHAT,
        messages=[task("report", OLD, NEW)],
        response_format=ComparatorReport,
        stream_options={"include_usage": True},
    ) as stream:
        pieces = [event.delta async for event in stream if event.type == "content.delta"]
        final = await stream.get_final_completion()
    whole = await client.chat.completions.parse(
        model=CHAT, messages=[task("report", OLD, NEW)], response_format=ComparatorReport
    )
    assert "".join(pieces) == whole.choices[0].message.content
    assert len(pieces) > 30
    assert final.usage == whole.usage
    report = final.choices[0].message.parsed
    assert report is not None
    sides = report.differences[0].sides
    assert {(side.doc_id, side.quote) for side in sides} == {
        ("old", "The maximum pressure is 230 bar."),
        ("new", "The maximum pressure is 250 bar."),
    }


async def test_a_report_that_breaks_off_holds_what_was_whole(client: AsyncOpenAI) -> None:
    whole = await client.chat.completions.create(
        model=f"{CHAT}@cut=80",
        messages=[task("report", OLD, NEW)],
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "DocReaderReport", "schema": DocReaderReport.model_json_schema()},
        },
    )
    assert whole.choices[0].finish_reason == "length"
    part = from_json(whole.choices[0].message.content or "", allow_partial=True)
    assert part["sections"][0]["summary"] == "The maximum pressure is 230 bar. Wear goggles at all times."
