"""Connections: made once, by key or by identity, and closed."""

import asyncio

import pytest
from azure.core.credentials import AzureKeyCredential
from azure.identity.aio import DefaultAzureCredential
from openai import AsyncAzureOpenAI

from shared.platform.connections import Connection, Credentials
from shared.platform.errors import ConfigurationError
from shared.wiring import Connections
from tests.fakes.services import fake_settings


class Client:
    def __init__(self) -> None:
        self.closed = 0

    async def close(self) -> None:
        self.closed += 1


async def test_a_client_is_made_on_first_use_once_and_closed_once() -> None:
    made: list[Client] = []

    def make() -> Client:
        made.append(Client())
        return made[-1]

    connection = Connection(make)
    await connection.close()
    assert made == []
    assert connection.client() is connection.client()
    await connection.close()
    await connection.close()
    assert [client.closed for client in made] == [1]
    assert connection.client() is not made[0]


async def test_callers_at_the_same_time_get_the_same_client() -> None:
    connection = Connection(Client, ("json",))
    first, second = await asyncio.gather(connection.opened(), connection.opened())
    assert first is second


async def test_a_key_is_used_where_one_is_set() -> None:
    credentials = Credentials(fake_settings())
    credential = credentials.key_or_identity("k", "https://x.search.windows.net", "AZURE_SEARCH_API_KEY")
    assert isinstance(credential, AzureKeyCredential)


async def test_without_a_key_the_identity_is_used_one_for_all_services() -> None:
    credentials = Credentials(fake_settings(azure_client_id="c1"))
    identity = credentials.key_or_identity(None, "https://x.search.windows.net", "AZURE_SEARCH_API_KEY")
    assert isinstance(identity, DefaultAzureCredential)
    assert credentials.identity("https://x.blob.core.windows.net", "DocumentsStorage") is identity
    await credentials.close()


async def test_a_token_is_never_sent_over_plain_http() -> None:
    with pytest.raises(ConfigurationError, match="AZURE_SEARCH_API_KEY"):
        Credentials(fake_settings()).key_or_identity(None, "http://127.0.0.1:1", "AZURE_SEARCH_API_KEY")


async def test_with_identity_every_client_can_be_made() -> None:
    connections = Connections(
        fake_settings(
            azure_search_endpoint="https://x.search.windows.net",
            azure_search_api_key=None,
            documents_storage=None,
            documents_storage_blob_uri="https://x.blob.core.windows.net",
            documents_storage_table_uri="https://x.table.core.windows.net",
            openai_base_url=None,
            azure_openai_endpoint="https://x.openai.azure.com",
        )
    )
    assert connections.blobs.client().account_name == "x"
    assert connections.tables.client().account_name == "x"
    assert isinstance(connections.model.client(), AsyncAzureOpenAI)
    assert connections.search_admin.client() is connections.search_admin.client()
    assert connections.search_index("blocks") is connections.search_index("blocks")
    assert connections.search_index("blocks").client() is not None
    await connections.close()


async def test_a_broken_connection_string_is_named_and_not_shown() -> None:
    connections = Connections(fake_settings(documents_storage="AccountKey=c2VjcmV0"))
    for connection in (connections.blobs, connections.tables):
        with pytest.raises(ConfigurationError, match="DocumentsStorage") as broken:
            connection.client()
        assert "c2VjcmV0" not in repr(broken.value)


async def test_a_missing_storage_address_is_named() -> None:
    settings = fake_settings().model_copy(update={"documents_storage": None})
    with pytest.raises(ConfigurationError, match="DocumentsStorage__blobServiceUri"):
        Connections(settings).blobs.client()
