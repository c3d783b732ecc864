"""Fixtures for ingestion tests: Azurite and the local search server through the real SDKs, and models that
count their calls.
"""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from shared.documents.open_work_store import OpenWorkStore
from shared.ingestion import task
from shared.platform.settings import Settings
from shared.wiring import Services, build_services
from tests.contract.ingestion.driving import unique
from tests.contract.ingestion.models import (
    DIMENSIONS,
    CountingChatModel,
    CountingEmbedder,
    CountingVisionModel,
)
from tests.fakes.services import OWNER_ID_KEY
from tests.fakes.table import InMemoryTable
from tests.servers import Azurite, SearchServer, unique_name

# In these modules, an interruption may leave different traces after one step and after several.
IN_SEVERAL_STEPS_AT_EVERY_CHANGE = (
    "test_access_races",
    "test_copies",
    "test_deletion",
    "test_failures",
    "test_ingesting",
    "test_killed_anywhere",
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test twice, with short texts ingested in one step and in several. Both must keep all
    guarantees.
    """
    module = metafunc.module.__name__.rpartition(".")[2]
    marks = [pytest.mark.e2e]
    if module not in IN_SEVERAL_STEPS_AT_EVERY_CHANGE:
        marks.append(pytest.mark.nightly)
    several = [] if module.startswith("test_small") else [pytest.param("many steps", marks=marks)]
    metafunc.parametrize("way", ["one step", *several], indirect=True)


@pytest.fixture(autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have short texts ingested in one step or in several."""
    if request.param == "many steps":
        monkeypatch.setattr(task, "MAX_SMALL_BYTES", -1)


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
    azurite: Azurite,
    search_server: SearchServer,
    chat_model: CountingChatModel,
    vision_model: CountingVisionModel,
    embedder: CountingEmbedder,
) -> AsyncIterator[Services]:
    settings = Settings.of(
        azure_search_endpoint=search_server.endpoint,
        azure_search_api_key=search_server.api_key,
        owner_id_key=OWNER_ID_KEY,
        azure_search_content_index=unique_name("blocks"),
        azure_search_documents_index=unique_name("documents"),
        DocumentsStorage=azurite.connection_string,
        openai_base_url="http://127.0.0.1:9/v1",
        chat_model="double",
        embedding_model="double",
        embedding_dimensions=DIMENSIONS,
        max_block_tokens=60,
    )
    real = build_services(settings)
    # A separate store, because all workers share one storage account.
    real.documents.open_work = OpenWorkStore(InMemoryTable())
    yield replace(real, chat_model=chat_model, vision_model=vision_model, embedder=embedder)
    await real.close()
