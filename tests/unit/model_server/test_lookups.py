"""Tool use of sub-agents: what is missing is looked for once, and nothing else."""

import json

import pytest
from pydantic import JsonValue

from local.model_server.embedding.service import EmbeddingService
from local.model_server.lookups import READY, take_turn
from local.model_server.protocol.replies import Reply
from local.model_server.protocol.requests import ChatRequest
from local.model_server.respond import write_reply
from tests.unit.model_server.test_reports import NEW, OLD

TARGETS = "<targets>new: press-2024.pdf\nold: press-2021.pdf</targets>"


def request(
    task: str, *documents: str, tools: str = "retrieve_documents query_metadata", **more: JsonValue
) -> ChatRequest:
    properties: JsonValue = {
        "query": {"type": "string"},
        "doc_ids": {"type": "array", "items": {"type": "string"}, "default": []},
    }
    parameters: JsonValue = {"type": "object", "properties": properties, "required": ["query"]}
    offered: JsonValue = [
        {"type": "function", "function": {"name": name, "parameters": parameters}} for name in tools.split()
    ]
    message = f"<task>{task}</task>{TARGETS}<documents>{''.join(documents)}</documents><next>work</next>"
    messages: JsonValue = [{"role": "user", "content": message}]
    return ChatRequest.model_validate({"model": "m", "messages": messages, "tools": offered, **more})


def call_of(reply: Reply) -> tuple[str, dict[str, JsonValue]]:
    assert reply.tool_call is not None
    return reply.tool_call.name, json.loads(reply.tool_call.arguments)


def test_a_target_without_passages_is_looked_for_by_the_subject(embedder: EmbeddingService) -> None:
    reply = take_turn(request("Compare the pressure of the press manuals", NEW), embedder)
    assert call_of(reply) == ("retrieve_documents", {"query": "pressure", "doc_ids": ["old"]})


def test_a_thing_that_nobody_speaks_of_is_looked_for_in_the_documents_of_the_task(
    embedder: EmbeddingService,
) -> None:
    reply = take_turn(request("Compare the pressure, the filter and the delivery time", NEW, OLD), embedder)
    assert call_of(reply) == (
        "retrieve_documents",
        {"query": "the delivery time", "doc_ids": ["new", "old"]},
    )


@pytest.mark.parametrize("task", ["Compare the pressure of the manuals", "Summarise the press manuals"])
def test_with_all_at_hand_no_tool_is_called(embedder: EmbeddingService, task: str) -> None:
    reply = take_turn(request(task, NEW, OLD), embedder)
    assert (reply.tool_call, reply.text) == (None, READY)


def test_a_call_that_was_made_is_not_made_again(embedder: EmbeddingService) -> None:
    asked = request("Compare the pressure of the press manuals", NEW)
    name, arguments = call_of(take_turn(asked, embedder))
    # As another client writes it: in another order, with other spaces.
    written = json.dumps(dict(reversed(arguments.items())), indent=1)
    called: JsonValue = {"id": "1", "type": "function", "function": {"name": name, "arguments": written}}
    messages: JsonValue = [
        *(message.model_dump(mode="json") for message in asked.messages),
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "1", "content": "Nothing that was not shown before."},
    ]
    again = ChatRequest.model_validate({**asked.model_dump(mode="json"), "messages": messages})
    assert take_turn(again, embedder).text == READY


def test_who_is_told_not_to_call_does_not_call(embedder: EmbeddingService) -> None:
    asked = request("Compare the pressure of the press manuals", NEW, tool_choice="none")
    assert write_reply(asked, embedder).reply.text == READY
    assert write_reply(asked, embedder, tool_loop=1).reply.tool_call is None
    assert write_reply(asked, embedder, tool_loop=2).reply.tool_call is not None


def test_who_is_told_to_call_calls(embedder: EmbeddingService) -> None:
    asked = request("Compare the pressure of the press manuals", NEW, OLD, tool_choice="required")
    assert write_reply(asked, embedder).reply.tool_call is not None
