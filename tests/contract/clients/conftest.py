"""Connections to the local servers, created and closed for each test, because event loops can't share
clients.
"""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from shared.platform.blobs import BlobStore
from shared.platform.settings import Settings
from shared.platform.tables import Table
from shared.wiring import Connections
from tests.fakes.blob_store import InMemoryBlobStore
from tests.fakes.services import fake_settings
from tests.fakes.table import InMemoryTable
from tests.servers import Azurite, ModelServer, SearchServer, unique_name

BOTH = ["in memory", pytest.param("azurite", marks=pytest.mark.contract)]
NOWHERE = "http://127.0.0.1:9"  # the discard port, on which no server listens

MakeSettings = Callable[..., Settings]
Connect = Callable[..., Connections]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Yield a function that connects to the services in given settings. All connections are closed at the
    end.
    """
    opened: list[Connections] = []

    def make(**settings: Any) -> Connections:
        opened.append(Connections(fake_settings(**settings)))
        return opened[-1]

    yield make
    for connections in opened:
        await connections.close()


def connect_search(server: SearchServer, connect: Connect) -> Connections:
    """Return connections to the search server. Async fixtures use this function, because they can't request
    `to_search` by name.
    """
    return connect(azure_search_endpoint=server.endpoint, azure_search_api_key=server.api_key)


@pytest.fixture
def to_storage(azurite: Azurite, connect: Connect) -> Connections:
    return connect(DocumentsStorage=azurite.connection_string)


def table_name(stem: str) -> str:
    return unique_name(stem).replace("-", "x")


@pytest.fixture(params=BOTH)
def table(request: pytest.FixtureRequest) -> Table:
    """Return a table in memory, or a new table on Azurite. Stores must behave the same on both."""
    if request.param == "in memory":
        return InMemoryTable()
    connections: Connections = request.getfixturevalue("to_storage")
    return Table(connections.tables, table_name("table"))


@pytest.fixture(params=BOTH)
def store(request: pytest.FixtureRequest) -> BlobStore:
    """Return a blob store in memory, or on Azurite."""
    if request.param == "in memory":
        return InMemoryBlobStore()
    connections: Connections = request.getfixturevalue("to_storage")
    return BlobStore(connections.blobs)


@pytest.fixture
def to_search(search_server: SearchServer, connect: Connect) -> Connections:
    return connect(azure_search_endpoint=search_server.endpoint, azure_search_api_key=search_server.api_key)


@pytest.fixture
def to_models(model_server: ModelServer, connect: Connect) -> Connections:
    return connect(openai_base_url=model_server.base_url, openai_api_key=model_server.api_key)
