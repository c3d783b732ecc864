"""One call of an Azure client: opened off the event loop, within a limit, the service's errors as ours.

What moves much is limited piece by piece and not as a whole: how long a file takes is up to its size, how
long a silence may last is not.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from shared.clients.connection import Connection, SdkClient
from shared.clients.dependency import Dependency
from shared.clients.translate import StatusTranslation, azure_errors
from shared.errors import GroundworkError
from shared.tracing.spans import Attributes, Span, begin, span

Item = TypeVar("Item")


@dataclass(frozen=True)
class StorageLimits:
    """How long the storage account may take.

    Attributes:
        call_s: for a call that moves little, all its tries together; some milliseconds are usual.
        piece_s: for one piece of a stream: 4 MiB at 1.1 Mbit/s.
    """

    call_s: float = 15.0
    piece_s: float = 30.0


STORAGE_LIMITS = StorageLimits()


@asynccontextmanager
async def calling(
    connection: Connection[SdkClient],
    dependency: Dependency,
    read_status: StatusTranslation | None = None,
    *,
    timeout_s: float,
    operation: str = "call",
) -> AsyncIterator[SdkClient]:
    """The client, for a block that must end within the limit. `operation` names it in a trace."""
    client = await connection.opened()
    with call_span(dependency, operation), azure_errors(dependency, read_status):
        async with asyncio.timeout(timeout_s):
            yield client


def call_span(dependency: Dependency, operation: str) -> AbstractContextManager[Span]:
    """The span of one call of a service. Without addresses: they hold names of files and people."""
    name, attributes = _described(dependency, operation)
    return span(name, attributes, "client")


def _described(dependency: Dependency, operation: str) -> tuple[str, Attributes]:
    attributes = {"azure_operation": operation, "groundwork.dependency": dependency.name}
    return f"{dependency.name.removeprefix('the ')} {operation}", attributes


async def each_within(
    timeout_s: float,
    items: AsyncIterator[Item],
    dependency: Dependency,
    read_status: StatusTranslation | None = None,
) -> AsyncIterator[Item]:
    """`items`, each within the limit."""
    while True:
        # Around each item and not around the loop: a timeout that spans a yield would strike the reader.
        with azure_errors(dependency, read_status):
            async with asyncio.timeout(timeout_s):
                try:
                    item = await anext(items)
                except StopAsyncIteration:
                    return
        yield item


async def listed(items: AsyncIterator[Item], dependency: Dependency, operation: str) -> AsyncIterator[Item]:
    """`items` as one span, from the first that is asked for until the last, or until nobody asks any more."""
    name, attributes = _described(dependency, operation)
    begun = begin(name, attributes, "client")
    count = 0
    try:
        async for item in items:
            count += 1
            yield item
    except GroundworkError as failed:
        begun.fail_by(failed)
        raise
    finally:
        begun.set({"result_count": count})
        begun.end()


class PieceClock:
    """Limits each piece of an upload. The SDK sends all of them in one call, so the limit moves along."""

    def __init__(self, limit: asyncio.Timeout, piece_s: float) -> None:
        self._limit = limit
        self._piece_s = piece_s

    async def sent(self, *_: object) -> None:
        """A piece is stored (the SDK's progress hook)."""
        self._restart()

    async def waiting_for(self, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """`parts`; while the sender makes one, the clock stands still: that is not the storage's time."""
        while True:
            self._limit.reschedule(None)
            try:
                part = await anext(parts)
            except StopAsyncIteration:
                return
            finally:
                self._restart()
            yield part

    def _restart(self) -> None:
        self._limit.reschedule(asyncio.get_running_loop().time() + self._piece_s)
