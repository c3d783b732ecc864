"""Structured output in pieces through the real SDK, from the model server and from unusual endpoints."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from shared.answering.profiles import PROFILES, EvidenceReport, SubagentProfile
from shared.platform.calls import model_endpoint
from shared.platform.errors import (
    CallTimeoutError,
    DependencyError,
    GroundworkError,
    ModelFixableError,
    OutputCutError,
    RateLimitError,
)
from shared.platform.language_models.chat_model import OpenAIChatModel
from shared.platform.language_models.chat_request import output_format
from shared.platform.language_models.models import CallLimits, Message, ModelUsage, Prompt
from shared.wiring import Connections
from tests.contract.clients.conftest import Connect
from tests.contract.clients.scripted_server import Answer, ScriptedServer
from tests.fakes.services import fake_settings
from tests.servers import ModelServer

pytestmark = pytest.mark.contract

LIMITS = CallLimits(timeout_s=20, max_retries=0, max_output_tokens=1000)
REPORT = Prompt(
    name="sub_agent",
    system="Report.",
    user=(
        "<task>What is the maximum pressure?</task>\n<documents>\n"
        '<document doc_id="new" filename="new.pdf">\n'
        '<block page="3" type="text">The maximum pressure is 250 bar.</block>\n'
        "</document>\n</documents>\n<next>report</next>"
    ),
)
ENDPOINT = model_endpoint(fake_settings())

MakeModel = Callable[..., OpenAIChatModel]


@pytest.fixture
def make_model(to_models: Connections, model_server: ModelServer) -> MakeModel:
    def make(knobs: str = "") -> OpenAIChatModel:
        return OpenAIChatModel(to_models.model, f"{model_server.chat_model}{knobs}", ENDPOINT)

    return make


async def heard(
    model: OpenAIChatModel, into: list[str | ModelUsage], limits: CallLimits = LIMITS
) -> list[str | ModelUsage]:
    async for piece in model.stream_output(REPORT, EvidenceReport, limits):
        into.append(piece)  # noqa: PERF401 - what came before a failure counts
    return into


async def test_a_report_comes_in_pieces_and_its_usage_last(make_model: MakeModel) -> None:
    *pieces, usage = await heard(make_model(), [])
    assert len(pieces) > 3
    report = EvidenceReport.model_validate_json("".join(str(piece) for piece in pieces))
    assert report.claims[0].proofs[0].quote == "The maximum pressure is 250 bar."
    assert isinstance(usage, ModelUsage)
    assert usage.input_tokens > 50
    assert usage.output_tokens > 20


@pytest.mark.parametrize(
    ("knobs", "error"),
    [
        ("@refuse=1", ModelFixableError),
        ("@filter=1", ModelFixableError),
        ("@fail=429", RateLimitError),
        ("@fail=500", DependencyError),
        ("@drop=3", DependencyError),
        ("@midstream=3", DependencyError),
        ("@garbage=body", DependencyError),
    ],
)
async def test_what_goes_wrong_becomes_an_error_of_ours(
    make_model: MakeModel, knobs: str, error: type[GroundworkError]
) -> None:
    with pytest.raises(error) as raised:
        await heard(make_model(knobs), [])
    assert type(raised.value) is error


async def test_silence_ends_at_the_limit_with_what_was_read(make_model: MakeModel) -> None:
    pieces: list[str | ModelUsage] = []
    with pytest.raises(CallTimeoutError):
        await heard(make_model("@stall=3"), pieces, LIMITS.model_copy(update={"timeout_s": 0.5}))
    assert pieces


async def test_a_turn_tells_what_was_read_and_written_apart(make_model: MakeModel) -> None:
    turn = await make_model().converse([Message(role="user", text="Who are you?")], [], LIMITS)
    assert turn.usage is not None
    assert turn.usage.input_tokens + turn.usage.output_tokens == turn.tokens


def chunks(*payloads: dict[str, Any]) -> Answer:
    """Return a stream as an endpoint writes it."""
    frame = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    events = "".join(f"data: {json.dumps({**frame, **one})}\n\n" for one in payloads)
    return Answer(body=f"{events}data: [DONE]\n\n".encode(), headers={"Content-Type": "text/event-stream"})


def delta(text: str, ending: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": ending}]}


@pytest.fixture
def scripted(connect: Connect) -> Callable[[ScriptedServer], OpenAIChatModel]:
    def make(server: ScriptedServer) -> OpenAIChatModel:
        connections = connect(openai_base_url=f"{server.endpoint}/v1", openai_api_key="key")
        return OpenAIChatModel(connections.model, "chat", ENDPOINT)

    return make


async def test_it_is_asked_for_strictly_by_its_schema_and_with_its_usage(
    scripted: Callable[[ScriptedServer], OpenAIChatModel],
) -> None:
    async with ScriptedServer(chunks(delta("{}", "stop"))) as server:
        await heard(scripted(server), [])
        request_body = json.loads(server.bodies[0])
    shape = request_body["response_format"]
    assert (shape["type"], shape["json_schema"]["name"]) == ("json_schema", "EvidenceReport")
    assert shape["json_schema"]["strict"] is True
    assert shape["json_schema"]["schema"]["additionalProperties"] is False
    assert request_body["stream_options"] == {"include_usage": True}
    assert request_body["max_completion_tokens"] == 1000


REFUSED = {"minimum", "maximum", "minLength", "maxLength", "pattern", "format", "minItems", "default"}


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_no_report_has_what_strict_endpoints_refuse(profile: SubagentProfile) -> None:
    schema = json.dumps(output_format(profile.report))
    assert not [name for name in REFUSED if f'"{name}":' in schema]


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": None, "completion_tokens": 3}, {"prompt_tokens": -1}]
)
async def test_an_endpoint_that_does_not_count_is_read_all_the_same(
    scripted: Callable[[ScriptedServer], OpenAIChatModel], usage: Any
) -> None:
    answer = chunks(delta('{"claims"'), delta(":[]}", "stop"), {"choices": [], "usage": usage})
    async with ScriptedServer(answer) as server:
        pieces = await heard(scripted(server), [])
    assert pieces == ['{"claims"', ":[]}"]


async def test_a_report_that_is_cut_gives_what_was_written_and_its_usage_before_it_says_so(
    scripted: Callable[[ScriptedServer], OpenAIChatModel],
) -> None:
    usage = {"prompt_tokens": 70, "completion_tokens": 20, "total_tokens": 90}
    answer = chunks(delta('{"claims":['), delta("", "length"), {"choices": [], "usage": usage})
    pieces: list[str | ModelUsage] = []
    async with ScriptedServer(answer) as server:
        with pytest.raises(OutputCutError):
            await heard(scripted(server), pieces)
    assert pieces == ['{"claims":[', ModelUsage(input_tokens=70, output_tokens=20)]
