"""One SDK client: made on first use, shared by the adapters that need it, closed once.

Nothing is imported or opened before the first call: a process pays only for the services it uses. An SDK's
async client belongs to the event loop of its first call; a process has one, a test makes and closes its own.
"""

from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    """What every async SDK client has."""

    def close(self) -> Awaitable[None]: ...


SdkClient = TypeVar("SdkClient", bound=Closable)


class Connection(Generic[SdkClient]):
    """A client to be."""

    def __init__(self, make: Callable[[], SdkClient]) -> None:
        self._make = make
        self._client: SdkClient | None = None

    def client(self) -> SdkClient:
        """The client; made by the first caller. With no await in between, two callers get the same one."""
        if self._client is None:
            self._client = self._make()
        return self._client

    async def close(self) -> None:
        """End it, if it was ever made; a later call makes a new one."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
