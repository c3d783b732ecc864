"""The model server as an endpoint with less of the protocol: what it refuses, ignores, reads out of words."""

import json
from typing import Any

import pytest

from local.model_server.app import admits
from local.model_server.knobs import PARTS, parse_knobs
from local.model_server.protocol.endpoint_kinds import (
    check_chat,
    check_embedding,
    decorated,
    in_fields,
    without_ignored,
)
from local.model_server.protocol.replies import Reply, ToolCall
from local.model_server.protocol.requests import ApiError, ChatRequest, EmbeddingRequest

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


def chat(**fields: Any) -> ChatRequest:
    return ChatRequest.model_validate({"messages": [USER], **fields})


@pytest.mark.parametrize("dialect", STATUSES)
@pytest.mark.parametrize("part", USING)
def test_a_part_that_is_missing_is_refused_and_no_other(part: str, dialect: str) -> None:
    knobs = parse_knobs(f"without={part},dialect={dialect}")
    for used, fields in USING.items():
        if used != part:
            check_chat(chat(**fields), knobs)
    with pytest.raises(ApiError) as refused:
        check_chat(chat(**USING[part]), knobs)
    assert refused.value.response().status_code == STATUSES[dialect]
    assert json.dumps(refused.value.body)


def test_embeddings_have_parts_of_their_own() -> None:
    knobs = parse_knobs("without=base64+dimensions")
    check_embedding(EmbeddingRequest.model_validate({"input": "a"}), knobs)
    for fields in ({"encoding_format": "base64"}, {"dimensions": 5}):
        with pytest.raises(ApiError):
            check_embedding(EmbeddingRequest.model_validate({"input": "a", **fields}), knobs)


def test_what_is_ignored_is_as_if_nobody_had_asked_for_it() -> None:
    knobs = parse_knobs("ignore=json_schema+tools+max_completion_tokens+stream_options")
    request = chat(**{name: value for part in USING.values() for name, value in part.items()})
    left = without_ignored(
        request.model_copy(update={"response_format": chat(response_format=SCHEMA).response_format}), knobs
    )
    assert (left.response_format, left.tools, left.max_completion_tokens) == (None, (), None)
    assert left.max_tokens == 5


@pytest.mark.parametrize("knobs", ["without=toolz", "without", "ignore=json", "dialect=german"])
def test_a_part_that_is_misspelt_is_an_error(knobs: str) -> None:
    with pytest.raises(ApiError):
        parse_knobs(knobs)


def test_every_part_can_be_missing() -> None:
    assert set(PARTS) == {*USING, "base64", "dimensions"}


def test_a_chatty_model_puts_its_json_among_words_and_thinks_aloud() -> None:
    said = decorated(Reply('{"a": 1}'), parse_knobs("fenced,think")).text
    assert said.startswith("<think>")
    assert '```json\n{"a": 1}\n```' in said
    call = Reply(tool_call=ToolCall("search", "{}"))
    assert decorated(call, parse_knobs("fenced,think")) == call


def test_a_schema_in_the_prompt_is_one_in_the_request_for_the_material_that_came_with_it() -> None:
    system = 'Plan.\n<json_schema name="Verdict">{"type": "object"}</json_schema>'
    messages = [
        {"role": "system", "content": system},
        {"role": "user", "content": "<question>How much?</question>"},
        {"role": "assistant", "content": "no"},
        {"role": "user", "content": "Again."},
    ]
    asked = in_fields(chat(messages=messages)).request
    assert asked.response_format is not None
    assert asked.response_format.json_schema is not None
    assert asked.response_format.json_schema.name == "Verdict"
    assert asked.last_user_message.text == "<question>How much?</question>"


def test_tools_calls_and_results_in_words_are_those_of_a_conversation() -> None:
    tools = '<tools>[{"name": "search"}]</tools>\n{"tool_calls": []}'
    told = f"<instructions>\nAnswer.\n{tools}\n</instructions>\n\nHow much?"
    messages = [
        {"role": "user", "content": told},
        {"role": "assistant", "content": 'Hm. {"tool_calls": [{"name": "search", "arguments": {"q": 1}}]}'},
        {"role": "user", "content": '<tool_result call_id="c">{"a": 1}</tool_result>\n\nGo on.'},
    ]
    asked = in_fields(chat(messages=messages))
    request = asked.request
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "tool", "user"]
    assert request.messages[2].tool_calls[0].function.arguments == '{"q": 1}'
    assert request.messages[3].text == '{"a": 1}'
    assert (request.tools[0].function.name, request.tool_choice) == ("search", "auto")
    spoken = asked.spoken(Reply(tool_call=ToolCall("search", '{"q": 2}'), finish_reason="tool_calls"))
    assert json.loads(spoken.text) == {"tool_calls": [{"name": "search", "arguments": {"q": 2}}]}
    assert (spoken.tool_call, spoken.finish_reason) == (None, "stop")


@pytest.mark.parametrize(
    "text", ["<tools>no json</tools>", "<tools>[{}]</tools>", '<json_schema name="A">x</json_schema>']
)
def test_words_that_only_look_like_it_stay_words(text: str) -> None:
    request = chat(messages=[{"role": "system", "content": text}, USER])
    assert in_fields(request).request == request


@pytest.mark.parametrize(
    ("headers", "may_pass"),
    [
        ({"api-key": "k"}, True),
        ({"api-key": "t"}, False),
        ({"authorization": "Bearer t"}, True),
        ({"authorization": "Bearer k"}, True),
        ({"authorization": "Basic k"}, False),
        ({"api-key": "wrong", "authorization": "Bearer t"}, False),
        ({}, False),
    ],
)
def test_keys_and_tokens_open_what_they_open_in_azure(headers: dict[str, str], may_pass: bool) -> None:
    assert admits(headers, "k", "t") is may_pass
    assert admits(headers, None, None)


def test_with_a_key_alone_a_bearer_is_the_key() -> None:
    assert admits({"authorization": "Bearer k"}, "k", None)
    assert not admits({"authorization": "Bearer t"}, "k", None)
    assert not admits({"api-key": "t"}, None, "t")
