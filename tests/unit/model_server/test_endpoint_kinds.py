"""Tests for emulating endpoints with fewer features, which refuse or ignore fields."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from local.model_server.protocol.replies import Reply, ToolCall
from local.model_server.protocol.requests import ChatRequest, EmbeddingRequest
from tests.endpoint_kinds.server import (
    PARTS,
    Kind,
    decorated,
    parse_kind,
    refusal_of_chat,
    refusal_of_embedding,
    without_ignored,
)
from tests.endpoint_kinds.words import call_in_words, in_fields

TOOL = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
USER = {"role": "user", "content": "How much?"}
PICTURE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "Verdict", "schema": {"type": "object"}}}
USING: dict[str, dict[str, Any]] = {
    "json_schema": {"response_format": SCHEMA},
    "json_object": {"response_format": {"type": "json_object"}},
    "tools": {"tools": [TOOL]},
    "stream_options": {"stream_options": {"include_usage": True}},
    "max_completion_tokens": {"max_completion_tokens": 5},
    "max_tokens": {"max_tokens": 5},
    "system": {"messages": [{"role": "system", "content": "Answer."}, USER]},
    "images": {"messages": [PICTURE]},
}
STATUSES = {"openai": 400, "pydantic": 422, "router": 404, "text": 400}


def kind_of(knobs: str) -> Kind:
    return parse_kind(f"m@{knobs}")[0]


def chat(**fields: Any) -> ChatRequest:
    return ChatRequest.model_validate({"messages": [USER], **fields})


@pytest.mark.parametrize("dialect", STATUSES)
@pytest.mark.parametrize("part", USING)
def test_a_part_that_is_missing_is_refused_and_no_other(part: str, dialect: str) -> None:
    kind = kind_of(f"without={part},dialect={dialect}")
    for used, fields in USING.items():
        if used != part:
            assert refusal_of_chat(chat(**fields), kind) is None
    refusal = refusal_of_chat(chat(**USING[part]), kind)
    assert refusal is not None
    assert refusal.status == STATUSES[dialect]
    assert json.dumps(refusal.body)


def test_embeddings_have_parts_of_their_own() -> None:
    kind = kind_of("without=base64+dimensions")
    assert refusal_of_embedding(EmbeddingRequest.model_validate({"input": "a"}), kind) is None
    for fields in ({"encoding_format": "base64"}, {"dimensions": 5}):
        assert refusal_of_embedding(EmbeddingRequest.model_validate({"input": "a", **fields}), kind)


def test_what_is_ignored_is_as_if_nobody_had_asked_for_it() -> None:
    kind = kind_of("ignore=json_schema+tools+max_completion_tokens+stream_options")
    request = chat(**{name: value for part in USING.values() for name, value in part.items()})
    left = without_ignored(
        request.model_copy(update={"response_format": chat(response_format=SCHEMA).response_format}), kind
    )
    assert (left.response_format, left.tools, left.max_completion_tokens) == (None, (), None)
    assert left.max_tokens == 5


@pytest.mark.parametrize("knobs", ["without=toolz", "without", "ignore=json", "dialect=german"])
def test_a_part_that_is_misspelt_is_an_error(knobs: str) -> None:
    with pytest.raises(ValidationError):
        kind_of(knobs)


def test_the_other_knobs_of_a_name_are_left_to_the_server() -> None:
    kind, rest = parse_kind("m@ttft=3,without=tools,toolloop")
    assert (kind.without, rest) == (("tools",), "m@ttft=3,toolloop")


def test_every_part_can_be_missing() -> None:
    assert set(PARTS) == {*USING, "base64", "dimensions"}


def test_a_chatty_model_puts_its_json_among_words_and_thinks_aloud() -> None:
    text = decorated(Reply('{"a": 1}'), kind_of("fenced,think")).text
    assert text.startswith("<think>")
    assert '```json\n{"a": 1}\n```' in text
    call = Reply(tool_call=ToolCall("search", "{}"))
    assert decorated(call, kind_of("fenced,think")) == call


def test_a_schema_in_the_prompt_is_one_in_the_request_for_the_material_that_came_with_it() -> None:
    system = 'Plan.\n<json_schema name="Verdict">{"type": "object"}</json_schema>'
    messages = [
        {"role": "system", "content": system},
        {"role": "user", "content": "<question>How much?</question>"},
        {"role": "assistant", "content": "no"},
        {"role": "user", "content": "Again."},
    ]
    request = in_fields(chat(messages=messages))
    assert request.response_format is not None
    assert request.response_format.json_schema is not None
    assert request.response_format.json_schema.name == "Verdict"
    assert request.last_user_message.text == "<question>How much?</question>"


def test_tools_calls_and_results_in_words_are_those_of_a_conversation() -> None:
    tools = '<tools>[{"name": "search"}]</tools>\n{"tool_calls": []}'
    instructions = f"<instructions>\nAnswer.\n{tools}\n</instructions>\n\nHow much?"
    messages = [
        {"role": "user", "content": instructions},
        {"role": "assistant", "content": 'Hm. {"tool_calls": [{"name": "search", "arguments": {"q": 1}}]}'},
        {"role": "user", "content": '<tool_result call_id="c">{"a": 1}</tool_result>\n\nGo on.'},
    ]
    request = in_fields(chat(messages=messages))
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "tool", "user"]
    assert request.messages[2].tool_calls[0].function.arguments == '{"q": 1}'
    assert request.messages[3].text == '{"a": 1}'
    assert (request.tools[0].function.name, request.tool_choice) == ("search", "auto")
    spoken = call_in_words(Reply(tool_call=ToolCall("search", '{"q": 2}'), finish_reason="tool_calls"))
    assert json.loads(spoken.text) == {"tool_calls": [{"name": "search", "arguments": {"q": 2}}]}
    assert (spoken.tool_call, spoken.finish_reason) == (None, "stop")


@pytest.mark.parametrize(
    "text", ["<tools>no json</tools>", "<tools>[{}]</tools>", '<json_schema name="A">x</json_schema>']
)
def test_words_that_only_look_like_it_stay_words(text: str) -> None:
    request = chat(messages=[{"role": "system", "content": text}, USER])
    assert in_fields(request) == request
