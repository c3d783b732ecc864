"""Endpoints that respond with success but in another protocol, or with invalid text."""

import json
from typing import Any

import pytest
from pydantic import BaseModel

from shared.platform.calls import model_endpoint
from shared.platform.errors import (
    CallTimeoutError,
    DependencyError,
    InvalidQueryError,
    ModelFixableError,
    OutputCutError,
)
from shared.platform.language_models.chat_model import ROOM_TOKENS, OpenAIChatModel
from shared.platform.language_models.embeddings import OpenAIEmbedder
from shared.platform.language_models.features import FeatureMemory
from shared.platform.language_models.models import CallLimits, Message, Picture, Prompt, ToolDefinition
from shared.platform.language_models.protocol import Efforts
from tests.contract.clients.conftest import Connect
from tests.contract.clients.scripted_server import Answer, ScriptedServer
from tests.contract.clients.test_chat_model import read_into
from tests.fakes.services import fake_settings

pytestmark = pytest.mark.contract

ONCE = CallLimits(timeout_s=20, max_retries=0)
TALK = Prompt(name="answer", system="Answer.", user="Who are you?")
ENDPOINT = model_endpoint(fake_settings())
HIGH, LOW = "\ud83d", "\udd27"


class Verdict(BaseModel):
    """The requested structured output."""

    holds: bool


BODIES: dict[str, Any] = {
    "an empty object": {},
    "a list": [],
    "a string": "hello",
    "a number": 7,
    "null": None,
    "choices null": {"choices": None},
    "a choice without a message": {"choices": [{}]},
    "a message that is text": {"choices": [{"message": "hello", "delta": "hello"}]},
    "text that is a list": {"choices": [{"message": {"content": [1]}, "delta": {"content": [1]}}]},
    "data null": {"data": None},
    "data without vectors": {"data": [{}]},
    "usage that is text": {"choices": [], "data": [], "usage": "much"},
}


def model(server: ScriptedServer, connect: Connect) -> OpenAIChatModel:
    return OpenAIChatModel(connect(openai_base_url=f"{server.endpoint}/v1").model, "m", ENDPOINT)


def events(*chunks: Any) -> Answer:
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return Answer(body=body.encode(), headers={"content-type": "text/event-stream"})


def delta(text: str = "", ending: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": ending}]}


async def read(server: ScriptedServer, connect: Connect) -> str:
    return "".join([piece async for piece in model(server, connect).stream(TALK, ONCE)])


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # raised within the SDK
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_an_answer_of_another_shape_is_not_taken_for_one(connect: Connect, body: Any) -> None:
    async with ScriptedServer(Answer(body=json.dumps(body).encode())) as server:
        with pytest.raises((DependencyError, ModelFixableError)):
            await model(server, connect).parse(TALK, Verdict, ONCE)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_vectors_of_another_shape_are_not_taken_for_some(connect: Connect, body: Any) -> None:
    async with ScriptedServer(Answer(body=json.dumps(body).encode())) as server:
        to = connect(openai_base_url=f"{server.endpoint}/v1")
        with pytest.raises(DependencyError):
            await OpenAIEmbedder(to.model, "m", 3, ENDPOINT).embed(["valve"], ONCE)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_a_stream_of_another_shape_is_not_taken_for_one(connect: Connect, body: Any) -> None:
    for answer in (Answer(body=json.dumps(body).encode()), events(body)):
        async with ScriptedServer(answer) as server:
            with pytest.raises(DependencyError) as strange:
                await read(server, connect)
            assert "OPENAI_BASE_URL" in strange.value.hints[0]


async def test_a_page_of_a_website_is_no_model(connect: Connect) -> None:
    page = Answer(body=b"<html>hello</html>", headers={"content-type": "text/html"})
    async with ScriptedServer(page) as server:
        with pytest.raises(DependencyError) as strange:
            await model(server, connect).parse(TALK, Verdict, ONCE)
        assert "OPENAI_BASE_URL" in strange.value.hints[0]
        with pytest.raises(DependencyError):
            await read(server, connect)


async def test_a_character_in_two_halves_is_one_character(connect: Connect) -> None:
    async with ScriptedServer(events(delta(f"a{HIGH}"), delta(f"{LOW}b{HIGH}", "stop"))) as server:
        assert await read(server, connect) == "a\U0001f527b\ufffd"


@pytest.mark.parametrize("content", ['{"holds": "\ud83d"}', "\ud83d", '{"holds": "\\ud83d"}'])
async def test_half_a_character_in_structured_output_is_the_models_fault(
    connect: Connect, content: str
) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    async with ScriptedServer(Answer(body=json.dumps({"choices": [choice]}).encode())) as server:
        with pytest.raises(ModelFixableError):
            await model(server, connect).parse(TALK, Verdict, ONCE)


async def test_a_stream_that_is_cut_off_says_so_after_its_last_word(connect: Connect) -> None:
    async with ScriptedServer(events(delta("It runs"), delta(" at", "length"))) as server:
        pieces: list[str] = []
        with pytest.raises(OutputCutError) as cut:
            await read_into(pieces, model(server, connect).stream(TALK, ONCE))
        assert "".join(pieces) == "It runs at"
        assert "MAX_ANSWER_TOKENS" in cut.value.hints[0]


async def test_a_stream_that_is_filtered_names_the_filter(connect: Connect) -> None:
    async with ScriptedServer(events(delta("It"), delta("", "content_filter"))) as server:
        with pytest.raises(ModelFixableError, match="content filter") as stopped:
            await read(server, connect)
        assert type(stopped.value) is ModelFixableError


def refusing(field: str) -> Answer:
    """Return the response of a pydantic-based endpoint that rejects an unknown field."""
    body = {"detail": [{"loc": ["body", field], "msg": "Extra inputs are not permitted"}]}
    return Answer("422 Unprocessable Entity", json.dumps(body).encode())


def whole(content: str, ending: str = "stop") -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": ending}
    return Answer(body=json.dumps({"choices": [choice]}).encode())


async def test_who_is_held_to_no_schema_is_told_once_what_is_wrong(connect: Connect) -> None:
    answers = [
        refusing("response_format"),
        whole('```json\n{"holds": "maybe"}\n```'),
        whole('{"holds": true}'),
    ]
    async with ScriptedServer(*answers) as server:
        assert await model(server, connect).parse(TALK, Verdict, ONCE) == Verdict(holds=True)
        request_body = json.loads(server.bodies[-1])
    assert request_body["response_format"] == {"type": "json_object"}
    assert [message["role"] for message in request_body["messages"]] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert "Verdict: holds" in request_body["messages"][-1]["content"]


async def test_who_is_wrong_again_is_not_asked_a_third_time(connect: Connect) -> None:
    async with ScriptedServer(refusing("response_format"), whole("no"), whole("never")) as server:
        with pytest.raises(ModelFixableError):
            await model(server, connect).parse(TALK, Verdict, ONCE)
        assert len(server.bodies) == 3


async def test_what_was_cut_off_is_asked_for_once_more_with_room(connect: Connect) -> None:
    async with ScriptedServer(whole('{"holds"', "length")) as server:
        with pytest.raises(ModelFixableError, match="cut off"):
            await model(server, connect).parse(TALK, Verdict, ONCE)
        limits = [json.loads(body)["max_completion_tokens"] for body in server.bodies]
    assert limits == [ONCE.max_output_tokens, ONCE.max_output_tokens + ROOM_TOKENS]


async def test_room_that_was_needed_is_given_at_once_the_next_time(connect: Connect) -> None:
    async with ScriptedServer(whole("", "length"), whole('{"holds": true}')) as server:
        chat_model = model(server, connect)
        assert await chat_model.parse(TALK, Verdict, ONCE) == Verdict(holds=True)
        assert await chat_model.parse(TALK, Verdict, ONCE) == Verdict(holds=True)
        limits = [
            json.loads(body)["max_completion_tokens"] - ONCE.max_output_tokens for body in server.bodies
        ]
    assert limits == [0, ROOM_TOKENS, ROOM_TOKENS]


async def test_a_stream_that_ends_before_its_first_word_is_asked_for_once_more(connect: Connect) -> None:
    async with ScriptedServer(events(delta("", "length")), events(delta("It runs.", "stop"))) as server:
        assert await read(server, connect) == "It runs."
        assert len(server.bodies) == 2


@pytest.mark.parametrize(("reported_tokens", "cached"), [(30, 30), (None, 0), (500, 0)])
async def test_tokens_from_the_cache_are_told_apart(
    connect: Connect, reported_tokens: int | None, cached: int
) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}
    usage = {
        "prompt_tokens": 40,
        "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": reported_tokens},
    }
    body = json.dumps({"choices": [choice], "usage": usage}).encode()
    async with ScriptedServer(Answer(body=body)) as server:
        turn = await model(server, connect).converse([Message(role="user", text="Hello.")], [], ONCE)
    assert turn.usage is not None
    assert turn.usage.cached_tokens == cached


UNKNOWN = {"message": "Unrecognized request argument supplied: reasoning_effort"}
OTHER_VALUE = {
    "message": "Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported "
    "values are: 'minimal', 'low', 'medium', and 'high'.",
    "param": "reasoning_effort",
}
NOT_WITH_TOOLS = {"message": "Function tools with reasoning_effort are not supported for m in this endpoint."}
EFFORTS = Efforts(tools="none", short="minimal", writing="low")
LOOK = ToolDefinition(name="look", description="Looks.", parameters={"type": "object", "properties": {}})


@pytest.mark.parametrize(
    ("errors", "expected_efforts", "afterwards"),
    [
        ([], ["none"], ["none", "low"]),
        ([OTHER_VALUE], ["none", "minimal"], ["minimal", "low"]),
        ([NOT_WITH_TOOLS, NOT_WITH_TOOLS], ["none", "minimal", None], [None, "low"]),
        ([UNKNOWN], ["none", None], [None, None]),
    ],
)
async def test_an_effort_that_is_refused_is_replaced_and_what_worked_is_remembered(
    connect: Connect, errors: list[Any], expected_efforts: list[str | None], afterwards: list[str | None]
) -> None:
    refused = [Answer("400 Bad Request", json.dumps({"error": error}).encode()) for error in errors]
    async with ScriptedServer(*refused, whole('{"holds": true}')) as server:
        to = connect(openai_base_url=f"{server.endpoint}/v1")
        chat_model = OpenAIChatModel(to.model, "m", ENDPOINT, efforts=EFFORTS)
        for _ in range(2):
            await chat_model.converse([Message(role="user", text="Look.")], [LOOK], ONCE)
        await chat_model.parse(TALK, Verdict, ONCE)
        efforts = [json.loads(body).get("reasoning_effort") for body in server.bodies]
    assert efforts == expected_efforts + afterwards


async def test_who_is_told_that_there_is_no_effort_sends_none(connect: Connect) -> None:
    async with ScriptedServer(whole("Hello.")) as server:
        to = connect(openai_base_url=f"{server.endpoint}/v1")
        memory = FeatureMemory(frozenset({"tools"}))
        chat_model = OpenAIChatModel(to.model, "m", ENDPOINT, efforts=EFFORTS, memory=memory)
        await chat_model.converse([Message(role="user", text="Look.")], [LOOK], ONCE)
        assert "reasoning_effort" not in json.loads(server.bodies[0])


async def test_a_refusal_that_stays_is_told_and_takes_nothing_away(connect: Connect) -> None:
    refused = [refusing("response_format"), refusing("seed")]
    async with ScriptedServer(*refused, whole('{"holds": true}')) as server:
        chat_model = model(server, connect)
        with pytest.raises(InvalidQueryError):
            await chat_model.parse(TALK, Verdict, ONCE)
        assert await chat_model.parse(TALK, Verdict, ONCE)
        assert json.loads(server.bodies[-1])["response_format"]["type"] == "json_schema"


async def test_an_endpoint_that_does_not_heed_schemas_is_told_them_in_words_from_then_on(
    connect: Connect,
) -> None:
    answers = [whole("Hello! How can I help?"), whole('{"holds": true}'), whole('{"holds": false}')]
    async with ScriptedServer(*answers) as server:
        chat_model = model(server, connect)
        assert (await chat_model.parse(TALK, Verdict, ONCE)).holds
        assert not (await chat_model.parse(TALK, Verdict, ONCE)).holds
        assert len(server.bodies) == 3
        assert "json_schema" not in json.loads(server.bodies[-1])["response_format"]


async def test_one_that_has_followed_a_schema_is_neither_asked_again_nor_told_otherwise(
    connect: Connect,
) -> None:
    answers = [whole('{"holds": true}'), whole("Hello! How can I help?"), whole('{"holds": false}')]
    async with ScriptedServer(*answers) as server:
        chat_model = model(server, connect)
        assert (await chat_model.parse(TALK, Verdict, ONCE)).holds
        with pytest.raises(ModelFixableError):
            await chat_model.parse(TALK, Verdict, ONCE)
        assert not (await chat_model.parse(TALK, Verdict, ONCE)).holds
        assert len(server.bodies) == 3
        assert json.loads(server.bodies[-1])["response_format"]["type"] == "json_schema"


async def test_refusals_end_with_the_time_of_the_call(connect: Connect) -> None:
    slow = Answer("422 Unprocessable Entity", refusing("response_format").body, delay_s=0.4)
    async with ScriptedServer(slow) as server:
        with pytest.raises(CallTimeoutError):
            await model(server, connect).parse(TALK, Verdict, ONCE.model_copy(update={"timeout_s": 0.6}))


async def test_pictures_that_are_refused_are_left_out_and_not_sent_again(connect: Connect) -> None:
    error = {"message": "Invalid content type. image_url is only supported by certain models.", "code": None}
    refusal = Answer("400 Bad Request", json.dumps({"error": error}).encode())
    pictured = Message(
        role="user", text="Look.", pictures=(Picture(label="Figure 1", url="data:image/png,"),)
    )
    async with ScriptedServer(refusal, whole("Seen.")) as server:
        chat_model = model(server, connect)
        for _ in range(2):
            assert (await chat_model.converse([pictured], (), ONCE)).text == "Seen."
    contents = [json.loads(body)["messages"][0]["content"] for body in server.bodies]
    assert [part["type"] for part in contents[0]] == ["text", "text", "image_url"]
    assert contents[1:] == ["Look.", "Look."]
