"""Which indexes a write goes to: while an index is being moved, to the old one and to the new one.

Two aliases say so, `<name>-writes-1` (the old index) and `<name>-writes-2` (the new one): whatever writes
sees them, in every process, and there is no second place that could say something else (decision 26).
"""

import time
from typing import TYPE_CHECKING

from shared.clients.connection import Connection
from shared.clients.search_connections import ask
from shared.errors import GroundworkError

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
            self._aliases = await ask(self._connection, read_aliases, _read_status, timeout_s=self._timeout_s)
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


def _read_status(status: int, message: str) -> GroundworkError | None:
    return None
