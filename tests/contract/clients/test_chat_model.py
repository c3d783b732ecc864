"""The chat client against the model server, whose faults are selected by the model's name."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Literal

import pytest
from pydantic import BaseModel

from shared.answering.plan_reply import PlanReply
from shared.platform.calls import model_endpoint
from shared.platform.errors import (
    AuthenticationError,
    CallTimeoutError,
    ConfigurationError,
    DependencyError,
    GroundworkError,
    InvalidQueryError,
    ModelFixableError,
    OutputCutError,
    RateLimitError,
)
from shared.platform.language_models.chat_model import OpenAIChatModel
from shared.platform.language_models.models import CallLimits, Prompt
from shared.wiring import Connections
from tests.contract.clients.conftest import NOWHERE, Connect
from tests.fakes.services import fake_settings
from tests.servers import ModelServer

pytestmark = pytest.mark.contract

LIMITS = CallLimits(timeout_s=20)
PLAN = Prompt(name="plan", system="Plan.", user="<question>How often is the relief valve checked?</question>")
TALK = Prompt(name="answer", system="Answer.", user="Who are you?")
ENDPOINT = model_endpoint(fake_settings())

MakeModel = Callable[..., OpenAIChatModel]


class Verdict(BaseModel):
    """A schema that no prompt of the app uses. The server generates values from the types of its fields."""

    holds: bool
    grade: Literal["good", "bad"]


@pytest.fixture
def make_model(to_models: Connections, model_server: ModelServer) -> MakeModel:
    def make(knobs: str = "") -> OpenAIChatModel:
        return OpenAIChatModel(to_models.model, f"{model_server.chat_model}{knobs}", ENDPOINT)

    return make


async def read(model: OpenAIChatModel, limits: CallLimits = LIMITS) -> list[str]:
    return [piece async for piece in model.stream(TALK, limits)]


async def read_into(pieces: list[str], stream: AsyncIterator[str]) -> None:
    async for piece in stream:
        pieces.append(piece)  # noqa: PERF401 - what came before a failure counts


async def test_an_answer_stops_at_its_largest_length(make_model: MakeModel) -> None:
    whole = "".join(await read(make_model()))
    pieces: list[str] = []
    with pytest.raises(OutputCutError):
        await read_into(pieces, make_model().stream(TALK, CallLimits(timeout_s=20, max_output_tokens=8)))
    short = "".join(pieces)
    assert short
    assert len(short) < len(whole) / 2
    assert whole.startswith(short.strip())


@pytest.mark.parametrize(
    ("knobs", "error"),
    [
        ("@cut=3", ModelFixableError),
        ("@filter=1", ModelFixableError),
        ("@refuse=1", ModelFixableError),
        ("@garbage=content", ModelFixableError),
        ("@garbage=body", DependencyError),
        ("@fail=429", RateLimitError),
        ("@fail=500", DependencyError),
        ("@fail=503", DependencyError),
        ("@fail=401", AuthenticationError),
        ("@fail=403", AuthenticationError),
        ("@fail=404", ConfigurationError),
        ("@fail=400", InvalidQueryError),
    ],
)
async def test_what_goes_wrong_becomes_an_error_of_ours(
    make_model: MakeModel, knobs: str, error: type[GroundworkError]
) -> None:
    with pytest.raises(error) as raised:
        await make_model(knobs).parse(PLAN, PlanReply, CallLimits(timeout_s=20, max_retries=0))
    assert type(raised.value) is error


async def test_a_failure_that_passes_is_tried_again(make_model: MakeModel) -> None:
    model = make_model("@fail=503:1,ttft=1")
    assert await model.parse(TALK, Verdict, CallLimits(timeout_s=20, max_retries=1))
    streaming = make_model("@fail=503:1,ttft=2")
    assert await read(streaming, CallLimits(timeout_s=20, max_retries=1))


async def test_a_rate_limit_says_how_long_to_wait_and_no_wait_is_begun_past_the_limit(
    make_model: MakeModel,
) -> None:
    with pytest.raises(RateLimitError) as limited:
        await make_model("@fail=429,retry_after=40").parse(TALK, Verdict, LIMITS)
    assert limited.value.retry_after_s == 40


async def test_the_limit_covers_all_tries(make_model: MakeModel) -> None:
    async with asyncio.timeout(30):  # the model is silent for a minute
        with pytest.raises(CallTimeoutError):
            await make_model("@ttft=60000").parse(TALK, Verdict, CallLimits(timeout_s=1.2, max_retries=5))


@pytest.mark.parametrize("knobs", ["@midstream=3", "@drop=3"], ids=["an error event", "a lost connection"])
async def test_a_failure_in_the_middle_of_a_stream_is_a_dependencys(
    make_model: MakeModel, knobs: str
) -> None:
    with pytest.raises(DependencyError):
        await read(make_model(knobs))


async def test_a_reader_may_leave_a_stream_and_the_client_serves_the_next_one(
    make_model: MakeModel,
) -> None:
    model = make_model()
    stream = model.stream(TALK, LIMITS)
    assert await anext(stream)
    await stream.aclose()
    assert await read(model)


async def test_an_unknown_vision_model_points_to_its_own_setting(to_models: Connections) -> None:
    with pytest.raises(ConfigurationError) as unknown:
        await OpenAIChatModel(to_models.model, "gpt-nobody", ENDPOINT, "VISION_MODEL").parse(
            TALK, Verdict, LIMITS
        )
    assert "VISION_MODEL" in unknown.value.hints[0]


async def test_a_wrong_key_names_the_variable_and_not_the_key(
    model_server: ModelServer, connect: Connect
) -> None:
    wrong = connect(openai_base_url=model_server.base_url, openai_api_key="sk-wrong-key-0123456789")
    with pytest.raises(AuthenticationError) as refused:
        await OpenAIChatModel(wrong.model, model_server.chat_model, ENDPOINT).parse(TALK, Verdict, LIMITS)
    assert "OPENAI_API_KEY" in refused.value.hints[0]
    assert "sk-wrong" not in repr(refused.value)


async def test_an_endpoint_out_of_reach_is_named_by_its_setting(connect: Connect) -> None:
    model = OpenAIChatModel(connect(openai_base_url=f"{NOWHERE}/v1").model, "any", ENDPOINT)
    with pytest.raises(DependencyError) as unreachable:
        await model.parse(TALK, Verdict, CallLimits(timeout_s=20, max_retries=0))
    assert "OPENAI_BASE_URL" in unreachable.value.hints[0]
