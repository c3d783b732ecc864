"""Changes of documents as one user may see them: polled from their states, told once each.

An event tells how a document is now, not what happened; so an event that is told twice does no harm, and one
that was overtaken by a later one is not missed.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from shared.agents.documents import view_of_state
from shared.agents.shared_scans import SharedScans
from shared.core.document_authority import may_see
from shared.models.document_views import DocumentView
from shared.models.identity import UserContext
from shared.models.ingestion import DocumentState
from shared.ports import DocumentStore

_OVERLAP = timedelta(seconds=3)  # clocks of two workers differ, and a write takes its time
_WATCHED = timedelta(seconds=30)  # after its last change: a deletion ends with a state that is gone


@dataclass(frozen=True)
class FeedEvent:
    """A document as it is now, or that it is gone (or closed to the user).

    Attributes:
        moment: of the change; a feed that begins there tells everything after it.
    """

    name: Literal["document", "removed"]
    moment: datetime
    doc_id: str
    view: DocumentView | None = None


class DocumentFeed:
    """One reader's place in the changes of all documents."""

    def __init__(
        self,
        store: DocumentStore,
        user: UserContext,
        after: datetime | None,
        scans: SharedScans | None = None,
    ) -> None:
        """A reader's feed.

        Args:
            after: the moment of the last event that the reader saw; None = begin with what is in work.
            scans: of the same store, for all readers of the process; None = this one scans for itself.
        """
        self._store = store
        self._scans = scans
        self._user = user
        self._moment = after
        self._told: dict[str, DocumentView] = {}
        self._watched: dict[str, datetime] = {}

    async def poll(self) -> list[FeedEvent]:
        """What changed since the last call, in the order of the changes."""
        if self._moment is None:
            begin = datetime.now(UTC)
            states = [state async for state in self._store.unfinished()]
            self._moment = max([begin, *(state.updated_at for state in states)])
        else:
            since = self._moment - _OVERLAP
            states = await self._changed_since(since)
        changed = self._changes(sorted(states, key=lambda state: state.updated_at))
        return [*changed, *await self._removals({state.doc_id for state in states})]

    async def _changed_since(self, since: datetime) -> list[DocumentState]:
        if self._scans is not None:
            return await self._scans.changed_since(since)
        return [state async for state in self._store.changed_since(since)]

    def _changes(self, states: Iterable[DocumentState]) -> list[FeedEvent]:
        events = []
        for state in states:
            event = self._change(state)
            if event is not None:
                events.append(event)
        return events

    def _change(self, state: DocumentState) -> FeedEvent | None:
        self._moment = max(self._moment or state.updated_at, state.updated_at)
        if not may_see(self._user, state):
            return self._removed(state.doc_id) if state.doc_id in self._told else None
        self._watched[state.doc_id] = state.updated_at
        view = view_of_state(state)
        if self._told.get(state.doc_id) == view:
            return None
        self._told[state.doc_id] = view
        return FeedEvent("document", self._moment, state.doc_id, view)

    async def _removals(self, seen: set[str]) -> list[FeedEvent]:
        """Documents told of a while ago whose states are gone."""
        events = []
        for doc_id, changed_at in list(self._watched.items()):
            if doc_id in seen:
                continue
            if await self._store.get(doc_id) is None:
                events.append(self._removed(doc_id))
            elif datetime.now(UTC) - changed_at > _WATCHED:
                del self._watched[doc_id]
        return events

    def _removed(self, doc_id: str) -> FeedEvent:
        self._told.pop(doc_id, None)
        self._watched.pop(doc_id, None)
        return FeedEvent("removed", self._moment or datetime.now(UTC), doc_id)
