"""Agents and judging tools with the answers of the local model server, over the local search service."""

from collections.abc import Callable

import pytest

from shared.answering.agent import Agent, AgentLimits
from shared.platform.calls import model_endpoint
from shared.platform.language_models.chat_model import OpenAIChatModel
from shared.wiring import Connections
from tests.contract.clients.conftest import Connect
from tests.contract.tools.conftest import Corpus, World
from tests.contract.tools.corpus import ANNA, BEN
from tests.fakes.services import fake_settings
from tests.servers import ModelServer

pytestmark = pytest.mark.contract

MakeModel = Callable[..., OpenAIChatModel]


@pytest.fixture
def local_world(local_corpus: Corpus, connect: Connect) -> World:
    return World(connect(**local_corpus.settings), local_corpus)


@pytest.fixture
def make_model(to_models: Connections, model_server: ModelServer) -> MakeModel:
    def make(knobs: str = "") -> OpenAIChatModel:
        return OpenAIChatModel(
            to_models.model, f"{model_server.chat_model}{knobs}", model_endpoint(fake_settings())
        )

    return make


def agent(world: World, model: OpenAIChatModel, *tools: str, limits: AgentLimits | None = None) -> Agent:
    return Agent.create_agent(
        "reader",
        "You answer from documents.",
        tools,
        services=world.services(model),
        user=ANNA,
        limits=limits,
    )


@pytest.mark.parametrize("knobs", ["", "@without=tools+json_schema+json_object+stream_options+system"])
async def test_an_agent_searches_and_answers_from_what_it_found(
    local_world: World, make_model: MakeModel, knobs: str
) -> None:
    reader = agent(local_world, make_model(knobs), "rag_semantic_search", "rag_list_documents")
    events = [event async for event in reader.execute("At what pressure does the pump run?")]
    result = next(event.data for event in events if event.name == "TOOL_RESULT")
    assert result["tool"] == "rag_semantic_search"
    assert result["result_count"] >= 2
    assert events[-1].name == "COMPLETE"
    assert "15 bar" in events[-1].data["answer"]["text"]


async def test_what_belongs_to_others_is_not_told(local_world: World, make_model: MakeModel) -> None:
    reader = agent(local_world, make_model(), "rag_semantic_search")
    events = [event async for event in reader.execute("What runs the pump of salaries?")]
    assert "salaries run" not in str([event.data for event in events[:-1]])
    assert "payroll" not in str(events[-1].data)


async def test_a_model_that_calls_for_ever_answers_in_the_end(
    local_world: World, make_model: MakeModel
) -> None:
    limits = AgentLimits(turns=3)
    reader = agent(local_world, make_model("@toolloop=1"), "rag_semantic_search", limits=limits)
    events = [event async for event in reader.execute("At what pressure does the pump run?")]
    assert events[-1].name == "COMPLETE"
    assert "15 bar" in events[-1].data["answer"]["text"]


async def test_broken_arguments_end_in_words_or_an_error_and_never_in_an_exception(
    local_world: World, make_model: MakeModel
) -> None:
    reader = agent(local_world, make_model("@garbage=content"), "rag_semantic_search")
    events = [event async for event in reader.execute("At what pressure does the pump run?")]
    assert events[-1].name in {"COMPLETE", "ERROR"}


async def test_reranking_puts_the_answer_first(local_world: World, make_model: MakeModel) -> None:
    blocks = ["report-2023-1", "manual-2", "manual-3", "manual-1"]
    result = await local_world.tool("rerank", ANNA, make_model()).execute(
        query="At how many bar does the pump run?", block_ids=blocks, top_k=2
    )
    assert result["results"][0]["block_id"] == "manual-1"
    assert result["result_count"] == 2


async def test_grading_drops_what_is_about_something_else(local_world: World, make_model: MakeModel) -> None:
    result = await local_world.tool("grade", ANNA, make_model()).execute(
        query="At how many bar does the pump run?", block_ids=["manual-1", "report-2023-1"]
    )
    assert [hit["block_id"] for hit in result["results"]] == ["manual-1"]


async def test_a_follow_up_is_rewritten(local_world: World, make_model: MakeModel) -> None:
    result = await local_world.tool("query_rewrite", BEN, make_model()).execute(
        question="And what is its weight?",
        history=[
            {"role": "user", "content": "What is the speed of the X200 pump?"},
            {"role": "assistant", "content": "1,450 rpm."},
        ],
    )
    assert "X200" in result["standalone_question"]
    assert len(result["search_queries"]) >= 2
