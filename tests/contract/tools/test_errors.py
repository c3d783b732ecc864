"""Failures of tools: each type of error has a hint, and no exception reaches the caller."""

from collections.abc import Callable
from typing import Any

import pytest

from shared.platform.calls import model_endpoint
from shared.platform.errors import BudgetExceededError, ConfigurationError, DefectError, GroundworkError
from shared.platform.language_models.chat_model import OpenAIChatModel
from shared.tools.base import Tool
from shared.tools.registry import bound_tool
from tests.contract.clients.conftest import NOWHERE, Connect
from tests.contract.clients.scripted_server import Answer, ScriptedServer
from tests.contract.tools.conftest import Corpus, World, index
from tests.contract.tools.corpus import ANNA, DIMENSIONS
from tests.fakes.models import HashingEmbedder, ScriptedChatModel
from tests.fakes.services import fake_services, fake_settings
from tests.unit.tools.tool_set import ARGUMENTS, ASKING_A_MODEL, BY_BLOCKS, SEARCHING

pytestmark = pytest.mark.contract

READING = (*SEARCHING, *BY_BLOCKS)
ToolAt = Callable[..., Tool]

FAILURES: dict[str, tuple[Answer, str, str]] = {
    "401": (Answer("401 Unauthorized"), "AuthenticationError", "AZURE_SEARCH_API_KEY"),
    "403": (Answer("403 Forbidden"), "AuthenticationError", "Search Index Data Contributor"),
    "404": (Answer("404 Not Found"), "IndexNotFoundError", "AZURE_SEARCH_ENDPOINT"),
    "400": (Answer("400 Bad Request"), "InvalidQueryError", "arguments"),
    "429": (
        Answer("429 Too Many Requests", headers={"retry-after": "600"}),
        "RateLimitError",
        "Try again in 600 s",
    ),
    "late": (Answer(delay_s=5.0), "TimeoutError", "Try again"),
    "no JSON": (Answer(body=b"<html>"), "NetworkError", "AZURE_SEARCH_ENDPOINT"),
}


@pytest.fixture
def tool_at(connect: Connect) -> ToolAt:
    """Return a function that creates a tool whose search service is at an endpoint."""

    def make(name: str, endpoint: str, timeout_s: float = 20) -> Tool:
        connections = connect(azure_search_endpoint=endpoint)
        services = fake_services(
            content_index=index(connections, "my-blocks", "block_id", timeout_s),
            documents_index=index(connections, "my-documents", "doc_id", timeout_s),
            embedder=HashingEmbedder(DIMENSIONS),
        )
        return bound_tool(name, services, ANNA)

    return make


def assert_failure(result: dict[str, Any], kind: str, hint: str) -> None:
    assert set(result) == {"success", "error", "type", "hints"}
    assert (result["success"], result["type"]) == (False, kind)
    assert result["hints"]
    assert hint in " ".join(result["hints"])


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("name", READING)
async def test_a_failing_search_service(tool_at: ToolAt, name: str, failure: str) -> None:
    answer, kind, hint = FAILURES[failure]
    async with ScriptedServer(answer) as server:
        tool = tool_at(name, server.endpoint, 0.3 if failure == "late" else 20)
        result = await tool.execute(**ARGUMENTS[name])
    assert_failure(result, kind, hint)
    if kind == "IndexNotFoundError":
        assert "my-" in result["error"]


@pytest.mark.parametrize("name", READING)
async def test_a_search_service_out_of_reach(tool_at: ToolAt, name: str) -> None:
    result = await tool_at(name, NOWHERE).execute(**ARGUMENTS[name])
    assert_failure(result, "NetworkError", "AZURE_SEARCH_ENDPOINT")


@pytest.mark.parametrize(
    ("answer", "kind", "hint"),
    [
        (Answer("401 Unauthorized"), "AuthenticationError", "OPENAI_API_KEY"),
        (Answer("429 Too Many", headers={"retry-after": "600"}), "RateLimitError", "Try again in 600 s"),
        (Answer("404 Not Found"), "ConfigurationError", "CHAT_MODEL"),
        (Answer(body=b"<html>"), "NetworkError", "OPENAI_BASE_URL"),
    ],
)
@pytest.mark.parametrize("name", ASKING_A_MODEL)
async def test_a_failing_model(
    local_world: World, connect: Connect, name: str, answer: Answer, kind: str, hint: str
) -> None:
    async with ScriptedServer(answer) as server:
        connections = connect(openai_base_url=f"{server.endpoint}/v1", openai_api_key="key")
        model = OpenAIChatModel(connections.model, "chat", model_endpoint(fake_settings()))
        result = await local_world.tool(name, ANNA, model).execute(**ARGUMENTS[name])
    assert_failure(result, kind, hint)


@pytest.mark.parametrize("name", ASKING_A_MODEL)
@pytest.mark.parametrize(
    ("error", "kind", "hint"),
    [
        (BudgetExceededError("used up"), "BudgetExceededError", "Answer from the existing"),
        (ConfigurationError("CHAT_MODEL is missing"), "ConfigurationError", "setting"),
        (DefectError("our secret internals"), "ToolError", "Continue without"),
    ],
)
async def test_errors_of_our_own(
    local_world: World, name: str, error: GroundworkError, kind: str, hint: str
) -> None:
    model = ScriptedChatModel(answer=lambda prompt: error)
    result = await local_world.tool(name, ANNA, model).execute(**ARGUMENTS[name])
    assert_failure(result, kind, hint)
    assert "internals" not in str(result)


# The following failures can be caused with any service, including the real one.


def wrong_key(world: World, connect: Connect) -> World:
    return World(connect(**{**world.corpus.settings, "azure_search_api_key": "wrong"}), world.corpus)


def missing_index(world: World, connect: Connect) -> World:
    corpus = Corpus(world.corpus.settings, "no-such-blocks", "no-such-documents")
    return World(connect(**world.corpus.settings), corpus)


@pytest.mark.parametrize(
    ("change", "kind", "hint"),
    [
        (wrong_key, "AuthenticationError", "AZURE_SEARCH_API_KEY"),
        (missing_index, "IndexNotFoundError", "AZURE_SEARCH_ENDPOINT"),
    ],
)
@pytest.mark.parametrize("name", READING)
async def test_a_service_that_refuses(
    world: World,
    connect: Connect,
    name: str,
    change: Callable[[World, Connect], World],
    kind: str,
    hint: str,
) -> None:
    result = await change(world, connect).tool(name, ANNA).execute(**ARGUMENTS[name])
    assert_failure(result, kind, hint)
    if kind == "IndexNotFoundError":
        assert "no-such-" in result["error"]


@pytest.mark.parametrize(
    ("name", "filters", "hint"),
    [
        ("rag_semantic_search", {"access_control_list": "*"}, "document_type"),
        ("rag_list_documents", {"owner_id": "ben"}, "document_type"),
        ("rag_metadata_search", {"no_such": 1}, "document_type"),
        ("rag_facets", {"status": "failed"}, "document_type"),
        ("rag_list_documents", {"upload_date": "2024-01-01"}, "start"),
        ("rag_list_documents", {"upload_date": {"start": "yesterday"}}, "2024-01-31"),
        ("rag_list_documents", {"title": "x"}, "document_type"),
        ("rag_list_documents", {"page_count": "many"}, "arguments"),
    ],
)
async def test_filters_that_cannot_be(world: World, name: str, filters: dict[str, Any], hint: str) -> None:
    arguments = {**ARGUMENTS[name], "filters": filters}
    assert_failure(await world.tool(name, ANNA).execute(**arguments), "InvalidQueryError", hint)


@pytest.fixture
def local_world(local_corpus: Corpus, connect: Connect) -> World:
    return World(connect(**local_corpus.settings), local_corpus)
