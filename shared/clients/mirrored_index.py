"""A `SearchIndex` that works on while its rows move to another index: read by its name, written to both."""

from collections.abc import Sequence
from typing import Protocol

from shared.clients.search_index import MAX_BATCH_ROWS, batches
from shared.clients.write_targets import WriteTargets
from shared.models.search import IndexRow, SearchPage, SearchRequest
from shared.ports import SearchIndex


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
        """Insert or replace rows by key."""
        for batch in batches(rows):
            for index in await self._written():
                await index.upload(batch)

    async def merge(self, rows: Sequence[IndexRow]) -> None:
        """Change the named fields of existing rows."""
        for batch in batches(rows):
            for index in await self._written():
                await index.merge(batch)

    async def delete(self, keys: Sequence[str]) -> None:
        """Remove rows by key."""
        for start in range(0, len(keys), MAX_BATCH_ROWS):
            for index in await self._written():
                await index.delete(keys[start : start + MAX_BATCH_ROWS])

    async def _written(self) -> list[SearchIndex]:
        # Asked anew for each batch: a long upload must not go on writing to one index alone.
        names = await self._targets.of(self._name)
        indexes = [self._opens(name, absent_ok=position > 0) for position, name in enumerate(names)]
        return indexes or [self._current]
