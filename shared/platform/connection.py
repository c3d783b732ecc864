"""connection."""

import asyncio
import importlib
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    """What every async SDK client has."""

    def close(self) -> Awaitable[None]: ...


SdkClient = TypeVar("SdkClient", bound=Closable)

# The SDKs' packages import each other in circles: two threads in one of them would fail with a deadlock.
_ONE_AT_A_TIME = threading.Lock()


class Connection(Generic[SdkClient]):
    """A client to be."""

    def __init__(self, make: Callable[[], SdkClient], modules: Sequence[str] = ()) -> None:
        """`modules` are those that `make` imports and that take long."""
        self._make = make
        self._modules = modules
        self._client: SdkClient | None = None

    async def opened(self) -> SdkClient:
        """The client. What adapters use: the SDK is imported in a thread before it is made.

        On the event loop an import holds up every stream of the process; openai takes 0.5 to 0.9 s.
        """
        if self._client is None:
            for module in self._modules:
                await asyncio.to_thread(_import, module)
        return self.client()

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


def _import(module: str) -> None:
    with _ONE_AT_A_TIME:
        importlib.import_module(module)
