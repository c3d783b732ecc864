"""GET /api/documents/events: the progress of documents as resumable server-sent events."""

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
    """One change of a document. A line that begins with `:` is a comment."""

    id: str = Field(pattern=EVENT_NUMBER, description="Time in microseconds since 1970; ids increase.")
    event: Literal["document", "removed"] = Field(description="Event type.")
    data: str = Field(
        json_schema_extra=JSON_TEXT,
        description="For `document` a DocumentView; for `removed` only its `doc_id`.",
    )


router = APIRouter(tags=["Documents"], route_class=ApiRoute)

_POLL_FIRST_S = 0.5
_POLL_SLOWEST_S = 2.0  # each poll scans the documents table
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_AGE = timedelta(days=1)


@lru_cache(maxsize=1)
def scans_of(store: DocumentStore) -> SharedScans:
    """Return the scans that all streams of this process share."""
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
    """Stream the documents in progress, then every change to a document that the caller may see."""
    after = _moment(last_event_id(req.headers.get("last-event-id")))
    stream = frames(
        DocumentFeed(scans_of(services.documents), user, after), services.settings.host.stream_seconds
    )
    return event_stream(stream, open_stream(user, services))


async def frames(feed: DocumentFeed, stream_seconds: float) -> AsyncIterator[bytes]:
    """Yield a feed as frames. Stops after `stream_seconds`; clients resume."""
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
    """Convert a time to microseconds since 1970: ids that increase across workers."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _moment(number: int) -> datetime | None:
    """Convert an event id to its time. Returns None without an id, or if it is more than a day old.

    Raises:
        CallerError: the id is in the future.
    """
    if number == 0:
        return None
    now = datetime.now(UTC)
    if number > _number(now + _MAX_AGE):
        raise CallerError("Invalid Last-Event-ID.", "Send the id of the last event received.")
    moment = _EPOCH + timedelta(microseconds=number)
    return None if now - moment > _MAX_AGE else moment
