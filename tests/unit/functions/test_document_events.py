"""Tests for GET /api/documents/events: the events, their recipients and their ids."""

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from functions.document_events import frames
from shared.access.models import UserContext
from shared.documents.feed import DocumentFeed, SharedScans
from shared.documents.state import DocumentState, Rights
from shared.wiring import Services
from tests.fakes.stores import InMemoryDocumentStore
from tests.unit.functions.conftest import AsUser
from tests.unit.functions.http_app import end_streams_soon, problem_of

if TYPE_CHECKING:
    import httpx

ANNA = UserContext(user_id="anna")
NOW = datetime.now(UTC)


def state(doc_id: str, acl: str = "anna", **fields: Any) -> DocumentState:
    defaults = {"doc_id": doc_id, "blob_name": f"{doc_id}.md", "filename": f"{doc_id}.md", "updated_at": NOW}
    return DocumentState.model_validate({**defaults, "wanted_rights": Rights(acl=(acl,)), **fields})


async def change(store: InMemoryDocumentStore, doc_id: str, **fields: Any) -> None:
    current_state = store.states[doc_id]
    at = max(datetime.now(UTC), current_state.updated_at + timedelta(microseconds=1))
    await store.replace(current_state.model_copy(update={"updated_at": at, **fields}))


async def poll_events(feed: DocumentFeed) -> list[tuple[str, str, str | None]]:
    return [
        (event.name, event.doc_id, event.view.status if event.view else None) for event in await feed.poll()
    ]


@pytest.fixture(autouse=True)
def no_scan_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.documents.feed.FRESH_S", 0.0)


@pytest.fixture
def store() -> InMemoryDocumentStore:
    return InMemoryDocumentStore()


async def test_a_feed_begins_with_what_is_in_work_and_goes_on_with_changes(
    store: InMemoryDocumentStore,
) -> None:
    await store.create(state("d1", status="parsing"))
    await store.create(state("d2", status="ready", updated_at=NOW - timedelta(minutes=1)))
    feed = DocumentFeed(SharedScans(store), ANNA, None)
    assert await poll_events(feed) == [("document", "d1", "parsing")]
    assert await poll_events(feed) == []
    await change(store, "d1", status="embedding")
    assert await poll_events(feed) == [("document", "d1", "embedding")]


async def test_a_sign_of_life_is_no_change(store: InMemoryDocumentStore) -> None:
    await store.create(state("d1", status="parsing"))
    feed = DocumentFeed(SharedScans(store), ANNA, None)
    await poll_events(feed)
    await change(store, "d1", wish=1)
    assert await poll_events(feed) == []


async def test_documents_of_others_are_never_told_of(store: InMemoryDocumentStore) -> None:
    await store.create(state("d1", acl="ben", status="parsing"))
    feed = DocumentFeed(SharedScans(store), ANNA, None)
    await change(store, "d1", status="failed", reason="secret")
    assert await poll_events(feed) == []
    await store.delete(store.states["d1"])
    assert await poll_events(feed) == []


async def test_a_document_that_is_closed_or_gone_is_removed_once(store: InMemoryDocumentStore) -> None:
    for doc_id in ("d1", "d2"):
        await store.create(state(doc_id, status="parsing"))
    feed = DocumentFeed(SharedScans(store), ANNA, None)
    await poll_events(feed)
    await change(store, "d1", wanted_rights=Rights(acl=("ben",)))
    await store.delete(store.states["d2"])
    assert await poll_events(feed) == [("removed", "d1", None), ("removed", "d2", None)]
    assert await poll_events(feed) == []


async def test_a_reader_that_comes_back_gets_what_changed_meanwhile(store: InMemoryDocumentStore) -> None:
    await store.create(state("d1", status="parsing", updated_at=NOW - timedelta(minutes=1)))
    await store.create(state("d2", status="parsing", updated_at=NOW - timedelta(minutes=1)))
    (first, last) = await DocumentFeed(SharedScans(store), ANNA, None).poll()
    await change(store, "d1", status="ready")
    again = DocumentFeed(SharedScans(store), ANNA, last.moment)
    assert ("document", "d1", "ready") in await poll_events(again)
    assert first.moment <= last.moment


async def test_ids_rise_and_the_stream_ends_on_purpose(store: InMemoryDocumentStore) -> None:
    for number in range(3):
        at = NOW + timedelta(microseconds=number)
        await store.create(state(f"d{number}", status="parsing", updated_at=at))
    received = [frame async for frame in frames(DocumentFeed(SharedScans(store), ANNA, None), 0)]
    ids = [int(frame.split(b"\n")[0].removeprefix(b"id: ")) for frame in received[:-1]]
    assert len(ids) == 3
    assert ids == sorted(ids)
    assert received[-1] == b": resume with Last-Event-ID\n\n"


async def test_a_silent_stream_is_kept_alive(
    store: InMemoryDocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("functions.document_events.KEEP_ALIVE_S", 0.0)
    monkeypatch.setattr("functions.document_events._POLL_FIRST_S", 0.01)
    received = [frame async for frame in frames(DocumentFeed(SharedScans(store), ANNA, None), 0.1)]
    assert b": keep-alive\n\n" in received


async def test_over_http_it_is_an_event_stream_of_the_callers_documents(
    services: Services, user: AsUser
) -> None:
    end_streams_soon(services)
    await user("anna").post("/documents", files={"file": ("a.md", b"x")})
    await user("ben").post("/documents", files={"file": ("b.md", b"x")})
    answered = await user("anna").get("/documents/events")
    assert answered.headers["content-type"].startswith("text/event-stream")
    documents = [json.loads(line[6:]) for line in answered.text.splitlines() if line.startswith("data: ")]
    assert [(document["filename"], document["status"]) for document in documents] == [("a.md", "queued")]


@pytest.mark.parametrize("header", ["abc", "-1", "9" * 18])
async def test_a_last_event_id_of_somebody_else_is_refused(user: AsUser, header: str) -> None:
    answered: httpx.Response = await user("anna").get("/documents/events", headers={"Last-Event-ID": header})
    assert problem_of(answered)[0] == 400


async def test_an_id_of_long_ago_begins_anew(services: Services, user: AsUser) -> None:
    end_streams_soon(services)
    await user("anna").post("/documents", files={"file": ("a.md", b"x")})
    answered = await user("anna").get("/documents/events", headers={"Last-Event-ID": "12"})
    assert "a.md" in answered.text


async def test_an_id_of_a_moment_ago_goes_on_from_there(services: Services, user: AsUser) -> None:
    end_streams_soon(services)
    await user("anna").post("/documents", files={"file": ("a.md", b"x")})
    response = await user("anna").get("/documents/events")
    (moment,) = [line[4:] for line in response.text.splitlines() if line.startswith("id: ")]
    answered = await user("anna").get("/documents/events", headers={"Last-Event-ID": moment})
    assert answered.status_code == 200
    assert "a.md" in answered.text
