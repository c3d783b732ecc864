"""Fixtures for the tools over a real SDK and search service: the local server, and Azure AI Search if
configured.

For Azure, AZURE_SEARCH_ENDPOINT is the service and AZURE_SEARCH_API_KEY its admin key. Without a key, the
identity that is signed in is used. Two indexes with random names are created, and deleted at the end.
"""

import asyncio
import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from shared.access.models import UserContext
from shared.platform.azure_search import AzureSearchIndex
from shared.platform.language_models.models import ChatModel
from shared.platform.search import SearchRequest
from shared.retrieval.index_admin import AzureSearchAdmin
from shared.retrieval.schema import content_index, documents_index
from shared.tools.base import Tool
from shared.tools.registry import bound_tool
from shared.wiring import Connections, Services
from tests.contract.clients.conftest import Connect, connect, to_models
from tests.contract.tools.corpus import DIMENSIONS, block_rows, document_records
from tests.fakes.models import HashingEmbedder, ScriptedChatModel
from tests.fakes.services import fake_services, fake_settings
from tests.fakes.stores import InMemoryDocumentStore
from tests.servers import SearchServer
from tests.world import state_of_record

__all__ = ["connect", "to_models"]

_SETTLED_S = 60.0  # time limit for writes to become searchable, which takes some seconds in Azure


@dataclass(frozen=True)
class Corpus:
    """A search service that contains the test documents."""

    settings: dict[str, Any]
    blocks_name: str
    documents_name: str


@dataclass(frozen=True)
class World:
    """Connections to a search service, and the app's services over it."""

    connections: Connections
    corpus: Corpus

    def services(self, chat_model: ChatModel | None = None) -> Services:
        return fake_services(
            content_index=index(self.connections, self.corpus.blocks_name, "block_id"),
            documents_index=index(self.connections, self.corpus.documents_name, "doc_id"),
            documents=InMemoryDocumentStore(map(state_of_record, document_records())),
            embedder=HashingEmbedder(DIMENSIONS),
            chat_model=chat_model or ScriptedChatModel(),
        )

    def tool(self, name: str, user: UserContext, chat_model: ChatModel | None = None) -> Tool:
        return bound_tool(name, self.services(chat_model), user)


def index(connections: Connections, name: str, key_field: str, timeout_s: float = 30) -> AzureSearchIndex:
    return AzureSearchIndex(connections.search_index(name), name, timeout_s=timeout_s, key_field=key_field)


@pytest.fixture(scope="session")
def local_corpus(search_server: SearchServer) -> Iterator[Corpus]:
    settings = {
        "azure_search_endpoint": search_server.endpoint,
        "azure_search_api_key": search_server.api_key,
    }
    yield from _filled(settings)


@pytest.fixture(scope="session")
def azure_corpus() -> Iterator[Corpus]:
    endpoint = os.environ.get("AZURE_SEARCH_ENDPOINT")
    if not endpoint or "127.0.0.1" in endpoint or "localhost" in endpoint:
        pytest.skip("needs a real Azure AI Search: set AZURE_SEARCH_ENDPOINT and AZURE_SEARCH_API_KEY")
    key = os.environ.get("AZURE_SEARCH_API_KEY")
    yield from _filled({"azure_search_endpoint": endpoint, "azure_search_api_key": key})


@pytest.fixture(params=["local", pytest.param("azure", marks=pytest.mark.azure)])
def corpus(request: pytest.FixtureRequest) -> Corpus:
    filled: Corpus = request.getfixturevalue(f"{request.param}_corpus")
    return filled


@pytest.fixture
def world(corpus: Corpus, connect: Connect) -> World:
    return World(connect(**corpus.settings), corpus)


def _filled(settings: dict[str, Any]) -> Iterator[Corpus]:
    suffix = uuid.uuid4().hex[:10]
    corpus = Corpus(settings, f"test-blocks-{suffix}", f"test-documents-{suffix}")
    try:
        _with_connections(settings, lambda connections: _fill(connections, corpus))
        yield corpus
    finally:
        _with_connections(settings, lambda connections: _remove(connections, corpus))


def _with_connections(settings: dict[str, Any], act: Callable[[Connections], Any]) -> None:
    async def run() -> None:
        connections = Connections(fake_settings(**settings))
        try:
            await act(connections)
        finally:
            await connections.close()

    asyncio.run(run())


async def _fill(connections: Connections, corpus: Corpus) -> None:
    admin = AzureSearchAdmin(connections.search_admin, timeout_s=60)
    await admin.ensure_index(content_index(corpus.blocks_name, DIMENSIONS))
    await admin.ensure_index(documents_index(corpus.documents_name))
    blocks = await block_rows(HashingEmbedder(DIMENSIONS))
    for name, key, rows in (
        (corpus.blocks_name, "block_id", blocks),
        (corpus.documents_name, "doc_id", [one.model_dump(mode="json") for one in document_records()]),
    ):
        search_index = index(connections, name, key)
        await search_index.upload(rows)
        await _wait_until_visible(search_index, len(rows))


async def _wait_until_visible(search_index: AzureSearchIndex, count: int) -> None:
    async with asyncio.timeout(_SETTLED_S):
        while (await search_index.search(SearchRequest(count=True, top=1))).count != count:  # noqa: ASYNC110
            await asyncio.sleep(0.5)


async def _remove(connections: Connections, corpus: Corpus) -> None:
    client = await connections.search_admin.opened()
    for name in (corpus.blocks_name, corpus.documents_name):
        await client.delete_index(name)
