"""Changes of documents, scanned once for all readers of a process who ask at about the same time.

A scan reads a table, and every open page of documents asks anew each second or two.
"""

import asyncio
from datetime import UTC, datetime

from shared.models.ingestion import DocumentState
from shared.ports import DocumentStore

FRESH_S = 0.4  # a reader polls every 0.5 s at most; what came since is in the next scan
_NOBODY = datetime.max.replace(tzinfo=UTC)


class SharedScans:
    """What changed since a moment, from the last scan if that is fresh and reaches so far back."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._scanning = asyncio.Lock()
        self._states: list[DocumentState] = []
        self._since = _NOBODY
        self._began = 0.0
        self._asked_for = _NOBODY  # the earliest moment since the last scan: the next one reaches back to it

    async def changed_since(self, moment: datetime) -> list[DocumentState]:
        """States that were written at `moment` or later, as of less than FRESH_S ago."""
        async with self._scanning:
            self._asked_for = min(self._asked_for, moment)
            if _now() - self._began >= FRESH_S or moment < self._since:
                await self._scan()
            return [state for state in self._states if state.updated_at >= moment]

    async def _scan(self) -> None:
        self._began = _now()
        self._since, self._asked_for = self._asked_for, _NOBODY
        try:
            self._states = [state async for state in self._store.changed_since(self._since)]
        except BaseException:
            self._since = _NOBODY  # what was read before is of another moment
            raise


def _now() -> float:
    return asyncio.get_running_loop().time()
