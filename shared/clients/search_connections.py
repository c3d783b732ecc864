"""How the search service is reached: endpoint, credential, and how often a call is tried."""

from typing import TYPE_CHECKING, Any

from shared.clients.connection import Connection
from shared.clients.credentials import Credentials
from shared.settings import Settings

if TYPE_CHECKING:
    from azure.search.documents.aio import SearchClient
    from azure.search.documents.indexes.aio import SearchIndexClient

CONNECT_TIMEOUT_S = (
    5  # a service in the same region answers in milliseconds; a longer wait only eats the limit
)
TRIES = 3

RETRY_OPTIONS: dict[str, Any] = {
    "retry_total": TRIES - 1,
    "retry_mode": "exponential",
    "retry_backoff_factor": 0.4,  # waits 0 and 0.8 s: three tries fit well into 30 s
}
# azure-core does not retry a POST on 429 or a broken connection, as it cannot know what it does. Ours are
# queries, and writes by key that give the same rows when they are done twice.
CALL_OPTIONS: dict[str, Any] = {"retry_on_methods": ["GET", "PUT", "POST"]}


def connect_index(
    settings: Settings, credentials: Credentials, index_name: str
) -> "Connection[SearchClient]":
    """A client of one index."""

    def make() -> "SearchClient":
        from azure.search.documents.aio import SearchClient

        return SearchClient(
            settings.azure_search_endpoint, index_name, credentials.for_search(), **_options(settings)
        )

    return Connection(make)


def connect_admin(settings: Settings, credentials: Credentials) -> "Connection[SearchIndexClient]":
    """A client that creates indexes."""

    def make() -> "SearchIndexClient":
        from azure.search.documents.indexes.aio import SearchIndexClient

        return SearchIndexClient(
            settings.azure_search_endpoint, credentials.for_search(), **_options(settings)
        )

    return Connection(make)


def _options(settings: Settings) -> dict[str, Any]:
    return {
        "connection_timeout": CONNECT_TIMEOUT_S,
        "read_timeout": settings.search_timeout_s,
        **RETRY_OPTIONS,
    }
