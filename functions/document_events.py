"""The route GET /api/documents/events, which streams the ingestion progress of documents as server-sent
events that clients can resume.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field

from functions.http.api_route import ApiRoute
from functions.http.contracts import STREAM, Reply, contract
from functions.http.event_stream import KEEP_ALIVE_S, last_event_id
from functions.http.models import EVENT_NUMBER, JSON_TEXT, ResumeHeaders
from functions.http.requests import Caller, Ready, open_stream
from functions.http.responses import event_stream
from shared.documents.feed import DocumentFeed, FeedEvent, SharedScans
from shared.documents.state_store import DocumentStore
from shared.platform.errors import CallerError
from shared.platform.models import Model


class DocumentStreamEvent(Model):
    """A server-sent event about one document. Lines that begin with `:` are comments."""

    id: str = Field(
        pattern=EVENT_NUMBER,
        description="Time of the change in microseconds since 1970. Ids only increase.",
    )
    event: Literal["document", "removed"] = Field(
        description="`document` for a change; `removed` if the caller can no longer read the document."
    )
    data: str = Field(
        json_schema_extra=JSON_TEXT,
        description="JSON text: a DocumentView for `document`, an object with `doc_id` for `removed`.",
    )


router = APIRouter(tags=["Documents"], route_class=ApiRoute)

_POLL_FIRST_S = 0.5
_POLL_SLOWEST_S = 2.0  # an idle stream polls less often, because each poll scans the documents table
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_AGE = timedelta(days=1)


@lru_cache(maxsize=1)
def scans_of(store: DocumentStore) -> SharedScans:
    """Return the cache of document changes that all streams of this process share."""
    return SharedScans(store)


@router.get(
    "/api/documents/events",
    **contract(
        "A stream of document status changes",
        Reply(200, "Documents in progress, then each change.", ((STREAM, DocumentStreamEvent),)),
        headers=ResumeHeaders,
    ),
)
async def document_events(req: Request, user: Caller, services: Ready) -> Response:
    """Stream the documents in progress, followed by each change to a document that the caller may read."""
    after = _moment(last_event_id(req.headers.get("last-event-id")))
    stream = frames(
        DocumentFeed(scans_of(services.documents), user, after), services.settings.host.stream_seconds
    )
    return event_stream(stream, open_stream(user, services))


async def frames(feed: DocumentFeed, stream_seconds: float) -> AsyncIterator[bytes]:
    """Poll a feed and yield its events as server-sent event frames, with comments that keep the connection
    open. Ends after `stream_seconds`; clients then resume with the id of the last event.
    """
    delay = _POLL_FIRST_S
    started = spoke = time.monotonic()
    while True:
        events = await feed.poll()
        for event in events:
            yield _frame(event)
        now = time.monotonic()
        if now - started >= stream_seconds:
            yield b": resume with Last-Event-ID\n\n"
            return
        if events:
            spoke = now
        elif now - spoke >= KEEP_ALIVE_S:
            yield b": keep-alive\n\n"
            spoke = now
        delay = _POLL_FIRST_S if events else min(delay * 1.5, _POLL_SLOWEST_S)
        await asyncio.sleep(delay)


def _frame(event: FeedEvent) -> bytes:
    content = {"doc_id": event.doc_id} if event.view is None else event.view.model_dump(mode="json")
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return f"id: {_number(event.moment)}\nevent: {event.name}\ndata: {body}\n\n".encode()


def _number(moment: datetime) -> int:
    """Convert a time to an event id: microseconds since 1970, so that ids increase across workers."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _moment(number: int) -> datetime | None:
    """Convert an event id to a time. Return None if the id is 0 (no event yet) or more than a day old.

    Raises:
        CallerError: the id is in the future.
    """
    if number == 0:
        return None
    now = datetime.now(UTC)
    if number > _number(now + _MAX_AGE):
        raise CallerError("Last-Event-ID is not a valid event id.", "Send the id of the last event received.")
    moment = _EPOCH + timedelta(microseconds=number)
    return None if now - moment > _MAX_AGE else moment
