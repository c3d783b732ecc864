"""How the search service is reached: endpoint, credential, and how often a call is tried.

The tries are ours and not the SDK's: that one sleeps as long as a busy service asks for, past any limit, and
what it was asked for is lost with the cancelled sleep.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from shared.clients.connection import Connection, SdkClient
from shared.clients.credentials import Credentials, credential_modules
from shared.clients.dependency import SEARCH
from shared.clients.proxies import environment_options
from shared.clients.retrying import Deadline, call_within
from shared.clients.translate import StatusTranslation, azure_errors
from shared.settings import Settings

if TYPE_CHECKING:
    from azure.search.documents.aio import SearchClient
    from azure.search.documents.indexes.aio import SearchIndexClient

CONNECT_TIMEOUT_S = (
    5  # a service in the same region answers in milliseconds; a longer wait only eats the limit
)
TRIES = 3  # with waits of 0.5 and 1 s: they fit well into 30 s

Answer = TypeVar("Answer")


def connect_index(
    settings: Settings, credentials: Credentials, index_name: str
) -> "Connection[SearchClient]":
    """A client of one index."""

    def make() -> "SearchClient":
        from azure.search.documents.aio import SearchClient

        return SearchClient(
            settings.azure_search_endpoint, index_name, credentials.for_search(), **_options(settings)
        )

    return Connection(
        make, ("azure.search.documents.aio", "aiohttp", *credential_modules(settings.azure_search_api_key))
    )


def connect_admin(settings: Settings, credentials: Credentials) -> "Connection[SearchIndexClient]":
    """A client that creates indexes."""

    def make() -> "SearchIndexClient":
        from azure.search.documents.indexes.aio import SearchIndexClient

        return SearchIndexClient(
            settings.azure_search_endpoint, credentials.for_search(), **_options(settings)
        )

    return Connection(
        make,
        ("azure.search.documents.indexes.aio", "aiohttp", *credential_modules(settings.azure_search_api_key)),
    )


async def ask(
    connection: Connection[SdkClient],
    call: Callable[[SdkClient], Awaitable[Answer]],
    read_status: StatusTranslation,
    *,
    timeout_s: float,
) -> Answer:
    """One call of the service, all its tries within the limit.

    Also what writes may be tried again after a lost answer: writes are by key, and give the same rows twice.
    """
    client = await connection.opened()
    deadline = Deadline(timeout_s)

    async def attempt() -> Answer:
        with azure_errors(SEARCH, read_status):
            async with asyncio.timeout_at(deadline.at):
                return await call(client)

    return await call_within(deadline, TRIES - 1, attempt)


def _options(settings: Settings) -> dict[str, Any]:
    return {
        "connection_timeout": CONNECT_TIMEOUT_S,
        "read_timeout": settings.search_timeout_s,
        "retry_total": 0,
        **environment_options(),
    }
