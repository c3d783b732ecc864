"""Counts of what was asked of the server, for tests that count writes. Touched by the event loop only."""

from collections import Counter
from collections.abc import Sequence

from local.search_server.documents import Action
from local.search_server.schema import JsonObject


class Stats:
    """Counters since the start or the last reset."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Set everything to zero."""
        self._writes: dict[str, Counter[str]] = {}
        self._searches: Counter[str] = Counter()

    def count_writes(self, index: str, actions: Sequence[Action]) -> None:
        """Note a batch that was applied, each action by its kind."""
        self._writes.setdefault(index, Counter()).update(action.kind.value for action in actions)

    def count_search(self, index: str) -> None:
        """Note a search, whatever it found."""
        self._searches[index] += 1

    @property
    def body(self) -> JsonObject:
        """Writes by index and kind of action, and searches by index."""
        return {
            "writes": {index: dict(kinds) for index, kinds in sorted(self._writes.items())},
            "searches": dict(sorted(self._searches.items())),
        }
