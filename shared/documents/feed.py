"""A feed of document changes for one user, based on polling the stored document states.

An event describes the current state of a document rather than a change, so duplicates are harmless and no
state is missed when a later event replaces an earlier one.
"""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from shared.access.models import UserContext
from shared.documents.presentation import view_of_state
from shared.documents.rights import may_see
from shared.documents.state import DocumentState
from shared.documents.state_store import DocumentStore
from shared.documents.views import DocumentView

# Maximum age of a scan. Readers poll every 0.5 s, so that each poll gets a new scan.
FRESH_S = 0.4
_NOBODY = datetime.max.replace(tzinfo=UTC)


class SharedScans:
    """Cache for recent changes of all documents, shared by all feeds of a process. A scan of the store is
    reused while it is fresh and covers the requested period.
    """

    def __init__(self, store: DocumentStore) -> None:
        self.store = store
        self._scanning = asyncio.Lock()
        self._states: list[DocumentState] = []
        self._since = _NOBODY
        self._began = 0.0
        # Earliest start time that any reader has requested since the last scan. The next scan starts there.
        self._asked_for = _NOBODY

    async def changed_since(self, moment: datetime) -> list[DocumentState]:
        """Return the states changed at `moment` or later, from a scan that is at most FRESH_S seconds old."""
        async with self._scanning:
            self._asked_for = min(self._asked_for, moment)
            if _now() - self._began >= FRESH_S or moment < self._since:
                await self._scan()
            return [state for state in self._states if state.updated_at >= moment]

    async def _scan(self) -> None:
        self._began = _now()
        self._since, self._asked_for = self._asked_for, _NOBODY
        try:
            self._states = [state async for state in self.store.changed_since(self._since)]
        except BaseException:
            # The scan failed, and the cached states don't cover its period, so force another scan.
            self._since = _NOBODY
            raise


def _now() -> float:
    return asyncio.get_running_loop().time()


# Each poll repeats the last three seconds, because the clocks of workers differ and a write takes time.
_OVERLAP = timedelta(seconds=3)
# After a change, check for this long whether the document was deleted. A deletion removes the stored state,
# so scans can't detect it.
_WATCHED = timedelta(seconds=30)


@dataclass(frozen=True)
class FeedEvent:
    """Change of a document: its new state, or its removal. Losing read access also counts as a removal.

    Attributes:
        moment: time of the change. A new feed that starts at this time reports all later changes.
    """

    name: Literal["document", "removed"]
    moment: datetime
    doc_id: str
    view: DocumentView | None = None


class DocumentFeed:
    """Feed of document changes for one reader, limited to documents that the reader may see."""

    def __init__(self, scans: SharedScans, user: UserContext, after: datetime | None) -> None:
        """Create a feed that starts after an earlier event, or with the documents in progress.

        Args:
            scans: scans shared by all readers of the process.
            after: moment of the last event that the reader received; None = start with documents in progress.
        """
        self._scans = scans
        self._user = user
        self._moment = after
        self._sent: dict[str, DocumentView] = {}
        self._watched: dict[str, datetime] = {}

    async def poll(self) -> list[FeedEvent]:
        """Return the changes since the previous call, oldest first, followed by removals. The first call of a
        feed without a start time returns all documents in progress or failed.
        """
        if self._moment is None:
            begin = datetime.now(UTC)
            states = [state async for state in self._scans.store.unfinished()]
            self._moment = max([begin, *(state.updated_at for state in states)])
        else:
            states = await self._scans.changed_since(self._moment - _OVERLAP)
        changes = map(self._change, sorted(states, key=lambda state: state.updated_at))
        return [*filter(None, changes), *await self._removals({state.doc_id for state in states})]

    def _change(self, state: DocumentState) -> FeedEvent | None:
        self._moment = max(self._moment or state.updated_at, state.updated_at)
        if not may_see(self._user, state):
            return self._forget(state.doc_id) if state.doc_id in self._sent else None
        self._watched[state.doc_id] = state.updated_at
        view = view_of_state(state)
        if self._sent.get(state.doc_id) == view:
            return None
        self._sent[state.doc_id] = view
        return FeedEvent("document", self._moment, state.doc_id, view)

    async def _removals(self, seen: set[str]) -> list[FeedEvent]:
        """Return a "removed" event for each recently reported document that no longer exists. Documents in
        `seen`, which the current scan found, aren't checked.
        """
        events = []
        for doc_id, changed_at in list(self._watched.items()):
            if doc_id in seen:
                continue
            if await self._scans.store.get(doc_id) is None:
                events.append(self._forget(doc_id))
            elif datetime.now(UTC) - changed_at > _WATCHED:
                del self._watched[doc_id]
        return events

    def _forget(self, doc_id: str) -> FeedEvent:
        self._sent.pop(doc_id, None)
        self._watched.pop(doc_id, None)
        return FeedEvent("removed", self._moment or datetime.now(UTC), doc_id)
