"""How the storage account is reached: one blob, one queue and one table client per process."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shared.clients.connection import Connection, SdkClient
from shared.clients.credentials import Credentials, credential_modules
from shared.clients.proxies import environment_options
from shared.errors import ConfigurationError
from shared.settings import Settings

if TYPE_CHECKING:
    from azure.data.tables.aio import TableServiceClient
    from azure.storage.blob.aio import BlobServiceClient
    from azure.storage.queue.aio import QueueServiceClient

CONNECT_TIMEOUT_S = 5
READ_TIMEOUT_S = 10  # of silence; then it is tried again, within the limit of the call (calling.py)
DOWNLOAD_PIECE_BYTES = 4 * 1024 * 1024  # what one download holds in memory, twice at most
UPLOAD_PIECE_BYTES = 1024 * 1024  # aiohttp hands larger ones to the socket in one go, and warns

_TIMEOUTS: dict[str, Any] = {
    "connection_timeout": CONNECT_TIMEOUT_S,
    "read_timeout": READ_TIMEOUT_S,
    **environment_options(),
}
# The storage SDK's own first wait is 15 s, made for batch work; a person waits for us.
_BLOB_RETRIES: dict[str, Any] = {
    "retry_total": 2,
    "initial_backoff": 0.2,
    "increment_base": 1,  # raised to the number of the try and added: 1.2 s each time
    "random_jitter_range": 0.2,
}
# At once, after 0.8 and 1.6 s: a table that is busy says so for a second or two.
_TABLE_RETRIES: dict[str, Any] = {"retry_total": 3, "retry_backoff_factor": 0.4}


def connect_blobs(settings: Settings, credentials: Credentials) -> "Connection[BlobServiceClient]":
    """The account's blobs."""

    def make() -> "BlobServiceClient":
        from azure.storage.blob.aio import BlobServiceClient

        options = {
            **_TIMEOUTS,
            "max_single_get_size": DOWNLOAD_PIECE_BYTES,
            "max_chunk_get_size": DOWNLOAD_PIECE_BYTES,
            "max_single_put_size": UPLOAD_PIECE_BYTES,
            "max_block_size": UPLOAD_PIECE_BYTES,
            **_BLOB_RETRIES,
        }
        if settings.documents_storage:
            return _opened(BlobServiceClient.from_connection_string, settings.documents_storage, options)
        url = _required(settings.documents_storage_blob_uri, "DocumentsStorage__blobServiceUri")
        return BlobServiceClient(url, credentials.identity(url, "DocumentsStorage"), **options)

    return Connection(
        make, ("azure.storage.blob.aio", "aiohttp", *credential_modules(settings.documents_storage))
    )


def connect_queues(settings: Settings, credentials: Credentials) -> "Connection[QueueServiceClient]":
    """The account's queues."""

    def make() -> "QueueServiceClient":
        from azure.storage.queue.aio import QueueServiceClient

        options = {**_TIMEOUTS, **_BLOB_RETRIES}
        if settings.documents_storage:
            return _opened(QueueServiceClient.from_connection_string, settings.documents_storage, options)
        url = _required(settings.documents_storage_queue_uri, "DocumentsStorage__queueServiceUri")
        return QueueServiceClient(url, credentials.identity(url, "DocumentsStorage"), **options)

    return Connection(
        make, ("azure.storage.queue.aio", "aiohttp", *credential_modules(settings.documents_storage))
    )


def connect_tables(settings: Settings, credentials: Credentials) -> "Connection[TableServiceClient]":
    """The account's tables."""

    def make() -> "TableServiceClient":
        from azure.data.tables.aio import TableServiceClient

        options = {**_TIMEOUTS, **_TABLE_RETRIES}
        if settings.tables_endpoint:
            credential = credentials.for_tables(settings.tables_endpoint)
            return TableServiceClient(settings.tables_endpoint, credential=credential, **options)
        if settings.documents_storage:
            return _opened(TableServiceClient.from_connection_string, settings.documents_storage, options)
        url = _required(settings.documents_storage_table_uri, "DocumentsStorage__tableServiceUri")
        return TableServiceClient(url, credential=credentials.identity(url, "DocumentsStorage"), **options)

    key = settings.tables_key if settings.tables_endpoint else settings.documents_storage
    return Connection(make, ("azure.data.tables.aio", "aiohttp", *credential_modules(key)))


def _opened(
    open_client: Callable[..., SdkClient], connection_string: str, options: dict[str, Any]
) -> SdkClient:
    try:
        return open_client(connection_string, **options)
    except ValueError:  # its text repeats parts of the string
        raise ConfigurationError(
            "DocumentsStorage is not a connection string.",
            "Example: DefaultEndpointsProtocol=https;AccountName=NAME;AccountKey=…;"
            "EndpointSuffix=core.windows.net",
        ) from None


def _required(url: str | None, setting: str) -> str:
    if not url:
        raise ConfigurationError(
            f"{setting} is missing: the storage account with the documents.",
            "Set it, or DocumentsStorage with a connection string.",
        )
    return url
