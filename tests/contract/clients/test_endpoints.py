"""Every method of the model ports with every shape of endpoint, with and without each part of the protocol.

A missing part of the protocol must not change the results. They must equal the results of a full endpoint.
"""

import base64
import io
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from PIL import Image

from shared.answering.plan_reply import PlanReply
from shared.answering.profiles import EvidenceReport
from shared.platform.calls import model_endpoint
from shared.platform.errors import AuthenticationError, ConfigurationError, GroundworkError
from shared.platform.language_models.chat_model import OpenAIChatModel
from shared.platform.language_models.embeddings import OpenAIEmbedder
from shared.platform.language_models.endpoint import connect_model
from shared.platform.language_models.features import FeatureMemory
from shared.platform.language_models.models import CallLimits, Message, Prompt, ToolDefinition
from tests.contract.clients.endpoint_shapes import KINDS, SHAPES, StaticCredentials, shape
from tests.fakes.services import fake_settings
from tests.servers import MODEL_TOKEN, ModelServer

pytestmark = pytest.mark.contract

LIMITS = CallLimits(timeout_s=30, max_retries=0)
PLAN = Prompt(name="plan", system="Plan.", user="<question>How often is the relief valve checked?</question>")
PASSAGE = (
    '<documents>\n<document doc_id="new" filename="new.pdf">\n'
    '<block page="3" type="text">The maximum pressure is 250 bar.</block>\n</document>\n</documents>'
)
ANSWER = Prompt(
    name="answer", system="Answer.", user=f"<question>What is the maximum pressure?</question>\n{PASSAGE}"
)
REPORT = Prompt(
    name="sub_agent",
    system="Report.",
    user=f"<task>What is the maximum pressure?</task>\n{PASSAGE}\n<next>report</next>",
)
SEARCH = ToolDefinition(
    name="rag_semantic_search",
    description="Searches the documents.",
    parameters={"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)
RESULT = (
    '{"success": true, "results": [{"block_id": "b1", "block_type": "text", "doc_id": "new", '
    '"filename": "new.pdf", "page_number": 3, "score": 0.9, "content": "The maximum pressure is 250 bar."}]}'
)
ASKED = [
    Message(role="system", text="You answer from documents."),
    Message(role="user", text="What is the maximum pressure?"),
]

_whole: dict[str, Any] = {}
Made = tuple[OpenAIChatModel, OpenAIEmbedder]
Make = Callable[..., Made]


@pytest.fixture
async def make(model_server: ModelServer) -> Any:
    """Yield a function that creates clients of the server in one of its shapes."""
    opened = []

    def make_models(name: str, knobs: str = "", **changes: Any) -> Made:
        token = changes.pop("token", MODEL_TOKEN)
        settings = fake_settings(**shape(name, model_server, **changes))
        connection = connect_model(settings, StaticCredentials(token))
        opened.append(connection)
        suffix = f"@{knobs}" if knobs else ""
        memory = FeatureMemory(settings.models.known_features)
        endpoint = model_endpoint(settings)
        return (
            OpenAIChatModel(connection, f"{model_server.chat_model}{suffix}", endpoint, memory=memory),
            OpenAIEmbedder(
                connection,
                f"{model_server.embedding_model}{suffix}",
                model_server.embedding_dimensions,
                endpoint,
                memory=FeatureMemory(settings.models.known_features),
            ),
        )

    yield make_models
    for connection in opened:
        await connection.close()


async def answers(model: OpenAIChatModel) -> dict[str, Any]:
    """Return the result of each model method, without ids and token counts, which may differ."""
    plan = await model.parse(PLAN, PlanReply, LIMITS)
    text = "".join([piece async for piece in model.stream(ANSWER, LIMITS)])
    pieces = [piece async for piece in model.stream_output(REPORT, EvidenceReport, LIMITS)]
    report = EvidenceReport.model_validate_json("".join(piece for piece in pieces if isinstance(piece, str)))
    turn = await model.converse(ASKED, [SEARCH], LIMITS)
    assistant_message = Message(role="assistant", text=turn.text, tool_calls=turn.tool_calls)
    tool_message = Message(role="tool", text=RESULT, call_id=turn.tool_calls[0].call_id)
    reply = await model.converse([*ASKED, assistant_message, tool_message], [SEARCH], LIMITS)
    *_, forbidden = [piece async for piece in model.stream_turn(ASKED, [SEARCH], LIMITS, may_call=False)]
    assert not isinstance(forbidden, str)
    return {
        "plan": plan,
        "answer": text,
        "report": report,
        "calls": [(call.name, call.arguments) for call in turn.tool_calls],
        "reply": (reply.text, reply.tool_calls),
        "forbidden": forbidden.tool_calls,
    }


@pytest.fixture
async def whole(make: Make) -> dict[str, Any]:
    """Return the results of an endpoint that supports the complete protocol. They are the same in every
    run.
    """
    if not _whole:
        _whole.update(await answers(make("openai by key")[0]))
    return _whole


def test_an_endpoint_with_everything_answers_with_content(whole: dict[str, Any]) -> None:
    assert whole["plan"].searches
    assert 'quote="The maximum pressure is 250 bar."' in whole["answer"]
    assert whole["report"].claims
    assert whole["calls"] == [("rag_semantic_search", '{"query": "What is the maximum pressure?"}')]
    assert "250 bar" in whole["reply"][0]
    assert whole["forbidden"] == ()


@pytest.mark.parametrize("knobs", KINDS, ids=lambda knobs: knobs or "everything")
async def test_what_an_endpoint_lacks_is_not_seen_in_what_it_answers(
    make: Make, whole: dict[str, Any], knobs: str
) -> None:
    model, _ = make("openai by key", knobs)
    assert await answers(model) == whole
    assert await answers(model) == whole, "once it is known what is missing"


@pytest.mark.parametrize("knobs", ["", "without=tools+json_schema+max_completion_tokens"])
@pytest.mark.parametrize("name", SHAPES[1:])
async def test_every_shape_is_spoken_to_in_its_dialect(
    make: Make, whole: dict[str, Any], name: str, knobs: str
) -> None:
    model, embedder = make(name, knobs)
    assert await answers(model) == whole
    assert len((await embedder.embed(["a valve"], LIMITS))[0]) == embedder.dimensions


async def test_a_picture_is_described_where_pictures_are_taken_and_refused_once_where_not(
    make: Make, requests_of: Callable[[str], int]
) -> None:
    content = io.BytesIO()
    Image.new("RGB", (120, 80), (40, 90, 200)).save(content, "PNG")
    picture = f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"
    prompt = Prompt(name="caption", system="Describe.", user="<label>Figure 2</label>", picture_url=picture)

    async def caption(model: OpenAIChatModel) -> str:
        return "".join([piece async for piece in model.stream(prompt, LIMITS)])

    plain = await caption(make("openai by key")[0])
    assert "120 x 80 pixels" in plain
    assert await caption(make("openai by key", "without=system+stream_options")[0]) == plain
    for dialect in ("openai", "router", "text"):
        knobs = f"without=images,dialect={dialect}"
        blind, _ = make("openai by key", knobs)
        for _ in range(3):
            with pytest.raises(ConfigurationError, match="does not accept pictures") as failure:
                await caption(blind)
        assert "CHAT_MODEL" in failure.value.hints[0]
        assert requests_of(knobs) == 1


@pytest.fixture
def requests_of(model_server: ModelServer) -> Callable[[str], int]:
    """Return a function that counts the server's requests for the model with given knobs."""

    def count(knobs: str) -> int:
        stats = httpx.get(
            f"{model_server.base_url}/stats", headers={"api-key": model_server.api_key}, timeout=60
        ).json()
        return sum(n for name, n in stats["by_model"].items() if name.endswith(f"@{knobs}"))

    return count


async def test_a_refusal_is_learned_once(make: Make, requests_of: Callable[[str], int]) -> None:
    knobs = "without=json_schema+json_object+max_completion_tokens,ttft=3"
    model, _ = make("openai by key", knobs)
    for number in range(4):
        await model.parse(PLAN, PlanReply, LIMITS)
        assert requests_of(knobs) == 4 + number, "three refusals, then none"


async def test_who_says_what_the_endpoint_has_pays_for_no_refusal(
    make: Make, requests_of: Callable[[str], int]
) -> None:
    knobs = "without=json_schema+json_object+max_completion_tokens,ttft=4"
    model, _ = make("openai by key", knobs, model_features="tools, max_tokens, system_role")
    await model.parse(PLAN, PlanReply, LIMITS)
    assert requests_of(knobs) == 1
    wrong, _ = make("openai by key", knobs, model_features="json_schema,max_tokens,system_role")
    with pytest.raises(GroundworkError, match="json_schema"):
        await wrong.parse(PLAN, PlanReply, LIMITS)


async def test_a_limit_that_is_accepted_and_ignored_goes_by_its_older_name_afterwards(make: Make) -> None:
    model, _ = make("openai by key", "ignore=max_completion_tokens")
    short = LIMITS.model_copy(update={"max_output_tokens": 8})
    messages = [Message(role="user", text="Who are you?")]
    assert len((await model.converse(messages, [], short)).text.split()) > 20
    assert (await model.converse(messages, [], short)).cut


@pytest.mark.parametrize(
    "changes",
    [
        {"azure_openai_api_key": "wrong"},
        {"azure_openai_api_key": None, "token": "of another directory"},
    ],
    ids=["a wrong key", "a wrong token"],
)
@pytest.mark.parametrize("name", ["azure", "azure v1"])
async def test_a_wrong_proof_names_what_to_check_in_azure(
    make: Make, name: str, changes: dict[str, Any]
) -> None:
    model, embedder = make(f"{name} by key", **changes)
    calls: list[Awaitable[Any]] = [model.parse(PLAN, PlanReply, LIMITS), embedder.embed(["a"], LIMITS)]
    for call in calls:
        with pytest.raises(AuthenticationError) as refused:
            await call
        assert "AZURE_OPENAI_API_KEY" in refused.value.hints[0]
        assert "wrong" not in repr(refused.value)


@pytest.mark.parametrize("name", SHAPES)
async def test_a_deployment_that_does_not_exist_is_named_by_its_setting(
    make: Make, model_server: ModelServer, name: str
) -> None:
    settings = fake_settings(**shape(name, model_server))
    connection = connect_model(settings, StaticCredentials(MODEL_TOKEN))
    model = OpenAIChatModel(connection, "nobody", model_endpoint(settings))
    with pytest.raises(ConfigurationError) as unknown:
        await model.parse(PLAN, PlanReply, LIMITS)
    assert "CHAT_MODEL" in unknown.value.hints[0]
    await connection.close()


async def test_vectors_are_shortened_where_the_model_can_be_asked_to(
    make: Make, model_server: ModelServer
) -> None:
    settings = fake_settings(**shape("openai by key", model_server))
    connection = connect_model(settings, StaticCredentials(MODEL_TOKEN))

    def embedder(knobs: str) -> OpenAIEmbedder:
        name = f"{model_server.embedding_model}@{knobs}"
        return OpenAIEmbedder(connection, name, 64, model_endpoint(settings))

    # Three concurrent batches, of which each could discover the missing feature.
    texts = [f"valve {number}" for number in range(130)]
    vectors = await embedder("matryoshka").embed(texts, LIMITS)
    assert {len(vector) for vector in vectors} == {64}
    for knobs in ("ttft=1", "without=dimensions,dialect=pydantic"):
        with pytest.raises(ConfigurationError, match="EMBEDDING_DIMENSIONS is 64"):
            await embedder(knobs).embed(["a"], LIMITS)
    await connection.close()


async def test_vectors_come_as_numbers_where_they_cannot_come_as_base64(make: Make) -> None:
    plain = await make("openai by key")[1].embed(["a valve"], LIMITS)
    assert await make("openai by key", "without=base64")[1].embed(["a valve"], LIMITS) == [
        pytest.approx(plain[0], abs=1e-6)
    ]
