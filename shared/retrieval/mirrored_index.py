"""A `SearchIndex` that works on while its rows move to another index: read by its name, written to both."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from shared.platform.azure_search import MAX_BATCH_ROWS, batches
from shared.platform.calls import ask
from shared.platform.connections import Connection
from shared.platform.search import IndexRow, SearchIndex, SearchPage, SearchRequest

if TYPE_CHECKING:
    from azure.search.documents.indexes.aio import SearchIndexClient


KEPT_S = 5.0  # one question per 5 s of writing; a migration waits longer than this


class WriteTargets:
    """What the aliases said at most `kept_s` seconds ago. Without an answer nothing may be written."""

    def __init__(
        self, connection: "Connection[SearchIndexClient]", *, timeout_s: float, kept_s: float = KEPT_S
    ) -> None:
        """`timeout_s` limits one question, all its tries together."""
        self._connection = connection
        self._timeout_s = timeout_s
        self._kept_s = kept_s
        self._asked_at = float("-inf")
        self._aliases: dict[str, str] = {}

    async def of(self, name: str) -> tuple[str, ...]:
        """The indexes in the order in which they must be written; none: `name` itself is written."""
        if time.monotonic() - self._asked_at >= self._kept_s:
            asked_at = time.monotonic()  # before the question: its answer is as old as that
            self._aliases = await ask(
                self._connection, read_aliases, lambda _status, _message: None, timeout_s=self._timeout_s
            )
            self._asked_at = asked_at
        return written_together(self._aliases, name)


async def read_aliases(client: "SearchIndexClient") -> dict[str, str]:
    """All aliases of the service, each with its index."""
    return {alias.name: alias.indexes[0] async for alias in client.list_aliases() if alias.indexes}


def old_mark(name: str) -> str:
    """The alias that marks the index that is left."""
    return f"{name}-writes-1"


def new_mark(name: str) -> str:
    """The alias that marks the index that is made."""
    return f"{name}-writes-2"


def written_together(aliases: dict[str, str], name: str) -> tuple[str, ...]:
    """The old index before the new one: the proof in decision 26 rests on that."""
    return tuple(aliases[mark] for mark in (old_mark(name), new_mark(name)) if mark in aliases)


class OpensIndex(Protocol):
    """An index by its own name; `absent_ok` where a merge may meet rows that are not there yet."""

    def __call__(self, physical: str, absent_ok: bool = False) -> SearchIndex: ...


class MirroredIndex(SearchIndex):
    """What stands behind the name of a setting: an alias, or an index."""

    def __init__(self, current: SearchIndex, name: str, targets: WriteTargets, opens: OpensIndex) -> None:
        """`current` is the one that is reached by `name`."""
        self._current = current
        self._name = name
        self._targets = targets
        self._opens = opens

    async def search(self, request: SearchRequest) -> SearchPage:
        """From what the name stands for at this moment."""
        return await self._current.search(request)

    async def upload(self, rows: Sequence[IndexRow]) -> None:
        for batch in batches(rows):
            for index in await self._written():
                await index.upload(batch)

    async def merge(self, rows: Sequence[IndexRow]) -> None:
        for batch in batches(rows):
            for index in await self._written():
                await index.merge(batch)

    async def delete(self, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), MAX_BATCH_ROWS):
            for index in await self._written():
                await index.delete(keys[start : start + MAX_BATCH_ROWS])

    async def _written(self) -> list[SearchIndex]:
        # Asked again for each batch: a long upload must not continue writing to one index alone.
        names = await self._targets.of(self._name)
        indexes = [self._opens(name, absent_ok=position > 0) for position, name in enumerate(names)]
        return indexes or [self._current]
