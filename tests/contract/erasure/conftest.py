"""Fixtures for the erasure of a person's complete data in real stores: Azurite and the local search server,
with scripted models.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from shared.platform.names import BOT_TURNS_TABLE
from shared.platform.tables import Table
from shared.teams.store import BotTurnStore
from shared.wiring import Connections, Services, build_services
from tests.fakes.models import HashingEmbedder
from tests.fakes.services import fake_settings
from tests.servers import Azurite, SearchServer, own_azurite, unique_name
from tests.unit.erasure.lives import fill, model_of_lives


@pytest.fixture(scope="session")
def azurite() -> Iterator[Azurite]:
    """Yield a separate emulator, because the tests search everything that it stores."""
    with own_azurite() as server:
        yield server


@pytest.fixture
async def services(azurite: Azurite, search_server: SearchServer) -> AsyncIterator[Services]:
    """Yield services that store everything in the two servers."""
    settings = fake_settings(
        azure_search_endpoint=search_server.endpoint,
        azure_search_api_key=search_server.api_key,
        azure_search_content_index=unique_name("blocks"),
        azure_search_documents_index=unique_name("documents"),
        azure_search_memory_index=unique_name("memory"),
        DocumentsStorage=azurite.connection_string,
        subagents_enabled=False,
    )
    tables = Connections(settings)
    app_services = replace(
        build_services(settings),
        chat_model=model_of_lives(),
        embedder=HashingEmbedder(),
        bot_turns=BotTurnStore(Table(tables.tables, BOT_TURNS_TABLE)),
    )
    await app_services.prepare()
    await fill(app_services)
    yield app_services
    await app_services.close()
    await tables.close()
