"""Ingestion's services: Azurite and the local search server through the real SDKs, counting model doubles."""

import itertools
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from local.azurite.server import AzuriteServer
from shared.ingestion import acceptance
from shared.ingestion.parser_process import parsers
from shared.platform.settings import Settings
from shared.wiring import Services, build_services
from tests.azurite_fixture import azurite
from tests.conftest import find_free_port
from tests.contract.ingestion.driving import unique
from tests.contract.ingestion.models import (
    DIMENSIONS,
    CountingChatModel,
    CountingEmbedder,
    CountingVisionModel,
)
from tests.contract.search_server.server_process import SearchServerProcess

__all__ = ["azurite"]
_numbers = itertools.count()


@pytest.fixture(scope="session")
def ingestion_search(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchServerProcess]:
    server = SearchServerProcess(find_free_port(), tmp_path_factory.mktemp("search"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session", autouse=True)
def workers_end() -> Iterator[None]:
    yield
    parsers(2048).close()


@pytest.fixture(autouse=True, params=["one step", pytest.param("many steps", marks=pytest.mark.e2e)])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short texts go either way: every promise holds on both."""
    if request.param == "many steps" and "test_small" not in request.node.nodeid:
        monkeypatch.setattr(acceptance, "MAX_SMALL_BYTES", -1)


@pytest.fixture
def name() -> str:
    return unique()


@pytest.fixture
def chat_model() -> CountingChatModel:
    return CountingChatModel()


@pytest.fixture
def vision_model() -> CountingVisionModel:
    return CountingVisionModel()


@pytest.fixture
def embedder() -> CountingEmbedder:
    return CountingEmbedder()


@pytest.fixture
async def services(
    azurite: AzuriteServer,
    ingestion_search: SearchServerProcess,
    chat_model: CountingChatModel,
    vision_model: CountingVisionModel,
    embedder: CountingEmbedder,
) -> AsyncIterator[Services]:
    number = next(_numbers)
    settings = Settings.of(
        azure_search_endpoint=ingestion_search.endpoint,
        azure_search_api_key=ingestion_search.key,
        azure_search_content_index=f"blocks-{number}",
        azure_search_documents_index=f"documents-{number}",
        DocumentsStorage=azurite.connection_string,
        openai_base_url="http://127.0.0.1:9/v1",
        chat_model="double",
        embedding_model="double",
        embedding_dimensions=DIMENSIONS,
        max_block_tokens=60,
    )
    real = build_services(settings)
    yield replace(real, chat_model=chat_model, vision_model=vision_model, embedder=embedder)
    await real.close()
