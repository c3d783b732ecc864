"""Tests for connections: opened once and outside the event loop, with a key or an identity, and closed."""

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from azure.core.credentials import AzureKeyCredential
from azure.identity.aio import DefaultAzureCredential
from openai import AsyncOpenAI

from shared.platform.connections import Connection, Credentials
from shared.platform.errors import ConfigurationError
from shared.platform.tables import Table
from shared.runs.blob_run_log import KEPT_CLIENTS, BlobRunLog
from shared.wiring import Connections
from tests.fakes.services import OWNER_ID_KEY, fake_settings

SDKS = [
    "openai",
    "httpx2",
    "azure.core",
    "azure.storage.blob",
    "azure.data.tables",
    "azure.search.documents",
    "aiohttp",
]


# Calls every adapter once in a new process without any server, and records the thread of each import.
FIRST_CALLS = """
import asyncio, importlib.abc, json, sys, threading
from shared.platform.errors import GroundworkError
from shared.platform.language_models.models import CallLimits, Prompt
from shared.platform.search import SearchRequest
from shared.platform.settings import Settings
from shared.wiring import build_services

imported = {}

class Watch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        imported[name] = threading.current_thread() is threading.main_thread()

sys.meta_path.insert(0, Watch())

async def use(call):
    try:
        await call
    except GroundworkError as failed:
        return failed.code

async def main(settings):
    services = build_services(Settings.of(settings))
    limits = CallLimits(timeout_s=60, max_retries=0)  # within it the SDK is imported
    prompt = Prompt(name="answer", system="s", user="u")
    calls = [
        anext(services.chat_model.stream(prompt, limits)),
        services.embedder.embed(["a"], limits),
        services.content_index.search(SearchRequest(text="a")),
        services.search_admin.ensure_index({"name": "a", "fields": []}),
        services.blobs.read("work", "a"),
        services.run_log.read("r1"),
        services.runs.get("r1"),
    ]
    codes = await asyncio.gather(*(use(call) for call in calls))
    await services.close()
    print(json.dumps({"codes": codes, "imported": imported}))

asyncio.run(main(json.loads(sys.argv[1])))
"""


# Only creates clients with a managed identity, as no token service is available.
OPENINGS = """
import asyncio, importlib.abc, json, sys, threading
from shared.wiring import Connections
from shared.platform.settings import Settings

imported = {}

class Watch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        imported[name] = threading.current_thread() is threading.main_thread()

sys.meta_path.insert(0, Watch())

async def main(settings):
    to = Connections(Settings.of(settings))
    for connection in (to.model, to.blobs, to.tables, to.search_admin, to.search_index("a")):
        await connection.opened()
    await to.close()
    print(json.dumps({"codes": [], "imported": imported}))

asyncio.run(main(json.loads(sys.argv[1])))
"""


NOWHERE = "127.0.0.1:9"  # no server listens on the discard port


MODELS = {"chat_model": "c", "embedding_model": "e", "embedding_dimensions": 3, "owner_id_key": OWNER_ID_KEY}


BY_KEY = {
    "azure_search_endpoint": f"http://{NOWHERE}",
    "azure_search_api_key": "k",
    "DocumentsStorage": f"AccountName=a;AccountKey=a2V5;BlobEndpoint=http://{NOWHERE}/a;"
    f"TableEndpoint=http://{NOWHERE}/a",
    "openai_base_url": f"http://{NOWHERE}/v1",
    **MODELS,
}


BY_IDENTITY = {
    "azure_search_endpoint": "https://x.search.windows.net",
    "DocumentsStorage__blobServiceUri": "https://x.blob.core.windows.net",
    "DocumentsStorage__tableServiceUri": "https://x.table.core.windows.net",
    "azure_openai_endpoint": "https://x.openai.azure.com",
    **MODELS,
}


def imports(program: str, settings: dict[str, object]) -> tuple[list[str], dict[str, bool]]:
    """Return the error codes of the calls, and for each module whether the event loop thread imported it."""
    command = [sys.executable, "-c", program, json.dumps(settings)]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": "."}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=environment)
    result = json.loads(done.stdout.splitlines()[-1])
    return result["codes"], result["imported"]


def test_no_call_imports_an_sdk_on_the_event_loop() -> None:
    codes, on_loop = imports(FIRST_CALLS, BY_KEY)
    assert codes == ["NetworkError"] * 7
    # Modules of the app were imported earlier. A worker also loads those outside the event loop.
    assert [name for name in SDKS if on_loop.get(name)] == []
    assert on_loop["openai"] is False


def test_nor_does_one_by_identity() -> None:
    _, on_loop = imports(OPENINGS, BY_IDENTITY)
    modules = [*SDKS, "azure.identity"]
    assert [name for name in modules if on_loop.get(name)] == []
    assert on_loop["azure.identity"] is False


class Service:
    """A service that counts the clients it creates."""

    def __init__(self) -> None:
        self.client_counts: Counter[str] = Counter()

    def get_blob_client(self, container: str, name: str) -> Any:
        self.client_counts[name] += 1

        async def append_block(*_: Any, **__: Any) -> dict[str, str]:
            return {"blob_append_offset": "0", "blob_committed_block_count": "1"}

        return SimpleNamespace(append_block=append_block)

    def get_table_client(self, name: str) -> Any:
        self.client_counts[name] += 1

        async def get_entity(*_: Any) -> dict[str, str]:
            return {"made_by": str(id(self))}

        return SimpleNamespace(get_entity=get_entity)

    async def close(self) -> None:
        pass


def connected() -> tuple[Connection[Any], list[Service]]:
    services: list[Service] = []

    def make() -> Service:
        services.append(Service())
        return services[-1]

    return Connection(make), services


async def test_a_table_keeps_its_client_until_the_connection_is_another() -> None:
    connection, services = connected()
    table = Table(connection, "runs")
    for _ in range(3):
        await table.get("p", "r")
    assert services[0].client_counts == {"runs": 1}
    await connection.close()
    await table.get("p", "r")
    assert [service.client_counts["runs"] for service in services] == [1, 1]


async def test_a_log_keeps_the_clients_of_the_runs_that_were_written_last() -> None:
    connection, services = connected()
    log = BlobRunLog(connection)
    busy = "busy/events.jsonl"
    for number in range(KEPT_CLIENTS + 10):
        await log.append("busy", [])
        await log.append(f"run{number}", [])
    assert services[0].client_counts[busy] == 1
    await log.append("run0", [])  # the client was evicted
    assert services[0].client_counts["run0/events.jsonl"] == 2
    await connection.close()
    await log.append("busy", [])
    assert services[1].client_counts[busy] == 1


class Client:
    def __init__(self) -> None:
        self.closed = 0

    async def close(self) -> None:
        self.closed += 1


async def test_a_client_is_made_on_first_use_once_and_closed_once() -> None:
    clients: list[Client] = []

    def make() -> Client:
        clients.append(Client())
        return clients[-1]

    connection = Connection(make)
    await connection.close()
    assert clients == []
    assert connection.client() is connection.client()
    await connection.close()
    await connection.close()
    assert [client.closed for client in clients] == [1]
    assert connection.client() is not clients[0]


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
            DocumentsStorage=None,
            DocumentsStorage__blobServiceUri="https://x.blob.core.windows.net",
            DocumentsStorage__tableServiceUri="https://x.table.core.windows.net",
            openai_base_url=None,
            azure_openai_endpoint="https://x.openai.azure.com",
        )
    )
    assert connections.blobs.client().account_name == "x"
    assert connections.tables.client().account_name == "x"
    assert isinstance(connections.model.client(), AsyncOpenAI)
    assert str(connections.model.client().base_url) == "https://x.openai.azure.com/openai/v1/"
    assert connections.search_admin.client() is connections.search_admin.client()
    assert connections.search_index("blocks") is connections.search_index("blocks")
    assert connections.search_index("blocks").client() is not None
    await connections.close()


async def test_a_broken_connection_string_is_named_and_not_shown() -> None:
    connections = Connections(fake_settings(DocumentsStorage="AccountKey=c2VjcmV0"))
    for connection in (connections.blobs, connections.tables):
        with pytest.raises(ConfigurationError, match="DocumentsStorage") as broken:
            connection.client()
        assert "c2VjcmV0" not in repr(broken.value)


async def test_a_missing_storage_address_is_named() -> None:
    settings = fake_settings()
    storage = settings.storage.model_copy(update={"connection_string": None})
    settings = settings.model_copy(update={"storage": storage})
    with pytest.raises(ConfigurationError, match="DocumentsStorage__blobServiceUri"):
        Connections(settings).blobs.client()


async def test_indexes_are_made_by_an_identity_of_their_own_unless_there_is_a_key() -> None:
    endpoint = "https://search.example"
    own = fake_settings(azure_client_id="c1", azure_search_admin_client_id="c2", azure_search_api_key=None)
    credentials = Credentials(own)
    assert isinstance(credentials.for_index_admin(endpoint), DefaultAzureCredential)
    assert credentials.for_index_admin(endpoint) is not credentials.identity(endpoint, "X")
    await credentials.close()
    shared = Credentials(fake_settings(azure_client_id="c1", azure_search_api_key=None))
    assert shared.for_index_admin(endpoint) is shared.identity(endpoint, "X")
    await shared.close()
    keyed = Credentials(fake_settings(azure_search_admin_client_id="c2"))
    assert isinstance(keyed.for_index_admin(endpoint), AzureKeyCredential)
