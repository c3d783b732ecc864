"""Lazily created clients of the Azure SDKs, with their endpoints, credentials and timeouts.

No connection is opened before the first call.
"""

import asyncio
import urllib.request
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from azure.core.credentials import AzureKeyCredential, AzureNamedKeyCredential
from azure.data.tables.aio import TableServiceClient
from azure.search.documents.aio import SearchClient
from azure.search.documents.indexes.aio import SearchIndexClient

from shared.platform.errors import ConfigurationError
from shared.platform.loading import load, load_module
from shared.platform.settings import Settings

if TYPE_CHECKING:
    from azure.identity.aio import DefaultAzureCredential
    from azure.storage.blob.aio import BlobServiceClient
    from azure.storage.queue.aio import QueueServiceClient

# These SDKs are imported on first use: they import cryptography, which takes longer than all other Azure SDKs
# together.
BLOB_SDK = "azure.storage.blob.aio"
IDENTITY_SDK = "azure.identity.aio"
_QUEUE_SDK = "azure.storage.queue.aio"


class Closable(Protocol):
    """Interface shared by all asynchronous SDK clients."""

    def close(self) -> Awaitable[None]: ...


SdkClient = TypeVar("SdkClient", bound=Closable)


class Connection(Generic[SdkClient]):
    """SDK client that is created on first use."""

    def __init__(self, make: Callable[[], SdkClient], modules: Sequence[str] = ()) -> None:
        """Store the function that creates the client. `modules` are slow imports that it needs; `opened`
        loads them in a thread.
        """
        self._make = make
        self._modules = modules
        self._client: SdkClient | None = None

    async def opened(self) -> SdkClient:
        """Return the client. On the first call, import its SDK in a thread and create it.

        An import on the event loop would block every stream of the process; openai takes 0.5 to 0.9 s.
        """
        if self._client is None:
            for module in self._modules:
                await asyncio.to_thread(load_module, module)
        return self.client()

    def client(self) -> SdkClient:
        """Return the client, creating it on the first call. The method is synchronous, so concurrent callers
        share one client.
        """
        if self._client is None:
            self._client = self._make()
        return self._client

    async def close(self) -> None:
        """Close the client, if there is one. The next call creates a new client."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def credential_modules(key: str | None) -> tuple[str, ...]:
    """Return the modules that a service's credential needs. A key needs none; a token needs
    azure.identity.
    """
    return () if key else (IDENTITY_SDK,)


class Credentials:
    """Credentials of the app, chosen for each service from its key, the app's identity or a dedicated
    identity.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._identity = _identity(settings.host.azure_client_id)
        self._index_admin = _identity(settings.search.admin_client_id)
        self._bot = _identity(settings.bot.app_id)

    def key_or_identity(
        self, key: str | None, endpoint: str, key_setting: str
    ) -> "AzureKeyCredential | DefaultAzureCredential":
        """Return a credential for the key or, without a key, the app's identity. Raises the same errors as
        `identity`.
        """
        if key:
            return AzureKeyCredential(key)
        return self.identity(endpoint, key_setting)

    def for_tables(self, endpoint: str) -> "AzureNamedKeyCredential | DefaultAzureCredential":
        """Return the credential for TABLES_ENDPOINT: TABLES_KEY or, without a key, the app's identity.

        The account name is the first label of the host name or, for an emulator, the URL path.
        """
        key = self._settings.storage.tables_key
        if key:
            address = urlsplit(endpoint)
            account = address.path.strip("/") or (address.hostname or "").partition(".")[0]
            return AzureNamedKeyCredential(account, key)
        return self.identity(endpoint, "TABLES_KEY")

    def identity(self, endpoint: str, key_setting: str) -> "DefaultAzureCredential":
        """Return the app's managed identity or, on a developer's machine, their sign-in.

        Raises:
            ConfigurationError: the endpoint does not use https, so the SDKs would refuse to send tokens.
        """
        if not endpoint.startswith("https://"):
            raise ConfigurationError(
                f"{key_setting} is missing, and {endpoint} does not use https, which tokens require.",
                f"Set {key_setting}, or use an https endpoint.",
            )
        return self._identity.client()

    def for_index_admin(self, endpoint: str) -> "AzureKeyCredential | DefaultAzureCredential":
        """Return the credential for creating indexes: the search key, the dedicated identity or the app's
        identity.

        Raises:
            ConfigurationError: as `identity`.
        """
        ordinary = self.key_or_identity(self._settings.search.api_key, endpoint, "AZURE_SEARCH_API_KEY")
        has_own = self._settings.search.admin_client_id and not self._settings.search.api_key
        return self._index_admin.client() if has_own else ordinary

    def for_directory(self) -> "DefaultAzureCredential":
        """Return the app's identity for Microsoft Graph, which has no keys. GRAPH_ENDPOINT is validated by
        the settings.
        """
        return self._identity.client()

    def for_bot(self) -> "DefaultAzureCredential":
        """Return the bot's identity, which may differ from the app's identity."""
        if self._settings.bot.app_id in (None, self._settings.host.azure_client_id):
            return self._identity.client()
        return self._bot.client()

    async def close(self) -> None:
        """Close the connections of all identities that were used."""
        await self._identity.close()
        await self._index_admin.close()
        await self._bot.close()


def _identity(client_id: str | None) -> "Connection[DefaultAzureCredential]":
    def make() -> "DefaultAzureCredential":
        credential: type[DefaultAzureCredential] = load(IDENTITY_SDK, "DefaultAzureCredential")
        return credential(managed_identity_client_id=client_id)

    return Connection(make)


def environment_options() -> dict[str, Any]:
    """Return transport options for an async client, so that it uses the proxy settings of the environment, if
    there are any.
    """
    return {"use_env_settings": bool(urllib.request.getproxies())}


CONNECT_TIMEOUT_S = 5
READ_TIMEOUT_S = 10  # longest wait for data; calls.py then retries within the time limit of the call
DOWNLOAD_PIECE_BYTES = 4 * 1024 * 1024  # each download holds at most two pieces in memory
UPLOAD_PIECE_BYTES = 1024 * 1024  # aiohttp sends larger pieces in a single write and warns about it

_TIMEOUTS: dict[str, Any] = {
    "connection_timeout": CONNECT_TIMEOUT_S,
    "read_timeout": READ_TIMEOUT_S,
    **environment_options(),
}

# The storage SDK would first wait 15 s, which suits batch jobs but not a waiting user.
BLOB_RETRIES: dict[str, Any] = {
    "retry_total": 2,
    "initial_backoff": 0.2,
    # The SDK raises this number to the power of the attempt number and adds it to the backoff, so it adds 1 s
    # each time.
    "increment_base": 1,
    "random_jitter_range": 0.2,
}

# The waits before the retries are 0, 0.8 and 1.6 s, because a throttled table recovers within a second or
# two.
TABLE_RETRIES: dict[str, Any] = {"retry_total": 3, "retry_backoff_factor": 0.4}


def connect_blobs(settings: Settings, credentials: Credentials) -> "Connection[BlobServiceClient]":
    """Return the connection to the blob service of the storage account."""
    options = {
        **_TIMEOUTS,
        "max_single_get_size": DOWNLOAD_PIECE_BYTES,
        "max_chunk_get_size": DOWNLOAD_PIECE_BYTES,
        "max_single_put_size": UPLOAD_PIECE_BYTES,
        "max_block_size": UPLOAD_PIECE_BYTES,
        **BLOB_RETRIES,
    }

    def make() -> "BlobServiceClient":
        address = (settings.storage.blob_uri, "DocumentsStorage__blobServiceUri")
        kind: type[BlobServiceClient] = load(BLOB_SDK, "BlobServiceClient")
        return _storage_client(kind, settings, credentials, address, options)

    return Connection(make, (BLOB_SDK, *credential_modules(settings.storage.connection_string)))


def connect_queues(settings: Settings, credentials: Credentials) -> "Connection[QueueServiceClient]":
    """Return the connection to the queue service of the storage account."""

    def make() -> "QueueServiceClient":
        address = (settings.storage.queue_uri, "DocumentsStorage__queueServiceUri")
        options = {**_TIMEOUTS, **BLOB_RETRIES}
        kind: type[QueueServiceClient] = load(_QUEUE_SDK, "QueueServiceClient")
        return _storage_client(kind, settings, credentials, address, options)

    return Connection(make, (_QUEUE_SDK, *credential_modules(settings.storage.connection_string)))


def connect_tables(settings: Settings, credentials: Credentials) -> Connection[TableServiceClient]:
    """Return the connection to table storage, which may be in a separate account (TABLES_ENDPOINT)."""

    def make() -> TableServiceClient:
        options = {**_TIMEOUTS, **TABLE_RETRIES}
        if settings.storage.tables_endpoint:
            credential = credentials.for_tables(settings.storage.tables_endpoint)
            return TableServiceClient(settings.storage.tables_endpoint, credential=credential, **options)
        address = (settings.storage.table_uri, "DocumentsStorage__tableServiceUri")
        return _storage_client(TableServiceClient, settings, credentials, address, options)

    has_own_account = bool(settings.storage.tables_endpoint)
    key = settings.storage.tables_key if has_own_account else settings.storage.connection_string
    return Connection(make, credential_modules(key))


def _storage_client(
    kind: type[SdkClient],
    settings: Settings,
    credentials: Credentials,
    address: tuple[str | None, str],
    options: dict[str, Any],
) -> SdkClient:
    """Create a storage client from the connection string or, if that is missing, from a URL and the app's
    identity. `address` is the URL and the name of its setting.
    """
    # Typed as Any, because the SDK constructors have the same arguments but no common base class.
    make: Any = kind
    if settings.storage.connection_string:
        client: SdkClient
        try:
            client = make.from_connection_string(settings.storage.connection_string, **options)
        except ValueError:  # the SDK message is suppressed, because it quotes parts of the connection string
            raise ConfigurationError(
                "DocumentsStorage is not a valid connection string.",
                "Example: DefaultEndpointsProtocol=https;AccountName=NAME;AccountKey=…;"
                "EndpointSuffix=core.windows.net",
            ) from None
        return client
    url, setting = address
    if not url:
        raise ConfigurationError(
            f"{setting} is missing. It is the URL of the storage account that holds the documents.",
            "Set it, or set DocumentsStorage to a connection string.",
        )
    client = make(url, credential=credentials.identity(url, "DocumentsStorage"), **options)
    return client


def connect_index(settings: Settings, credentials: Credentials, index_name: str) -> Connection[SearchClient]:
    """Return the connection for reading and writing one search index."""

    def make() -> SearchClient:
        endpoint, credential, options = _search_arguments(settings, credentials)
        return SearchClient(endpoint, index_name, credential, **options)

    return Connection(make, credential_modules(settings.search.api_key))


def connect_admin(settings: Settings, credentials: Credentials) -> Connection[SearchIndexClient]:
    """Return the connection for creating and changing search indexes."""

    def make() -> SearchIndexClient:
        endpoint, _, options = _search_arguments(settings, credentials)
        return SearchIndexClient(endpoint, credentials.for_index_admin(endpoint), **options)

    return Connection(make, credential_modules(settings.search.api_key))


def _search_arguments(settings: Settings, credentials: Credentials) -> tuple[str, Any, dict[str, Any]]:
    """Return the endpoint, credential and transport options for a client of the search service."""
    endpoint = settings.search.endpoint
    credential = credentials.key_or_identity(settings.search.api_key, endpoint, "AZURE_SEARCH_API_KEY")
    options = {
        "connection_timeout": CONNECT_TIMEOUT_S,
        "read_timeout": settings.search.timeout_s,
        "retry_total": 0,  # calls.py performs the retries, because the SDK would sleep beyond the time limit
        **environment_options(),
    }
    return endpoint, credential, options
