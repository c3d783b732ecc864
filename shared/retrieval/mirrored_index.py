"""A `SearchIndex` for migrations: it reads through the configured name and writes to both indexes."""

import time
from collections.abc import Sequence
from typing import Protocol

from azure.search.documents.indexes.aio import SearchIndexClient

from shared.platform.azure_search import MAX_BATCH_ROWS, batches
from shared.platform.calls import ask
from shared.platform.connections import Connection
from shared.platform.search import IndexRow, SearchIndex, SearchPage, SearchRequest

KEPT_S = 5.0  # lifetime of cached aliases in seconds; a migration waits longer than this


class WriteTargets:
    """The indexes that receive writes, from aliases cached for `kept_s` seconds. If the aliases can't be
    read, writes fail.
    """

    def __init__(
        self, connection: Connection[SearchIndexClient], *, timeout_s: float, kept_s: float = KEPT_S
    ) -> None:
        """Create the cache. `timeout_s` limits one alias query, including retries."""
        self._connection = connection
        self._timeout_s = timeout_s
        self._kept_s = kept_s
        self._asked_at = float("-inf")
        self._aliases: dict[str, str] = {}

    async def of(self, name: str) -> tuple[str, ...]:
        """Return the indexes to write to, the old one first. Empty without a migration: write to `name`
        itself.
        """
        if time.monotonic() - self._asked_at >= self._kept_s:
            # Measured before the query, because the response may be as old as that.
            asked_at = time.monotonic()
            self._aliases = await ask(
                self._connection, read_aliases, lambda _status, _message: None, timeout_s=self._timeout_s
            )
            self._asked_at = asked_at
        return written_together(self._aliases, name)


async def read_aliases(client: SearchIndexClient) -> dict[str, str]:
    """Return the names of all aliases with the index that each refers to."""
    return {alias.name: alias.indexes[0] async for alias in client.list_aliases() if alias.indexes}


def old_mark(name: str) -> str:
    """Return the name of the alias that marks the old index of a migration."""
    return f"{name}-writes-1"


def new_mark(name: str) -> str:
    """Return the name of the alias that marks the new index of a migration."""
    return f"{name}-writes-2"


def written_together(aliases: dict[str, str], name: str) -> tuple[str, ...]:
    """Return the indexes that receive writes during a migration, old before new, as the proof in decision 26
    requires.
    """
    return tuple(aliases[mark] for mark in (old_mark(name), new_mark(name)) if mark in aliases)


class OpensIndex(Protocol):
    """Function that opens an index by its own name. `absent_ok` ignores merges into missing rows."""

    def __call__(self, physical: str, absent_ok: bool = False) -> SearchIndex: ...


class MirroredIndex(SearchIndex):
    """A `SearchIndex` behind a configured name, which is an alias or an index. During a migration, writes go
    to both indexes.
    """

    def __init__(self, current: SearchIndex, name: str, targets: WriteTargets, opens: OpensIndex) -> None:
        """Create the index. `current` is the index that `name` refers to."""
        self._current = current
        self._name = name
        self._targets = targets
        self._opens = opens

    async def search(self, request: SearchRequest) -> SearchPage:
        """Search the index that the name currently refers to."""
        return await self._current.search(request)

    async def upload(self, rows: Sequence[IndexRow]) -> None:
        for batch in batches(rows):
            for index in await self._targets_now():
                await index.upload(batch)

    async def merge(self, rows: Sequence[IndexRow]) -> None:
        for batch in batches(rows):
            for index in await self._targets_now():
                await index.merge(batch)

    async def delete(self, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), MAX_BATCH_ROWS):
            for index in await self._targets_now():
                await index.delete(keys[start : start + MAX_BATCH_ROWS])

    async def _targets_now(self) -> list[SearchIndex]:
        # The targets are looked up for each batch, so that a long upload notices when a migration starts.
        names = await self._targets.of(self._name)
        indexes = [self._opens(name, absent_ok=position > 0) for position, name in enumerate(names)]
        return indexes or [self._current]
