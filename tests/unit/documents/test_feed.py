"""Tests for sharing one scan of documents between readers: no change is missed, and storage is read once."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from shared.access.models import UserContext
from shared.documents.feed import DocumentFeed, SharedScans
from shared.documents.state import DocumentState, Rights
from tests.fakes.stores import InMemoryDocumentStore

NOW = datetime.now(UTC)
USERS = [UserContext(user_id=f"user-{number}") for number in range(20)]


class CountingStore(InMemoryDocumentStore):
    """A store that records the start of each scan and fails while `fails` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.scans: list[datetime] = []
        self.fails = False

    async def changed_since(self, moment: datetime) -> AsyncIterator[DocumentState]:
        self.scans.append(moment)
        if self.fails:
            raise OSError
        async for state in super().changed_since(moment):
            yield state


async def stored(store: CountingStore, doc_id: str, age_s: float) -> None:
    name_fields = {"doc_id": doc_id, "blob_name": f"{doc_id}.md", "filename": f"{doc_id}.md"}
    state_fields = {"updated_at": NOW - timedelta(seconds=age_s), "wanted_rights": Rights(acl=("*",))}
    await store.create(DocumentState.model_validate({**name_fields, **state_fields}))


def ids(states: list[DocumentState]) -> list[str]:
    return sorted(state.doc_id for state in states)


async def test_readers_who_ask_at_the_same_time_share_a_scan_and_get_each_their_part() -> None:
    store = CountingStore()
    for age_s in (1, 5, 9):
        await stored(store, f"d{age_s}", age_s)
    scans = SharedScans(store)
    assert ids(await scans.changed_since(NOW - timedelta(seconds=6))) == ["d1", "d5"]
    assert ids(await scans.changed_since(NOW - timedelta(seconds=2))) == ["d1"]
    assert len(store.scans) == 1
    assert ids(await scans.changed_since(NOW - timedelta(seconds=60))) == ["d1", "d5", "d9"]
    assert len(store.scans) == 2


async def test_the_next_scan_reaches_back_as_far_as_any_reader_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.documents.feed.FRESH_S", 60.0)
    store = CountingStore()
    scans = SharedScans(store)
    early, late = NOW - timedelta(seconds=60), NOW
    for moment in (early, late, early):
        await scans.changed_since(moment)
    monkeypatch.setattr("shared.documents.feed.FRESH_S", 0.0)
    await scans.changed_since(late)
    assert store.scans == [early, early]
    await scans.changed_since(late)  # no reader has requested an earlier moment since
    assert store.scans == [early, early, late]


async def test_a_scan_that_failed_serves_nobody() -> None:
    store = CountingStore()
    await stored(store, "d1", 1)
    scans = SharedScans(store)
    store.fails = True
    with pytest.raises(OSError):  # noqa: PT011  # the store's own
        await scans.changed_since(NOW - timedelta(seconds=6))
    store.fails = False
    assert ids(await scans.changed_since(NOW - timedelta(seconds=6))) == ["d1"]


async def test_twenty_feeds_of_a_process_scan_as_often_as_one() -> None:
    store = CountingStore()
    scans = SharedScans(store)
    feeds = [DocumentFeed(scans, user, NOW) for user in USERS]
    await stored(store, "d1", -1)
    events = await asyncio.gather(*[feed.poll() for feed in feeds])
    assert [[event.doc_id for event in of_one] for of_one in events] == [["d1"]] * len(USERS)
    assert len(store.scans) == 1
