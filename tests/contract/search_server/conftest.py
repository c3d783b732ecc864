"""Fixtures for the shared search server, and a separate index for each test."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from azure.core.credentials import AzureKeyCredential
from azure.search.documents import SearchClient
from azure.search.documents.indexes import SearchIndexClient
from azure.search.documents.indexes.models import SearchIndex

from tests.contract.search_server.library import BOOKS, FIELDS, PARTS
from tests.servers import SearchServer, unique_name

Document = dict[str, Any]


@pytest.fixture
def credential(search_server: SearchServer) -> AzureKeyCredential:
    return AzureKeyCredential(search_server.api_key)


@pytest.fixture
def indexes(search_server: SearchServer, credential: AzureKeyCredential) -> Iterator[SearchIndexClient]:
    with SearchIndexClient(search_server.endpoint, credential) as client:
        yield client


@dataclass(frozen=True)
class MadeIndex:
    name: str
    client: SearchClient


MakeIndex = Callable[..., MadeIndex]


@pytest.fixture
def make_index(
    search_server: SearchServer, credential: AzureKeyCredential, indexes: SearchIndexClient
) -> Iterator[MakeIndex]:
    """Yield a function that creates an index from fields, documents and other definitions, and returns it
    with a client.
    """
    created_indexes: list[MadeIndex] = []

    def make(fields: list[Document], documents: list[Document] | None = None, **parts: Any) -> MadeIndex:
        name = unique_name("test")
        indexes.create_index(SearchIndex({"name": name, "fields": fields, **parts}))
        created_indexes.append(MadeIndex(name, SearchClient(search_server.endpoint, name, credential)))
        if documents:
            assert all(result.succeeded for result in created_indexes[-1].client.upload_documents(documents))
        return created_indexes[-1]

    yield make
    for one in created_indexes:
        indexes.delete_index(one.name)
        one.client.close()


@pytest.fixture
def books(make_index: MakeIndex) -> MadeIndex:
    """Return the library with its five books."""
    return make_index(FIELDS, BOOKS, **PARTS)


@pytest.fixture
def http(search_server: SearchServer) -> Iterator[httpx.Client]:
    """Yield a client for requests that the SDK would never send."""
    headers = {"api-key": search_server.api_key, "content-type": "application/json"}
    with httpx.Client(base_url=search_server.endpoint, headers=headers, timeout=30) as client:
        yield client
